"""How known mistakes end in a course's tests, kept in the user's cache.

What one process has found out, no other of this user's need find out again, nor a later grading:
for a student with many mistakes that takes seconds. The cache is a convenience. Where it cannot be
read or written, nothing is lost but that time.
"""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
import platformdirs

GivenKey = tuple[str, ...]  # what was run, the test, the case
Kept = TypeVar("Kept")

MOST_FILES = 8  # of as many courses, seeds and versions; the oldest goes first

SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (key BLOB PRIMARY KEY, outcome BLOB) WITHOUT ROWID;
"""


def cache() -> Path:
    """The folder of all that is kept, outside every course; it need not be there."""
    return platformdirs.user_cache_path("attention-grader", appauthor=False) / "mistakes"


def kept_under(basis: str) -> AbstractContextManager[MistakesFile]:
    """What is kept for all that `basis` stands for, written and let go of in the end."""
    return closing(MistakesFile(cache() / f"{basis}.db"))


class MistakesFile:
    """What mistakes give, by what was run and where. All else that decides it names the file."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet, nor is the folder made: perhaps no answer is wrong."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._useless = False

    def get(self, key: GivenKey, kind: type[Kept]) -> Kept | None:
        """What was kept under this key."""
        if (opened := self._opened()) is None:
            return None
        try:
            row = opened.execute(
                "SELECT outcome FROM outcomes WHERE key = ?", (msgspec.msgpack.encode(key),)
            ).fetchone()
            return None if row is None else msgspec.msgpack.decode(row[0], type=kind)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._give_up(error)
            return None

    def keep(self, key: GivenKey, value: object) -> None:
        """Keep one, for whoever asks from now on."""
        if (opened := self._opened()) is None:
            return
        encode = msgspec.msgpack.encode
        try:
            with opened:
                row = encode(key), encode(value)
                opened.execute("INSERT OR IGNORE INTO outcomes VALUES (?, ?)", row)
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and not self._useless:
            try:
                # Nobody else may read it: it tells what hidden tests ask.
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                # Immediate: of two who write at once, one waits for the other.
                self._connection = sqlite3.connect(self._path, isolation_level="IMMEDIATE")
                # Thousands of small writes. After a crash of the machine it may be damaged, and is
                # then made anew.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = OFF")
                with self._connection:
                    self._connection.executescript(SCHEMA)
                self._path.touch()
                self._remove_oldest()
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
        return self._connection

    def _remove_oldest(self) -> None:
        with suppress(OSError):  # another process may remove it as well
            files = sorted(self._path.parent.glob("*.db"), key=lambda path: path.stat().st_mtime)
            for path in files[:-MOST_FILES]:
                path.unlink()

    def _give_up(self, error: Exception) -> None:
        self._useless = True
        self.close()
        # After a full disk, or where others are in the way, the file is sound.
        if not isinstance(error, (sqlite3.OperationalError, OSError)):
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
