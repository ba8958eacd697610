"""One file on disk: opened without waiting and without following a link, and read as text."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

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


Found = Listed | Problem
Parts = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """A file in a download of a whole assignment: its path below the top, and ways to read it."""

    parts: Parts
    found: Callable[[str], Found]  # as a source file, which is shown under this name
    opened: Callable[[], BinaryIO]  # as an archive or a note; raises `Unreadable`, `OSError`
    modified: float = 0.0  # seconds since the epoch


def on_disk(path: Path, name: str) -> Found:
    """A file in a folder, as it is listed."""
    try:
        status = path.lstat()
    except OSError as error:
        return Problem(name, reason(error))
    if not stat.S_ISREG(status.st_mode):
        return Problem(name, NOT_PLAIN)
    size = status.st_size
    return Listed(name, size, lambda: _read(path, size))


def item_on_disk(path: Path, parts: Parts) -> Item:
    """A file in a download that was unpacked."""
    with suppress(OSError):
        return Item(parts, partial(on_disk, path), partial(open_plain, path), path.lstat().st_mtime)
    return Item(parts, partial(on_disk, path), partial(open_plain, path))


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
