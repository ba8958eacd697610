"""One submission: its source files, read as text, and what could not be read.

Files are read without waiting, and without following a link. What reading may cost is limited:
together the limits bound the memory that one submission takes, whatever is handed in, to less than
350 MB: the text that is kept (`MAX_TOTAL`, four times that as text of mixed scripts), one file on
its way (`MAX_FILE`; the JSON of a notebook that is all brackets takes fifty times that while it is
parsed), and an archive's table of contents (`MAX_DIRECTORY`, sixteen times that once it is a list
of entries). An honest submission takes a few.
"""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from grader.intake.names import ARCHIVES, SOURCES, handed_in, real_name, shown, skipped, suffix
from grader.wire import SourceText, clean

MAX_FILE = 4 * 2**20  # bytes of one file
MAX_FILES = 500
MAX_TOTAL = 16 * 2**20  # bytes of all files
MAX_PROBLEMS = 20  # lines; an archive can hold thousands of bad entries

# A virtual environment with PyTorch has 28,000 entries in 4 MB of table. One that was zipped along
# must cost nobody a grade.
MAX_DIRECTORY = 5 * 2**20  # bytes of an archive's table of contents
# Of a whole class, some of whom did just that; and a student's archive inside it.
MAX_DOWNLOAD_DIRECTORY = 16 * MAX_DIRECTORY
MAX_ARCHIVE = 64 * 2**20
MAX_PATH = 1_000  # characters of an entry's name, folders included

# A notebook that prints zeros shrinks to a 200th, and deflate ends at a 1,032nd. Above that size
# and ratio a file was made to be large.
MAX_RATIO = 500
RATIO_FROM = 2**20  # bytes

# --- files on disk -------------------------------------------------------------------------------


OTHER_ARCHIVE = "an archive that is not read: make it a .zip, or unpack it into a folder"
OTHER_TYPE = "not read: hand in a .py file or a notebook"
NOT_PLAIN = "a link, a folder or a device and no plain file: hand in the file itself"

# A pipe named x.py would block whoever opens it, and a link may point at anything on this machine.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unreadable(Exception):
    """A file that is not read; the text says why and what to do, for the student."""


@dataclass(frozen=True)
class Listed:
    """A source file that was found and not yet read.

    `read` gives at most `size` bytes, or raises `Unreadable` or `OSError`.
    """

    name: str
    size: int
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Problem:
    """What someone should know about a file, or the reason why it is not read."""

    name: str
    why: str


@dataclass(frozen=True)
class Other(Problem):
    """A file of a type that is not read. Beside source files it is no problem."""


FoundFile = Listed | Problem
Parts = tuple[str, ...]


@dataclass(frozen=True)
class FileItem:
    """A file in a download of a whole assignment: its path below the top, and ways to read it."""

    parts: Parts
    found: Callable[[str], FoundFile]  # as a source file, which is shown under this name
    opened: Callable[[], BinaryIO]  # as an archive or a note; raises `Unreadable`, `OSError`
    modified: float = 0.0  # seconds since the epoch


def on_disk(path: Path, name: str) -> FoundFile:
    """A file in a folder, as it is listed."""
    try:
        status = path.lstat()
    except OSError as error:
        return Problem(name, reason(error))
    if not stat.S_ISREG(status.st_mode):
        return Problem(name, NOT_PLAIN)
    size = status.st_size
    return Listed(name, size, lambda: _read(path, size))


def unread(name: str) -> Problem:
    """A file of a type that is not read, by its path."""
    if suffix(name) in ARCHIVES:
        return Problem(shown(name), OTHER_ARCHIVE)
    real = real_name(name)
    if real != name:
        return Problem(shown(name), f"not read under this name: call it {shown(real)}")
    return Other(shown(name), OTHER_TYPE)


def item_on_disk(path: Path, parts: Parts) -> FileItem:
    """A file in a download that was unpacked."""
    with suppress(OSError):
        return FileItem(
            parts, partial(on_disk, path), partial(open_plain, path), path.lstat().st_mtime
        )
    return FileItem(parts, partial(on_disk, path), partial(open_plain, path))


def _read(path: Path, size: int) -> bytes:
    with open_plain(path) as file:
        data = file.read(size + 1)
    if len(data) > size:
        raise Unreadable("it grew while it was read: grade again")
    return data


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file; raise `Unreadable` for anything else that has a name."""
    # The bare flags can still wake a device up: looked at before it is opened, and after.
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Unreadable(NOT_PLAIN)
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Unreadable(NOT_PLAIN)
    return file


def reason(error: OSError) -> str:
    """Why the system refused, without the path on this machine."""
    return f"it cannot be read ({error.strerror or type(error).__name__})"


def decoded(data: bytes) -> str:
    """Bytes as text, whatever editor wrote them."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # What editors on Windows write; any byte means something in it.
        return data.decode("cp1252", errors="replace")


# --- folders -------------------------------------------------------------------------------------
#
# The files in a folder, at any depth, in order of their paths.


NESTED = "an archive inside a submission is not looked into: unpack it, and hand in what it holds"


def folder_files(folder: Path) -> Iterator[FoundFile]:
    """List a folder's files. Links are never followed."""
    # A stack, since recursion has a limit; with names as text, since paths are slow where deep.
    waiting: list[tuple[str, os.DirEntry[str] | None]] = [(folder.name, None)]
    while waiting:
        name, entry = waiting.pop()
        try:
            if entry is None or _is_folder(entry):
                with os.scandir(entry or folder) as inside:
                    own = [one for one in inside if not skipped(one.name, folder=_is_folder(one))]
                own.sort(key=lambda one: one.name, reverse=True)
                waiting += [(f"{name}/{one.name}" if entry else one.name, one) for one in own]
                continue
        except OSError as error:
            yield Problem(shown(name), reason(error))
            continue
        if suffix(entry.name) in SOURCES:
            yield on_disk(Path(entry), shown(name))
        elif suffix(entry.name) in ARCHIVES:
            yield Problem(shown(name), NESTED)
        else:
            yield unread(name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


# --- folders of submissions ----------------------------------------------------------------------


LEFT_BEHIND = ("__pycache__", "__MACOSX")  # by programs


def name_of(path: Path) -> str:
    """Whose a file or a folder is, by its name."""
    real = path.resolve()  # "." has no name, and a path that was typed may be a link
    return shown(real.name if real.is_dir() else Path(real_name(real.name)).stem)


def submissions_in(folder: Path) -> tuple[list[Path], list[str]]:
    """The submissions in a folder of them, and the names of all else. Links are never followed."""
    found: dict[str, list[Path]] = {}
    left: list[str] = []
    for entry in sorted(folder.iterdir()):
        if skipped(entry.name, folder=False) or entry.name in LEFT_BEHIND:
            continue
        if entry.is_symlink():
            left.append(f"{shown(entry.name)} (a link)")
        elif entry.is_dir() or (handed_in(entry.name) and not _is_dunder(entry)):
            found.setdefault(name_of(entry), []).append(entry)
        else:
            left.append(shown(entry.name))
    entries: list[Path] = []
    for own in found.values():
        # Beside a student's sources a document is no submission; two documents are one.
        read = [entry for entry in own if entry.is_dir() or _is_read(entry)]
        entries += read or own[:1]
        left += [shown(entry.name) for entry in own if entry not in (read or own[:1])]
    return sorted(entries), sorted(left)


def _is_read(file: Path) -> bool:
    return suffix(file.name) in (*SOURCES, *ARCHIVES)


def _is_dunder(file: Path) -> bool:
    return file.stem.startswith("__") and file.stem.endswith("__")


# --- notebooks -----------------------------------------------------------------------------------
#
# The code cells of a notebook, of any version and however untidy.
#
# Only the sources are read. `nbformat` would warn about, upgrade and refuse what does not matter
# here (outputs, ids, metadata), and takes seconds for a large old notebook.


_SOURCE = {1: "code", 2: "input", 3: "input", 4: "source"}  # its key in each version

ODD_CELLS = "not a notebook: its cells are not of the known form"


def code_cells(data: bytes) -> tuple[str, ...]:
    """The text of each code cell; raise `Unreadable` for what is no notebook."""
    try:
        content = json.loads(decoded(data))
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    except ValueError:
        raise Unreadable("not a notebook: the file is not JSON") from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version not in (1, 2, 3, 4):
        raise Unreadable("not a notebook of a format that is known (nbformat 1 to 4)")
    sheets = _items(content, "worksheets") if version in (2, 3) else [content]
    return tuple(
        _text(cell, _SOURCE[version])
        for sheet in sheets
        for cell in _items(sheet, "cells")
        if _field(cell, "cell_type") == "code"
    )


def _field(holder: Any, key: str) -> Any:
    if not isinstance(holder, dict) or key not in holder:
        raise Unreadable(ODD_CELLS)
    return holder[key]


def _items(holder: Any, key: str) -> list[Any]:
    items = _field(holder, key)
    if not isinstance(items, list):
        raise Unreadable(ODD_CELLS)
    return items


def _text(cell: Any, key: str) -> str:
    """A cell's source: a string, or a list of lines."""
    source = _field(cell, key)
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise Unreadable(ODD_CELLS)
    return clean("".join(lines))


# --- one submission ------------------------------------------------------------------------------


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
    def status(self) -> Literal["ready", "unreadable", "empty"]:
        """``empty`` without any file, ``unreadable`` if none could be read."""
        if self.sources:
            return "ready"
        return "unreadable" if self.problems else "empty"


def read_files(found: Iterable[FoundFile]) -> tuple[tuple[SourceText, ...], tuple[str, ...]]:
    """The text of these files, and one line for each that could not be read.

    Files of other types are told where there is no source file: a report as a PDF beside the
    answers is no problem, and in place of them it is.
    """
    sources: list[SourceText] = []
    problems: list[str] = []
    others: list[str] = []
    files, left = 0, MAX_TOTAL
    for file in found:
        if isinstance(file, Problem):
            told = others if isinstance(file, Other) else problems
            told.append(f"{file.name}: {file.why}")
            continue
        files += 1
        if files > MAX_FILES:
            problems.append(f"more than {MAX_FILES} source files; only the first ones were read")
            break
        try:
            if file.size > MAX_FILE:
                raise Unreadable(too_large(file.name))
            if file.size > left:
                raise Unreadable(f"the submission is larger than {MAX_TOTAL // 2**20} MB in all")
            left -= file.size
            sources.append(_source(file.name, file.read()))
        except Unreadable as error:
            problems.append(f"{file.name}: {error}")
        except OSError as error:
            problems.append(f"{file.name}: {reason(error)}")
    if not sources:
        problems += others
    return tuple(sources), _the_first(problems)


def _source(name: str, data: bytes) -> SourceText:
    known = suffix(name)  # in small letters, as everyone behind this expects it
    cells = code_cells(data) if known == ".ipynb" else (decoded(data),)
    return SourceText(name[: -len(known)] + known, cells)


def too_large(name: str) -> str:
    """Why a file is not read that is larger than `MAX_FILE`, and what to do."""
    told = f"larger than {MAX_FILE // 2**20} MB"
    # Plots weigh more than any code.
    return f"{told}: clear its outputs, and hand it in again" if suffix(name) == ".ipynb" else told


def _the_first(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    more = len(problems) - MAX_PROBLEMS
    return (*problems[:MAX_PROBLEMS], f"and {more} more such lines")
