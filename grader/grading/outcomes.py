"""How known mistakes end in a course's tests, kept in a file beside the grades.

What one process of a batch has found out, the others need not, nor a later grading: for a student
with many mistakes that takes seconds. The file is a convenience. Where it cannot be read or
written, nothing is lost but that time.
"""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.records.files import MISTAKES

GivenKey = tuple[str, ...]  # what was run, the test, the case
Kept = TypeVar("Kept")

SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (
    basis TEXT, key BLOB, outcome BLOB, PRIMARY KEY (basis, key)
) WITHOUT ROWID;
"""


def kept_in(folder: Path, basis: str) -> AbstractContextManager[MistakesFile]:
    """What is kept in a folder, written and let go of in the end."""
    return closing(MistakesFile(folder / MISTAKES, basis))


class MistakesFile:
    """What mistakes give, by what was run and where; `basis` is all else that decides it."""

    def __init__(self, path: Path, basis: str) -> None:
        """Nothing is opened yet, nor is the folder made: a grading may still be refused."""
        self._path = path
        self._basis = basis
        self._connection: sqlite3.Connection | None = None
        self._new: list[tuple[str, bytes, bytes]] = []
        self._useless = False

    def get(self, key: GivenKey, kind: type[Kept]) -> Kept | None:
        """What was kept under this key."""
        try:
            if (opened := self._opened()) is None:
                return None
            row = opened.execute(
                "SELECT outcome FROM outcomes WHERE basis = ? AND key = ?",
                (self._basis, msgspec.msgpack.encode(key)),
            ).fetchone()
            return None if row is None else msgspec.msgpack.decode(row[0], type=kind)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._give_up(error)
            return None

    def keep(self, key: GivenKey, value: object) -> None:
        """Keep one, for whoever asks from now on."""
        if self._useless:
            return
        encode = msgspec.msgpack.encode
        self._new.append((self._basis, encode(key), encode(value)))
        self._write()

    def close(self) -> None:
        """Let go of the file."""
        self._write()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self) -> None:
        try:
            if (opened := self._opened()) is not None:
                with opened:
                    opened.executemany("INSERT OR IGNORE INTO outcomes VALUES (?, ?, ?)", self._new)
                self._new.clear()
        except sqlite3.Error as error:
            self._give_up(error)

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and not self._useless and self._path.parent.is_dir():
            # Immediate: of two who write at once, one waits for the other.
            self._connection = sqlite3.connect(self._path, isolation_level="IMMEDIATE")
            # After a crash of the machine it may be damaged, and is then made anew.
            self._connection.execute("PRAGMA synchronous = OFF")
            with self._connection:
                self._connection.executescript(SCHEMA)
                self._connection.execute("DELETE FROM outcomes WHERE basis <> ?", (self._basis,))
        return self._connection

    def _give_up(self, error: Exception) -> None:
        self._useless = True
        self._new.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        # After a full disk, or where others are in the way, the file is sound.
        if not isinstance(error, sqlite3.OperationalError):
            self._path.unlink(missing_ok=True)
