"""The files in a zip: the rules of a folder, for names that were made to do harm.

An entry's name is never a path on this machine; it only says who wrote what. An entry that tries
to get out of its folder costs its author a line, and nothing else: the honest files count. Only
what `zipfile` cannot open at all is given up as a whole.
"""

from __future__ import annotations

import errno
import math
import re
import stat
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from time import mktime
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from grader.intake import files
from grader.intake.files import (
    NESTED,
    NOT_PLAIN,
    FileItem,
    FoundFile,
    Listed,
    Parts,
    Problem,
    Unreadable,
    open_plain,
    reason,
    unread,
)
from grader.intake.names import ARCHIVES, SOURCES, shown, skipped, suffix

NO_ZIP = "not a zip archive, or not a sound one: make it again, with plain file names"
TOO_MANY = "it lists too many files: pack only your own"
DAMAGED = "damaged: make the archive again"
ENCRYPTED = "encrypted: make the archive without a password"
METHOD = "packed in a way that is not read: make an ordinary zip"
BOMB = f"it unpacks to more than {files.MAX_RATIO} times its size: hand in the real file"
ESCAPES = "its path leads out of the archive: pack the folder itself, without absolute paths or .."
TOO_LONG = f"a path of more than {files.MAX_PATH} characters: shorten it"
CONTROLS = "control characters in its name: rename it"
TWICE = "the archive holds several files with this path: the last one is read"
ALIKE = "another path differs only in capital letters: both are read"


class _Metered:
    """A file of which `left` bytes can still be read.

    `zipfile` builds the whole table of contents before anyone can look at it, and a million
    entries take 400 MB. A look at the size that the archive claims would take a second parser, and
    could be misled: there may be several tables, and sizes. What is read is counted instead.
    """

    def __init__(self, file: BinaryIO, left: float) -> None:
        self._file, self.left = file, left
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > self.left:
            raise Unreadable(TOO_MANY)
        data = self._file.read(size)  # without a size, it is at most the last 64 KB
        self.left -= len(data)
        return data


@contextmanager
def _told_as(why: str) -> Iterator[None]:
    """Whatever `zipfile` makes of a bad archive, as `Unreadable`; it has a dozen exceptions."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        # Of the system's errors only this one is the archive's: a place that is nowhere.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise Unreadable(why) from None


def archive_files(name: str, opened: Callable[[], BinaryIO]) -> Iterator[FoundFile]:
    """List a zip's files; a source file can be read until the next one is asked for."""
    try:
        with opened() as file:
            yield from _files(_open(file, files.MAX_DIRECTORY))
    except Unreadable as error:
        yield Problem(name, str(error))
    except OSError as error:
        yield Problem(name, reason(error))


@contextmanager
def zip_items(path: Path, most: int | None = None) -> Iterator[list[FileItem]]:
    """All plain files in a zip that is no student's own: a download of a whole assignment.

    Raises `Unreadable` or `OSError` where it is no zip, or its table of contents has more than
    `most` bytes.
    """
    with open_plain(path) as file:
        archive = _open(file, most or files.MAX_DOWNLOAD_DIRECTORY)
        yield [item for entry in archive.infolist() if (item := _item(archive, entry)) is not None]


def _open(file: BinaryIO, most: int) -> ZipFile:
    metered = _Metered(file, most)
    with _told_as(NO_ZIP):
        archive = ZipFile(metered)
    metered.left = math.inf
    return archive


def _item(archive: ZipFile, entry: ZipInfo) -> FileItem | None:
    """An entry of a download. A path that leads out of it is nobody's hand-in."""
    name = _name(entry)
    with suppress(Unreadable):
        parts = _safe_parts(name)
        if parts and not name.endswith("/"):
            return FileItem(
                parts,
                lambda shown_as: _listed(archive, entry, shown_as),
                lambda: BytesIO(_whole(archive, entry)),
                mktime((*entry.date_time, 0, 0, -1)),
            )
    return None


def _whole(archive: ZipFile, entry: ZipInfo) -> bytes:
    """An archive, or a system's note, inside a download."""
    if why_not := _refusal(entry):
        raise Unreadable(why_not)
    return _read(archive, entry, files.MAX_ARCHIVE)


def _files(archive: ZipFile) -> Iterator[FoundFile]:
    entries: dict[Parts, ZipInfo] = {}
    times: Counter[Parts] = Counter()
    for entry in archive.infolist():
        name = _name(entry)
        try:
            parts = _path(name)
        except Unreadable as error:
            yield Problem(shown(name), str(error))
            continue
        if not parts:
            continue
        if suffix(parts[-1]) in ARCHIVES:
            yield Problem(shown("/".join(parts)), NESTED)
        elif suffix(parts[-1]) not in SOURCES:
            yield unread("/".join(parts))
        else:
            # Unpacking leaves the last of two entries with one path, so that is what a teacher
            # who looks will see. Paths that differ by case are two files on Linux, and dropping
            # one could cost an honest answer: both are read, as from a folder.
            entries[parts] = entry
            times[parts] += 1
    named = _without_common_top(entries)
    folded = Counter("/".join(parts).casefold() for parts in entries)
    for parts in sorted(entries):
        entry, name = entries[parts], named[parts]
        if times[parts] > 1:
            yield Problem(name, TWICE)
        if folded["/".join(parts).casefold()] > 1:
            yield Problem(name, ALIKE)
        yield _listed(archive, entry, name)


def _listed(archive: ZipFile, entry: ZipInfo, name: str) -> FoundFile:
    why_not = _refusal(entry)
    if why_not:
        return Problem(name, why_not)
    size = max(entry.file_size, entry.compress_size)
    return Listed(name, size, partial(_read, archive, entry))


def _refusal(entry: ZipInfo) -> str | None:
    """Why an entry is not read, by its own account."""
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return NOT_PLAIN
    if entry.flag_bits & 0x2041:  # each is a way to encrypt
        return ENCRYPTED
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # others may take much memory
        return METHOD
    if entry.file_size > max(files.RATIO_FROM, files.MAX_RATIO * entry.compress_size):
        return BOMB
    return None


def _read(archive: ZipFile, entry: ZipInfo, most: int = files.MAX_FILE) -> bytes:
    """The bytes of an entry: as many as it claims to hold, or `Unreadable`."""
    # Some versions warn of entries that share bytes; what is read in all is limited anyway.
    with _told_as(DAMAGED), warnings.catch_warnings(action="ignore"), archive.open(entry) as file:
        # To ask for one byte more makes zipfile look at the checksum of an empty file, too.
        data = file.read(min(entry.file_size, most) + 1)
    if len(data) != entry.file_size:
        raise Unreadable(DAMAGED)
    return data


def _name(entry: ZipInfo) -> str:
    """An entry's name, not cut at a NUL. The flag for UTF-8 is often forgotten."""
    name = entry.orig_filename
    if not entry.flag_bits & 0x800:
        with suppress(UnicodeError):
            return name.encode("cp437").decode("utf-8")
    return name


def _safe_parts(name: str) -> Parts:
    name = name.replace("\\", "/")  # some archives from Windows are made with these
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in parts:
        raise Unreadable(ESCAPES)
    return parts


def _path(name: str) -> Parts:
    """A file's path; empty for what is nobody's answer.

    Raise `Unreadable` for a path that no honest archive has.
    """
    parts = _safe_parts(name)
    if not parts or name.endswith("/") or skipped(parts[-1], folder=False):
        return ()
    if any(skipped(part, folder=True) for part in parts[:-1]):
        return ()
    if re.search(r"[\x00-\x1f\x7f-\x9f]", name):
        # Programs disagree on where such a name ends; a Mac's "Icon\r" is nobody's answer.
        if re.search(r"\.(py|ipynb|zip)", name, re.IGNORECASE):
            raise Unreadable(CONTROLS)
        return ()
    if len(name) > files.MAX_PATH and suffix(parts[-1]) in (*SOURCES, *ARCHIVES):
        raise Unreadable(TOO_LONG)
    # macOS takes letters and their accents apart, where people type them as one.
    return tuple(unicodedata.normalize("NFC", part) for part in parts)


def _without_common_top(entries: Mapping[Parts, ZipInfo]) -> dict[Parts, str]:
    """The names to show: many people pack the folder, and not what is in it."""
    tops = {parts[0] for parts in entries}
    skip = 1 if len(tops) == 1 and all(len(parts) > 1 for parts in entries) else 0
    return {parts: shown("/".join(parts[skip:])) for parts in entries}
