"""Files, folders and notebooks on disk, read as text: without waiting, without following a link."""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from grader.intake.names import ARCHIVES, SOURCES, shown, skipped, suffix
from grader.wire import clean

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
# The source files in a folder, at any depth, in order of their paths.


NESTED = "an archive inside a submission is not looked into: unpack it, and hand in what it holds"


def folder_files(folder: Path) -> Iterator[FoundFile]:
    """List a folder's source files. Links are never followed."""
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


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


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
