"""The rows of a sheet, in a SQLite file: in the user's cache, or in a student's bundle.

A row has a key and a value. Values are plain data in msgpack, compressed. Equal values are stored
once, under their digest, since many mistakes give the same results.

If the cache cannot be read or written, grading only takes longer. If a bundle is damaged,
`CallError` is raised, since a student has no other source of the rows.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeVar

import msgspec
import platformdirs

from grader.records.faults import CallError

Value = TypeVar("Value")
Kind = Literal[
    "asked",  # the calls of a case to a reference, and their results: `recorded.Asked`
    "gave",  # the outcome of a case on a known answer, or on the references (""): `replays.Given`
    "built",  # the outcome of a case on references that all use a mistake: `replays.Given`
    "facts",  # the facts about all right answers to an exercise: `behaviour.Behaviour`
    "exercise",  # an exercise's contract, and the names of its mistakes: `sheet.Entry`
]

VERSION = 1  # the version of the tables below
MOST_FILES = 8  # sheets in the cache, each of a course, seed and version; older ones are deleted
PATIENCE = 30  # seconds to wait while another process writes

TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    kind TEXT, name TEXT, test TEXT, label TEXT, hidden INTEGER, digest BLOB,
    PRIMARY KEY (test, label, kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (digest BLOB PRIMARY KEY, value BLOB);
"""
SELECT = "SELECT kind, name, test, label, digest, value FROM rows JOIN contents USING (digest)"
KEPT = "INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?)"
CONTENT = "INSERT OR IGNORE INTO contents VALUES (?, ?)"


class Key(NamedTuple):
    """The key of a row."""

    kind: Kind
    name: str  # the name of an exercise or of a known answer
    test: str = ""  # the test's key
    label: str = ""  # the case's label

    @property
    def hidden(self) -> bool:
        """Whether the row is about a hidden test; such a row must not reach a student."""
        return self.test.startswith("hidden ")


def cache() -> Path:
    """The folder of all cached sheets, in the user's cache; it may not exist yet."""
    return platformdirs.user_cache_path("attention-grader", appauthor=False) / "sheets"


def kept_under(basis: str) -> AbstractContextManager[Rows]:
    """The cached rows for a basis (see `order.basis`), closed at the end of the ``with`` block."""
    return closing(Rows(cache() / f"{basis}.db"))


def image(basis: str) -> bytes:
    """The bytes of a cached sheet, to send to another machine; empty if there is no such sheet."""
    path = cache() / f"{basis}.db"
    if not path.is_file():
        return b""
    try:
        with closing(sqlite3.connect(path)) as opened:
            return opened.serialize()
    except sqlite3.Error:
        return b""


def receive(basis: str, image: bytes) -> None:
    """Put a sheet from another machine into the cache, unless the cache has this sheet already."""
    path = cache() / f"{basis}.db"
    if not image or path.exists():
        return
    draft = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_bytes(image)
        path.hardlink_to(draft)  # fails if another worker made the file, which may be in use
    with suppress(OSError):
        draft.unlink()


class Rows:
    """Reads rows from a file, and adds rows to the file; without a path, no row is kept."""

    def __init__(self, path: Path | None = None) -> None:
        """The file is opened, and its folder made, only when a row is needed."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._useless = False

    def get(self, key: Key, kind: type[Value]) -> Value | None:
        """The value of a row; None if there is no such row."""
        for _, value in self._select("(kind, name, test, label) = (?, ?, ?, ?)", key):
            try:
                return msgspec.msgpack.decode(value, type=kind)
            except msgspec.MsgspecError as error:
                self._failed(error)
        return None

    def public(self, test: str) -> list[tuple[Key, bytes]]:
        """The public rows of a test, in any order; the values are in msgpack."""
        return self._select("test = ? AND NOT hidden", (test,))

    def keep(self, key: Key, value: object) -> None:
        """Add a row, unless a row with this key exists."""
        if (opened := self._opened()) is None:
            return
        content = msgspec.msgpack.encode(value)
        digest = _digest(content)
        try:
            with opened:
                opened.execute(CONTENT, (digest, _packed(content)))
                opened.execute(KEPT, (*key, key.hidden, digest))
        except sqlite3.Error as error:
            self._failed(error)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _select(self, where: str, values: Sequence[str] = ()) -> list[tuple[Key, bytes]]:
        """Keys and values of the rows that match a condition; values are checked by digest."""
        if (opened := self._opened()) is None:
            return []
        try:
            return [
                (Key(*key), _unpacked(digest, value))
                for *key, digest, value in opened.execute(f"{SELECT} WHERE {where}", values)
            ]
        except (sqlite3.Error, zlib.error, TypeError) as error:  # TypeError: a value is not bytes
            self._failed(error)
            return []

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and self._path is not None and not self._useless:
            try:
                self._connection = self._open(self._path)
            except (sqlite3.Error, OSError) as error:
                self._failed(error)
        return self._connection

    def _open(self, path: Path) -> sqlite3.Connection:
        # Only this user may read the folder, since the rows reveal hidden tests.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Immediate: if two processes write at the same time, the second waits for the first.
        # A worker of a cluster opens its desk in one thread, and closes it in another.
        opened = sqlite3.connect(
            path, isolation_level="IMMEDIATE", timeout=PATIENCE, check_same_thread=False
        )
        # Fast for small writes. A crash of the machine may damage the file; a damaged file is
        # deleted.
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA synchronous = OFF")
        with opened:
            opened.executescript(TABLES)
        path.touch()
        _remove_oldest(path.parent)
        return opened

    def _failed(self, error: Exception) -> None:
        self._useless = True
        self.close()
        # Keep the file if the disk is full, or if another process locks it for too long.
        if self._path and not isinstance(error, sqlite3.OperationalError | OSError):
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


class BundledRows(Rows):
    """The rows of a student's bundle, which are read-only."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._bundled = path

    def verify(self) -> None:
        """Raise `CallError` if any row is damaged."""
        self._select("TRUE")

    def _open(self, path: Path) -> sqlite3.Connection:
        # Immutable: SQLite takes no lock, which may fail in a read-only or network folder.
        opened = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
        (version,) = opened.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):  # an empty file has 0
            raise CallError(
                f"{path.parent} was made for another version of the kit: get the course "
                "and the kit from one place"
            )
        return opened

    def _failed(self, error: Exception) -> NoReturn:
        path = self._bundled
        raise CallError(
            f"{path} is damaged or missing: replace the folder {path.parent.name}/ with the same "
            "folder of a fresh copy of the course; your answers are in other folders, and do not "
            "change"
        ) from error


def write_rows(path: Path, rows: Mapping[Key, bytes]) -> None:
    """Write the rows of a bundle to a new file; the same rows always give the same bytes."""
    contents = {_digest(value): _packed(value) for value in rows.values()}
    with closing(sqlite3.connect(path)) as opened:
        opened.executescript(TABLES)
        opened.execute(f"PRAGMA user_version = {VERSION}")
        with opened:
            opened.executemany(CONTENT, sorted(contents.items()))
            digests = ((*key, key.hidden, _digest(value)) for key, value in sorted(rows.items()))
            opened.executemany(KEPT, digests)


def stored_size(values: Iterable[bytes]) -> int:
    """The bytes that these values take in a file of rows; equal values are stored once."""
    return sum(len(_packed(value)) for value in {*values})


def _remove_oldest(folder: Path) -> None:
    with suppress(OSError):  # another process may remove the same file at the same time
        files = sorted(folder.glob("*.db"), key=lambda path: path.stat().st_mtime)
        for path in files[:-MOST_FILES]:
            path.unlink()


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16).digest()


def _packed(value: bytes) -> bytes:
    return zlib.compress(value, level=1)  # to a sixth of the size; higher levels gain little


def _unpacked(digest: bytes, packed: bytes) -> bytes:
    value = zlib.decompress(packed)
    if _digest(value) != digest:
        raise sqlite3.DatabaseError("a value does not match its digest")
    return value
