"""Reads downloads of a whole assignment: students, times and attempts come from the file names.

A download is a folder or a zip. It is recognised by the names at its top, which the learning system
made. Names that students chose are not used for this: they are at lower levels, or follow the
system's part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from grader.intake.archives import archive_files, zip_items
from grader.intake.files import (
    FileItem,
    FoundFile,
    item_on_disk,
    read_files,
    unread,
)
from grader.intake.names import SOURCES, ZIP, shown, skipped, suffix, well_formed
from grader.intake.submission import Submission
from grader.records.rows import Person


@dataclass(frozen=True)
class Upload:
    """The files that a student or a group submitted at one time."""

    who: str  # the student's or group's name in the system
    number: str  # the system's number for the student or group, which distinguishes namesakes
    files: Mapping[str, FileItem]
    people: tuple[Person, ...]
    late: bool = False
    moment: tuple[float, ...] = ()  # larger for later uploads
    attempts: int = 1  # the system's count of uploads, this upload included
    submitted: datetime | None = None  # in UTC, if the system gives the time
    entry: str = ""  # the name of the newest file in the download, if feedback needs it


@dataclass(frozen=True)
class Downloads:
    """How to recognise and read the downloads of a learning system."""

    system: str  # the system's name in messages
    # Takes the names at a download's top, and returns those that the system made; returns none if
    # another system made the download.
    made: Callable[[Collection[str]], Collection[str]]
    # Returns the uploads, from the items of a download and the names of units.
    uploads: Callable[[Sequence[FileItem], Collection[str]], list[Upload]]
    # The name that the system gives to a class's folder. The folder holds a folder for each
    # student, and a student's folder holds only a folder for each assignment.
    folder: str | None = None
    archive: str | None = None  # a pattern for the names that the system gives to zips, no suffix


def most_of(names: Collection[str], own: Collection[str]) -> Collection[str]:
    """Return a system's `own` names if they are more than half of the `names`, or else none.

    Other names may be an instructor's notes, or a file that came by mail.
    """
    return own if 2 * len(own) > len(names) else ()


# Patterns for a download's name in any system, and for the marks of a copy ("(1)", "_2").
ARCHIVE, COPY = r"(.+[ _-])?submissions", r"[ _-]?(\(?\d{1,3}\)?)?"


def named_as_download(path: Path, made: Downloads, downloads: Collection[Downloads]) -> bool:
    """Whether a zip has a name that the system gives to its downloads.

    ``mallory_7_70_submissions.zip`` does not count: systems name students' own zips like this.
    """
    if any(one.made({path.name}) for one in downloads):
        return False
    own = f"|({made.archive})" if made.archive is not None else ""
    return re.fullmatch(f"(?i)({ARCHIVE}{own}){COPY}", path.stem) is not None


def top_names(path: Path) -> set[str]:
    """The names at the top of a folder."""
    return {entry.name for entry in path.iterdir() if not _ours(entry.name)}


@contextmanager
def items_of(
    path: Path, kept: Collection[str | None] = (), most: int | None = None
) -> Iterator[list[FileItem]]:
    """Yield every file in a folder or a zip, to read inside the ``with``; `most`: see `zip_items`.

    A top folder that holds everything in a zip is removed from the paths, unless it is in `kept`.
    """
    if suffix(path.name) != ZIP or path.is_dir():
        yield [
            item_on_disk(file, file.relative_to(path).parts) for file in sorted(_plain_files(path))
        ]
        return
    with zip_items(path, most) as items:
        yield without_top([item for item in items if not any(map(_ours, item.parts))], kept)


def _plain_files(folder: Path) -> Iterator[Path]:
    """All files below a folder, at any depth. Links are never followed."""
    waiting = [folder]  # a stack: recursion has a limit
    while waiting:
        for entry in waiting.pop().iterdir():
            if _ours(entry.name) or entry.is_symlink():
                continue
            if entry.is_dir():
                waiting.append(entry)
            else:
                yield entry


def _ours(name: str) -> bool:
    """Whether this is the name of a file that a desktop or git left, not a learning system."""
    return name.startswith(".") or name == "__MACOSX"


def without_top(items: Sequence[FileItem], kept: Collection[str | None] = ()) -> list[FileItem]:
    """The items, without the folder that holds them all, unless it is in `kept`."""
    tops = {item.parts[0] for item in items}
    if len(tops) != 1 or tops <= {*kept} or any(len(item.parts) == 1 for item in items):
        return list(items)
    return [replace(item, parts=item.parts[1:]) for item in items]


def read_upload(upload: Upload) -> Submission:
    """Read the files of an upload as a submission."""
    sources, problems = read_files(_found(upload.files))
    return Submission(
        shown(well_formed(upload.who)),
        sources,
        problems,
        late=upload.late,
        attempts=upload.attempts,
        submitted=upload.submitted,
        entry=upload.entry,
    )


def _found(files: Mapping[str, FileItem]) -> Iterator[FoundFile]:
    """The source files of an upload, including those in its archives."""
    for path, item in sorted(files.items()):
        *folders, name = path.split("/")
        if skipped(name, folder=False) or any(skipped(part, folder=True) for part in folders):
            continue
        if suffix(name) in SOURCES:
            yield item.found(shown(path))
        elif suffix(name) == ZIP:
            inside = archive_files(shown(path), item.opened)
            yield from inside if len(files) == 1 else map(partial(_below, path), inside)
        else:
            yield unread(path)


def _below(archive: str, found: FoundFile) -> FoundFile:
    """Prefix a file's name with its archive's: two archives of an upload may hold the same name."""
    return replace(found, name=shown(f"{archive}/{found.name}"))
