"""Lists the files in a zip, as `files` lists those in a folder; the zip may be hostile.

An entry's name is only shown and compared, never used as a path on this machine. If the name leads
out of the archive, the entry is not read, and the other files count. Only an archive that `zipfile`
cannot open is rejected as a whole.
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

NO_ZIP = "not a zip archive, or a damaged one: make it again, with plain file names"
TOO_MANY = "it lists too many files: pack only your own"
DAMAGED = "damaged: make the archive again"
ENCRYPTED = "encrypted: make the archive without a password"
METHOD = "packed with a method that is not supported: make an ordinary zip"
BOMB = f"it unpacks to more than {files.MAX_RATIO} times its size: submit the real file"
ESCAPES = "its path leads out of the archive: pack the folder itself, without absolute paths or .."
TOO_LONG = f"a path of more than {files.MAX_PATH} characters: shorten it"
CONTROLS = "control characters in its name: rename it"
TWICE = "the archive holds several files with this path: the last one is read"
ALIKE = "another path differs only in capital letters: both are read"


class _Metered:
    """A file of which at most `left` more bytes can be read.

    `zipfile` builds the whole table of contents before the caller can inspect it, and a million
    entries take 400 MB. Checking the claimed size first would need a second parser, which an
    archive with several tables could mislead. This class counts the bytes that are read instead.
    """

    def __init__(self, file: BinaryIO, left: float) -> None:
        self._file, self.left = file, left
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > self.left:
            raise Unreadable(TOO_MANY)
        data = self._file.read(size)  # zipfile omits the size only to read the last 64 KB
        self.left -= len(data)
        return data


@contextmanager
def _as_unreadable(why: str) -> Iterator[None]:
    """Turn the dozen exceptions that `zipfile` raises for a bad archive into `Unreadable`."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:
        # A bad archive can cause EINVAL, by a seek to an invalid offset, but no other `OSError`.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise Unreadable(why) from None


def archive_files(name: str, opened: Callable[[], BinaryIO]) -> Iterator[FoundFile]:
    """List a zip's files. A listed file can be read until the next one is asked for."""
    try:
        with opened() as file:
            yield from _files(_open(file, files.MAX_DIRECTORY))
    except Unreadable as error:
        yield Problem(name, str(error))
    except OSError as error:
        yield Problem(name, reason(error))


@contextmanager
def zip_items(path: Path, most: int | None = None) -> Iterator[list[FileItem]]:
    """Yield the files in a zip that is a download of a whole assignment.

    Raises `Unreadable` or `OSError` if the file is no zip, or if its table of contents is larger
    than `most` bytes.
    """
    with open_plain(path) as file:
        archive = _open(file, most or files.MAX_DOWNLOAD_DIRECTORY)
        yield [item for entry in archive.infolist() if (item := _item(archive, entry)) is not None]


def _open(file: BinaryIO, most: int) -> ZipFile:
    metered = _Metered(file, most)
    with _as_unreadable(NO_ZIP):
        archive = ZipFile(metered)
    metered.left = math.inf
    return archive


def _item(archive: ZipFile, entry: ZipInfo) -> FileItem | None:
    """A file in a download; None for a folder, and for a path that leads out of the archive."""
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
    """The bytes of an entry in a download: a student's archive, or a learning system's own file."""
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
            # Of entries with the same path, the last counts. Unpacking leaves the last, too, and a
            # teacher who unpacks the zip must see the file that was graded. Paths that differ only
            # by case are two files on Linux; both are read, since each may hold an honest answer.
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
    """Why an entry is not read, judging by its header; None if it is read."""
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        return NOT_PLAIN
    if entry.flag_bits & 0x2041:  # each bit marks a kind of encryption
        return ENCRYPTED
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # other methods can exhaust memory
        return METHOD
    if entry.file_size > max(files.RATIO_FROM, files.MAX_RATIO * entry.compress_size):
        return BOMB
    return None


def _read(archive: ZipFile, entry: ZipInfo, most: int = files.MAX_FILE) -> bytes:
    """The bytes of an entry; raises `Unreadable` if the header gives another number of bytes."""
    # Some Python versions warn of entries that share bytes. These are harmless, since the total
    # size is limited.
    with (
        _as_unreadable(DAMAGED),
        warnings.catch_warnings(action="ignore"),
        archive.open(entry) as file,
    ):
        # Asking for one byte more makes zipfile check the checksum of empty files, too.
        data = file.read(min(entry.file_size, most) + 1)
    if len(data) != entry.file_size:
        raise Unreadable(DAMAGED)
    return data


def _name(entry: ZipInfo) -> str:
    """An entry's name, including any text after a NUL.

    The name is decoded as UTF-8 if possible, since many programs write UTF-8 without its flag.
    """
    name = entry.orig_filename
    if not entry.flag_bits & 0x800:
        with suppress(UnicodeError):
            return name.encode("cp437").decode("utf-8")
    return name


def _safe_parts(name: str) -> Parts:
    name = name.replace("\\", "/")  # some programs on Windows write backslashes
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in parts:
        raise Unreadable(ESCAPES)
    return parts


def _path(name: str) -> Parts:
    """A file's path; empty for folders and for files that cannot hold answers.

    Raises `Unreadable` for a path that is unsafe or too long.
    """
    parts = _safe_parts(name)
    if not parts or name.endswith("/") or skipped(parts[-1], folder=False):
        return ()
    if any(skipped(part, folder=True) for part in parts[:-1]):
        return ()
    if re.search(r"[\x00-\x1f\x7f-\x9f]", name):
        # Programs disagree on where such a name ends. A Mac's "Icon\r" is no answer: ignore it.
        if re.search(r"\.(py|ipynb|zip)", name, re.IGNORECASE):
            raise Unreadable(CONTROLS)
        return ()
    if len(name) > files.MAX_PATH and suffix(parts[-1]) in (*SOURCES, *ARCHIVES):
        raise Unreadable(TOO_LONG)
    # macOS stores a letter and its accent as two characters; people type a single one.
    return tuple(unicodedata.normalize("NFC", part) for part in parts)


def _without_common_top(entries: Mapping[Parts, ZipInfo]) -> dict[Parts, str]:
    """The names to show, by path, without the top folder if it holds all entries."""
    tops = {parts[0] for parts in entries}
    skip = 1 if len(tops) == 1 and all(len(parts) > 1 for parts in entries) else 0
    return {parts: shown("/".join(parts[skip:])) for parts in entries}
