"""One submission: its source files as text, and what could not be read."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.intake import limits
from grader.intake.archives import archive_files
from grader.intake.files import (
    FoundFile,
    Problem,
    Unreadable,
    code_cells,
    decoded,
    folder_files,
    on_disk,
    open_plain,
    reason,
)
from grader.intake.names import ARCHIVES, SOURCES, ZIP, shown, suffix
from grader.wire import SourceText

OTHER_ARCHIVE = "an archive that is not read: make it a .zip, or unpack it into a folder"
NO_SOURCE = "neither a .py file nor a notebook nor a zip of those"


@dataclass(frozen=True)
class Submission:
    """What one student handed in."""

    student: str
    sources: tuple[SourceText, ...]
    problems: tuple[str, ...] = ()  # files that could not be read, one line each
    group: tuple[str, ...] = ()  # who gets the grade, where that is not one student alone
    late: bool = False  # by the mark of the system that it came through
    attempts: int = 1  # how many hand-ins are known, of which this is the last

    @property
    def members(self) -> tuple[str, ...]:
        """The students who get the grade."""
        return self.group or (self.student,)

    @property
    def status(self) -> str:
        """``empty`` without any source file, ``unreadable`` if none could be read."""
        if self.sources:
            return "ready"
        return "unreadable" if self.problems else "empty"


def read_submission(student: str, path: Path) -> Submission:
    """Read all source files of one submission. What cannot be read is a problem, not an error."""
    return Submission(student, *read_files(_files(path)))


def read_files(found: Iterable[FoundFile]) -> tuple[tuple[SourceText, ...], tuple[str, ...]]:
    """The text of these files, and one line for each that could not be read."""
    sources: list[SourceText] = []
    problems: list[str] = []
    files, left = 0, limits.MAX_TOTAL
    for file in found:
        if isinstance(file, Problem):
            problems.append(f"{file.name}: {file.why}")
            continue
        files += 1
        if files > limits.MAX_FILES:
            problems.append(
                f"more than {limits.MAX_FILES} source files; only the first ones were read"
            )
            break
        try:
            if file.size > limits.MAX_FILE:
                raise Unreadable(_too_large(file.name))
            if file.size > left:
                raise Unreadable(
                    f"the submission is larger than {limits.MAX_TOTAL // 2**20} MB in all"
                )
            left -= file.size
            sources.append(_source(file.name, file.read()))
        except Unreadable as error:
            problems.append(f"{file.name}: {error}")
        except OSError as error:
            problems.append(f"{file.name}: {reason(error)}")
    return tuple(sources), _the_first(problems)


def _files(path: Path) -> Iterator[FoundFile]:
    name = shown(path.name)
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except OSError as error:
        yield Problem(name, reason(error))
        return
    if folder:
        yield from folder_files(path)
    elif suffix(path.name) == ZIP:
        yield from archive_files(name, partial(open_plain, path))
    elif suffix(path.name) in SOURCES:
        yield on_disk(path, name)
    else:
        yield Problem(name, OTHER_ARCHIVE if suffix(path.name) in ARCHIVES else NO_SOURCE)


def _source(name: str, data: bytes) -> SourceText:
    known = suffix(name)  # in small letters, as everyone behind this expects it
    cells = code_cells(data) if known == ".ipynb" else (decoded(data),)
    return SourceText(name[: -len(known)] + known, cells)


def _too_large(name: str) -> str:
    told = f"larger than {limits.MAX_FILE // 2**20} MB"
    # Plots weigh more than any code.
    return f"{told}: clear its outputs, and hand it in again" if suffix(name) == ".ipynb" else told


def _the_first(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= limits.MAX_PROBLEMS:
        return tuple(problems)
    more = len(problems) - limits.MAX_PROBLEMS
    return (*problems[: limits.MAX_PROBLEMS], f"and {more} more such lines")
