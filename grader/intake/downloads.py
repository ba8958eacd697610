"""Downloads of a whole assignment: what a system's own names say about who handed in what, when.

A download is a folder or a zip. It is known by the names at its top, which the system made; what
students named is below, or behind, and decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from grader.intake.archives import archive_files, zip_items
from grader.intake.files import (
    FileItem,
    FoundFile,
    Submission,
    item_on_disk,
    read_files,
    unread,
)
from grader.intake.names import SOURCES, ZIP, shown, skipped, suffix
from grader.records.rows import Person


@dataclass(frozen=True)
class HandIn:
    """What one student, or one group, handed in at one time."""

    who: str  # as the system calls them
    number: str  # the system's own, which tells two of one name apart
    files: Mapping[str, FileItem]
    people: tuple[Person, ...]
    late: bool = False
    moment: tuple[float, ...] = ()  # a later one is larger
    attempts: int = 1  # with those before it that the system tells of


@dataclass(frozen=True)
class Downloads:
    """How the downloads of one system are recognised and read."""

    system: str  # as people write its name
    # Which of these names, at the top, are of its making; none where it is no download of it.
    made: Callable[[Collection[str]], Collection[str]]
    hand_ins: Callable[[Sequence[FileItem], Collection[str]], list[HandIn]]  # items, names of units
    # What the system calls a class's folder, in which each student's holds only assignments' ones.
    folder: str | None = None
    archive: str | None = None  # a pattern: what the system calls the zip, without ``.zip``


def most_of(names: Collection[str], own: Collection[str]) -> Collection[str]:
    """A system's `own` names among these, if they are most; none where they are not.

    A few others do not make it somebody's folder: an instructor's notes, a file that came by mail.
    """
    return own if 2 * len(own) > len(names) else ()


# What a download may be called besides the system's own name for it; and the mark of a copy.
ARCHIVE, COPY = r"(.+[ _-])?submissions", r"[ _-]?(\(?\d{1,3}\)?)?"


def called_so(path: Path, made: Downloads, downloads: Collection[Downloads]) -> bool:
    """Whether a zip is called as the system calls a download of its making.

    ``mallory_7_70_submissions.zip`` is not: so a system calls a student's own.
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
    """Every file in a folder or a zip, which can be read meanwhile; see `zip_items` for `most`.

    A folder that holds all that is in a zip is left out of the names, unless it is among `kept`.
    """
    if suffix(path.name) != ZIP or path.is_dir():
        yield [
            item_on_disk(file, file.relative_to(path).parts) for file in sorted(_plain_files(path))
        ]
        return
    with zip_items(path, most) as items:
        yield without_top([item for item in items if not any(map(_ours, item.parts))], kept)


def _plain_files(folder: Path) -> Iterator[Path]:
    """All files below; links are never followed."""
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
    """Left by a desktop or by git, and by no system."""
    return name.startswith(".") or name == "__MACOSX"


def without_top(items: Sequence[FileItem], kept: Collection[str | None] = ()) -> list[FileItem]:
    """The items below the one folder that holds them all, unless it is among `kept`."""
    tops = {item.parts[0] for item in items}
    if len(tops) != 1 or tops <= {*kept} or any(len(item.parts) == 1 for item in items):
        return list(items)
    return [replace(item, parts=item.parts[1:]) for item in items]


def read_hand_in(hand_in: HandIn) -> Submission:
    """The submission that one hand-in is."""
    sources, problems = read_files(_found(hand_in.files))
    return Submission(
        shown(hand_in.who), sources, problems, late=hand_in.late, attempts=hand_in.attempts
    )


def _found(files: Mapping[str, FileItem]) -> Iterator[FoundFile]:
    """The source files of one hand-in, those in its archives among them."""
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
    """Two archives of one hand-in may hold files of one name."""
    return replace(found, name=shown(f"{archive}/{found.name}"))
