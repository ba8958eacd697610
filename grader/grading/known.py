"""How each case of a test ends on each known mistake: found out once, and kept in a file."""

from __future__ import annotations

import sqlite3
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, starmap
from pathlib import Path
from typing import Any, Protocol

import msgspec

from grader.mistakes import Library, Variant
from grader.proxies.calls import Heard

COMMON = 12  # mistakes of an exercise, from the first in the library, that are tried in pairs


@dataclass(frozen=True)
class Given:
    """What calls gave in one case of a test, and whether it passed."""

    passed: bool
    heard: tuple[Heard, ...]


NOTHING = Given(passed=False, heard=())  # which is like no answer that a student can give


class Known(Protocol):
    """A library of mistakes, and what they give. Tests are named by key, cases by label."""

    def mistakes(self, exercise: str) -> Sequence[Variant]:
        """The mistakes of an exercise."""

    def pairs(self, exercise: str) -> Sequence[Variant]:
        """The commonest of them, two at a time."""

    def given(self, variant: Variant | None, test: str, case: str) -> Given:
        """What a variant gives, or the reference."""

    def built_on(self, base: Variant, test: str, case: str) -> Given:
        """What the references give, all built on a mistake in one of them."""


GivenKey = tuple[str, ...]  # what was run, the test, the case


class Kept(Protocol):
    """What is kept for other processes; see `MistakesFile`."""

    def get(self, key: GivenKey) -> Given | None:
        """What was kept under this key."""

    def keep(self, key: GivenKey, given: Given) -> None:
        """Keep one."""


# Runs one case of a test on these definitions.
Replay = Callable[[Mapping[str, Any], str, str], Given]


class LiveKnown:
    """Runs the mistakes themselves when they are first asked for, and keeps what they give."""

    def __init__(
        self,
        library: Library,
        references: Mapping[str, Any],
        replay: Replay,
        kept: Kept | None = None,
    ) -> None:
        self.library = library
        self._kept = kept
        self._references = references
        self._replay = replay
        self._made: dict[str, Mapping[str, Any]] = {}
        self._pairs: dict[str, list[Variant]] = {}
        self._built: dict[str, Mapping[str, Any]] = {}
        self._givens: dict[GivenKey, Given] = {}

    def mistakes(self, exercise: str) -> Sequence[Variant]:
        """See `Known`."""
        return self.library.of(exercise, "mistake")

    def pairs(self, exercise: str) -> Sequence[Variant]:
        """See `Known`."""
        if exercise not in self._pairs:
            changes = [variant for variant in self.mistakes(exercise) if variant.change][:COMMON]
            pairs = starmap(self.library.combined, combinations(changes, 2))
            self._pairs[exercise] = [both for both in pairs if both is not None]
        return self._pairs[exercise]

    def given(self, variant: Variant | None, test: str, case: str) -> Given:
        """See `Known`."""
        return self._once(
            (variant.id if variant else "", test, case),
            lambda: self.definitions(variant) if variant else self._references,
        )

    def built_on(self, base: Variant, test: str, case: str) -> Given:
        """See `Known`."""
        return self._once(("all", base.id, test, case), lambda: self._on(base))

    def _once(self, key: GivenKey, definitions: Callable[[], Mapping[str, Any]]) -> Given:
        if key not in self._givens:
            kept = self._kept.get(key) if self._kept is not None else None
            self._givens[key] = kept or self._found(key, definitions)
        return self._givens[key]

    def _found(self, key: GivenKey, definitions: Callable[[], Mapping[str, Any]]) -> Given:
        try:
            given = self._replay(definitions(), *key[-2:])
        except Exception:  # a pair of changes need not make sense
            return NOTHING
        if self._kept is not None:
            self._kept.keep(key, given)
        return given

    def definitions(self, variant: Variant) -> Mapping[str, Any]:
        """The references, and instead of one of them this variant."""
        if variant.id not in self._made:
            original = self._references[variant.exercise]
            namespace = dict(vars(sys.modules[original.__module__]))
            exec(compile(variant.definition, f"<{variant.id}>", "exec"), namespace)
            self._made[variant.id] = {
                **self._references,
                variant.exercise: namespace[variant.exercise],
            }
        return self._made[variant.id]

    @cached_property
    def _together(self) -> list[types.CodeType]:
        return [compile(text, "<references>", "exec") for text in self.library.together()]

    def _on(self, base: Variant) -> Mapping[str, Any]:
        """The references, all built on a mistake in one of them."""
        if base.id not in self._built:
            namespace: dict[str, Any] = {"__name__": f"built on {base.id}"}
            for code in (*self._together, compile(base.definition, f"<{base.id}>", "exec")):
                exec(code, namespace)
            self._built[base.id] = {name: namespace[name] for name in self._references}
        return self._built[base.id]


# --- outcomes ------------------------------------------------------------------------------------
#
# How known mistakes end in a course's tests, kept in a file beside the grades.
#
# What one process of a batch has found out, the others need not, nor a later grading: for a
# student with many mistakes that takes seconds. The file is a convenience. Where it cannot be
# read or written, nothing is lost but that time.


FILE = "mistakes.db"
SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (
    basis TEXT, key BLOB, outcome BLOB, PRIMARY KEY (basis, key)
) WITHOUT ROWID;
"""


def kept_in(folder: Path, basis: str) -> AbstractContextManager[MistakesFile]:
    """What is kept in a folder, written and let go of in the end."""
    return closing(MistakesFile(folder / FILE, basis))


class MistakesFile:
    """What mistakes give, by what was run and where; `basis` is all else that decides it."""

    def __init__(self, path: Path, basis: str) -> None:
        """Nothing is opened yet, nor is the folder made: a grading may still be refused."""
        self._path = path
        self._basis = basis
        self._connection: sqlite3.Connection | None = None
        self._new: list[tuple[str, bytes, bytes]] = []
        self._useless = False

    def get(self, key: GivenKey) -> Given | None:
        """What was kept under this key."""
        try:
            if (opened := self._opened()) is None:
                return None
            row = opened.execute(
                "SELECT outcome FROM outcomes WHERE basis = ? AND key = ?",
                (self._basis, msgspec.msgpack.encode(key)),
            ).fetchone()
            return None if row is None else msgspec.msgpack.decode(row[0], type=Given)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._give_up(error)
            return None

    def keep(self, key: GivenKey, given: Given) -> None:
        """Keep one, for whoever asks from now on."""
        if self._useless:
            return
        encode = msgspec.msgpack.encode
        self._new.append((self._basis, encode(key), encode(given)))
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
