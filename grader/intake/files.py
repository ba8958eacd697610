"""Reads a submission's source files as text, and lists its unreadable files.

Reading never blocks on a pipe and never follows a link. The limits below keep a submission under
350 MB of memory, whatever it contains:

- The text of all files takes `MAX_TOTAL` bytes, or four times as many if each file contains an
  emoji, since Python then stores each character in four bytes.
- The file being read takes `MAX_FILE` bytes, or fifty times as many if it is a notebook full of
  brackets.
- An archive's table of contents takes `MAX_DIRECTORY` bytes, and the list of entries that `zipfile`
  makes of it takes sixteen times as many.

An honest submission takes a few megabytes.
"""

from __future__ import annotations

import codecs
import encodings
import json
import os
import pkgutil
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from grader.intake.names import (
    ARCHIVES,
    SOURCES,
    may_be_submission,
    real_name,
    shown,
    skipped,
    stem_of,
    suffix,
)
from grader.wire import SourceText, clean

MAX_FILE = 4 * 2**20  # bytes of one file
MAX_FILES = 500
MAX_TOTAL = 16 * 2**20  # bytes of all files
MAX_PROBLEMS = 20  # lines about problems; an archive can hold thousands of bad entries

# A student who zips a virtual environment must still get a grade. An environment with PyTorch has
# 28,000 files, which make a table of contents of 4 MB.
MAX_DIRECTORY = 5 * 2**20  # bytes of an archive's table of contents
# The same for a download, in which several students may have zipped an environment.
MAX_DOWNLOAD_DIRECTORY = 16 * MAX_DIRECTORY
MAX_ARCHIVE = 64 * 2**20  # bytes of a student's archive inside a download
MAX_PATH = 1_000  # characters of an entry's name, folders included

# A notebook that prints zeros is compressed by a factor of 200; deflate's limit is 1,032. A file
# that is compressed by more than MAX_RATIO, and larger than RATIO_FROM, was made to exhaust memory.
MAX_RATIO = 500
RATIO_FROM = 2**20  # bytes

# --- files on disk -------------------------------------------------------------------------------


OTHER_ARCHIVE = "an archive of a kind that is not read: make it a .zip, or unpack it into a folder"
OTHER_TYPE = "not read: submit a .py file or a notebook"
NAMED_TYPES = {
    ".doc": "a Word document", ".docx": "a Word document", ".odt": "a text document",
    ".pages": "a Pages document", ".pdf": "a PDF", ".rtf": "a text document",
    ".htm": "a web page", ".html": "a web page",
}  # fmt: skip
NOT_PLAIN = "a link, a folder or a device, not a plain file: submit the file itself"

# A pipe named x.py would block whoever opens it, and a link may point at anything on this machine.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unreadable(Exception):
    """Raised for a file that is not read; the text gives the reason and, mostly, the remedy."""


@dataclass(frozen=True)
class Listed:
    """A source file that was found but not yet read.

    `read` returns at most `size` bytes, or raises `Unreadable` or `OSError`.
    """

    name: str
    size: int
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Problem:
    """A note about a file, or the reason why it is not read."""

    name: str
    why: str


@dataclass(frozen=True)
class Other(Problem):
    """A file of a type that is not read; in a submission with source files, it is ignored."""


FoundFile = Listed | Problem
Parts = tuple[str, ...]


@dataclass(frozen=True)
class FileItem:
    """A file in a download of a whole assignment: its path below the top, and how to read it."""

    parts: Parts
    found: Callable[[str], FoundFile]  # lists the file as a source file with the given name
    opened: Callable[
        [], BinaryIO
    ]  # opens an archive or a learning system's file; raises `Unreadable`, `OSError`
    modified: float = 0.0  # seconds since the epoch


def on_disk(path: Path, name: str) -> FoundFile:
    """List a file of a folder, or return a problem if it is no plain file."""
    try:
        status = path.lstat()
    except OSError as error:
        return Problem(name, reason(error))
    if not stat.S_ISREG(status.st_mode):
        return Problem(name, NOT_PLAIN)
    size = status.st_size
    return Listed(name, size, lambda: _read(path, size))


def unread(name: str) -> Problem:
    """The problem to report for a file that is not read because of its name."""
    if suffix(name) in ARCHIVES:
        return Problem(shown(name), OTHER_ARCHIVE)
    real = real_name(name)
    if real != name:
        return Problem(shown(name), f"not read under this name: call it {shown(real)}")
    kind = NAMED_TYPES.get(suffix(name))
    return Other(shown(name), f"{OTHER_TYPE}, not {kind}" if kind else OTHER_TYPE)


def item_on_disk(path: Path, parts: Parts) -> FileItem:
    """A file in an unpacked download."""
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
    """Open a plain file; raise `Unreadable` for anything else."""
    # The type is checked before opening, since opening can wake a device. It is checked again
    # afterwards, since another file may have taken the path.
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Unreadable(NOT_PLAIN)
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Unreadable(NOT_PLAIN)
    return file


def reason(error: OSError) -> str:
    """The message for a file that the system could not read, without the path on this machine."""
    return f"it cannot be read ({error.strerror or type(error).__name__})"


def decoded(data: bytes) -> str:
    """Decode text from any editor: UTF-16 with a byte-order mark, UTF-8, or else cp1252."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Editors on Windows write cp1252, in which almost every byte is a character.
        return data.decode("cp1252", errors="replace")


# Codecs that can take very long, or do not exist on every platform.
UNFIT = frozenset(
    {
        *("idna", "punycode", "mbcs", "oem", "undefined"),
        *("unicode_escape", "raw_unicode_escape", "utf_7"),
    }
)
DECLARED = re.compile(rb"[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
NO_TEXT = "it is not text that Python reads, since it holds null characters: save it as UTF-8"


@cache  # listed when a file declares an encoding: few do
def python_encodings() -> frozenset[str]:
    """The encodings that a Python file may declare (PEP 263)."""
    return frozenset(module.name for module in pkgutil.iter_modules(encodings.__path__)) - UNFIT


def python_text(data: bytes) -> str:
    """Decode a Python file; its first or second line may declare the encoding.

    Raises `Unreadable` for a file that is no text.
    """
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8))
    if b"\0" in data and not marked:
        raise Unreadable(NO_TEXT)
    first, _, rest = data.partition(b"\n")
    second = rest if not first.strip() or first.lstrip().startswith(b"#") else b""
    if not marked and (declared := DECLARED.match(first) or DECLARED.match(second)):
        name = encodings.normalize_encoding(declared[1].decode("ascii", "replace")).lower()
        if (codec := encodings.aliases.aliases.get(name, name)) in python_encodings():
            with suppress(UnicodeDecodeError, LookupError):  # LookupError: not for text
                return clean(data.decode(codec))
    return decoded(data)


# --- folders -------------------------------------------------------------------------------------
#
# The files in a folder, at any depth, in order of their paths.


NESTED = "an archive inside a submission is not read: unpack it, and submit the files in it"


def folder_files(folder: Path) -> Iterator[FoundFile]:
    """List a folder's files. Links are never followed."""
    # A stack, since recursion has a limit; names as text, since deep `Path`s are slow.
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


LEFT_BEHIND = ("__pycache__", "__MACOSX")  # folders that programs create


def name_of(path: Path) -> str:
    """The student's name, taken from the name of a file or a folder."""
    real = path.resolve()  # "." has no name, and a path that was typed may be a link
    return shown(real.name if real.is_dir() else stem_of(real.name))


def submissions_in(folder: Path) -> tuple[list[Path], list[str]]:
    """The submissions in a folder of submissions, and the names of the other entries.

    Links are never followed.
    """
    found: dict[str, list[Path]] = {}
    left: list[str] = []
    for entry in sorted(folder.iterdir()):
        if skipped(entry.name, folder=False) or entry.name in LEFT_BEHIND:
            continue
        if entry.is_symlink():
            left.append(f"{shown(entry.name)} (a link)")
        elif entry.is_dir() or (may_be_submission(entry.name) and not _is_dunder(entry)):
            found.setdefault(name_of(entry), []).append(entry)
        else:
            left.append(shown(entry.name))
    entries: list[Path] = []
    for own in found.values():
        # Documents are left out if the student also has a folder, a source file or an archive.
        # Otherwise one document counts.
        readable = (*SOURCES, *ARCHIVES)
        read = [entry for entry in own if entry.is_dir() or suffix(entry.name) in readable]
        entries += read or own[:1]
        left += [shown(entry.name) for entry in own if entry not in (read or own[:1])]
    return sorted(entries), sorted(left)


def _is_dunder(file: Path) -> bool:
    return file.stem.startswith("__") and file.stem.endswith("__")


# --- notebooks -----------------------------------------------------------------------------------
#
# Extracts the code cells of a notebook of any version, and ignores the rest.
#
# `nbformat` is not used. It warns about outputs, ids and metadata, or rejects them, although they
# do not matter here. It also takes seconds for a large old notebook.


_SOURCE = {1: "code", 2: "input", 3: "input", 4: "source"}  # the key of a cell's text, by version

ODD_CELLS = "not a notebook: its cells have an unknown form"


def code_cells(data: bytes) -> tuple[str, ...]:
    """The text of each code cell; raise `Unreadable` if the data is no notebook."""
    try:
        content = json.loads(decoded(data))
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    except ValueError:
        raise Unreadable("not a notebook: the file is not JSON") from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version not in (1, 2, 3, 4):
        raise Unreadable("not a notebook of a known format (nbformat 1 to 4)")
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


def read_files(found: Iterable[FoundFile]) -> tuple[tuple[SourceText, ...], tuple[str, ...]]:
    """The text of the source files, and a line for each file that could not be read.

    Files of other types are reported only if there is no source file: a PDF may accompany the
    answers, but cannot replace them.
    """
    sources: list[SourceText] = []
    problems: list[str] = []
    others: list[str] = []
    files, left = 0, MAX_TOTAL
    for file in found:
        if isinstance(file, Problem):
            lines = others if isinstance(file, Other) else problems
            lines.append(f"{file.name}: {file.why}")
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
    own = _without_engine(sources)
    if not own:
        problems += others
    return own, _the_first(problems)


# A file of the kit's engine, of which every student's folder holds a copy.
_ENGINE, _IN_ENGINE = "grader", "guest/server.py"


def _without_engine(sources: Sequence[SourceText]) -> tuple[SourceText, ...]:
    """The files, except copies of the engine: to look through them would cost a student time."""
    copies = tuple(
        source.name.removesuffix(_IN_ENGINE)
        for source in sources
        if f"/{source.name}".endswith(f"/{_ENGINE}/{_IN_ENGINE}")
    )
    return tuple(source for source in sources if not source.name.startswith(copies))


def _source(name: str, data: bytes) -> SourceText:
    known = suffix(name)  # in lower case, as all later code expects
    cells = code_cells(data) if known == ".ipynb" else (python_text(data),)
    return SourceText(name[: -len(known)] + known, cells)


def too_large(name: str) -> str:
    """The message for a file that is larger than `MAX_FILE`."""
    why = f"larger than {MAX_FILE // 2**20} MB"
    # A notebook of that size holds plots.
    return f"{why}: clear its outputs, and submit it again" if suffix(name) == ".ipynb" else why


def _the_first(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    more = len(problems) - MAX_PROBLEMS
    return (*problems[:MAX_PROBLEMS], f"and {more} more such lines")
