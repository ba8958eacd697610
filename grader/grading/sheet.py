"""The sheet of a course: the results of its tests on known answers, and facts about right answers.

A sheet consists of rows, see `grader.grading.rows`. If a row is missing, the sheet runs the known
answer and keeps the result. In a student's bundle, the sheet has only recorded rows, since a bundle
has no known answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from grader import wire
from grader.course.contract import Contract
from grader.grading.replays import NOTHING, Given, Replays, Trial
from grader.grading.rows import Key, Rows
from grader.mistakes import Variant
from grader.proxies.calls import CallResult

Value = TypeVar("Value")


class NamedMistake(msgspec.Struct, frozen=True):
    """A mistake, or a pair of mistakes, without its definition."""

    slug: str
    title: str
    hint: str
    pair: bool = False
    same_as: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()  # keys of the statement's rules that it breaks


class Entry(msgspec.Struct, frozen=True):
    """An exercise: its contract, public tests and mistakes.

    If the cache has an exercise's entry, the cache also has all public rows of the exercise.
    """

    contract: Contract
    tests: list[str]  # the public tests, by key
    mistakes: list[NamedMistake]  # the mistakes that a public test catches


class Sheet:
    """Gives the results of tests on known answers; tests are named by key, cases by label."""

    def __init__(self, rows: Rows, replays: Replays | None = None) -> None:
        """Without `replays`, no known answer can run: missing rows stay missing."""
        self.replays = replays
        self._rows = rows
        self._memory: dict[Key, Any] = {}

    def mistakes(self, exercise: str) -> Sequence[Variant]:
        """The known mistakes of an exercise."""
        if self.replays is not None:
            return self.replays.library.of(exercise, "mistake")
        return self._named(exercise, pair=False)

    def pairs(self, exercise: str) -> Sequence[Variant]:
        """The pairs of an exercise's commonest mistakes."""
        if self.replays is not None:
            return self.replays.pairs(exercise)
        return self._named(exercise, pair=True)

    def given(self, variant: Variant | None, test: str, case: str) -> Given:
        """The outcome of a case on a variant, or on the references if `variant` is None."""
        return self._outcome(Trial(test, case, variant))

    def built_on(self, base: Variant, test: str, case: str) -> Given:
        """The outcome of a case on the references, which all use the mistake `base`."""
        return self._outcome(Trial(test, case, base, below=True))

    def once(self, key: Key, kind: type[Value], find: Callable[[], Value | None]) -> Value | None:
        """The value of a row; if the row is missing, the value that `find` returns.

        A value from `find` is kept as a new row, unless it is None.
        """
        if key not in self._memory:
            value = self._rows.get(key, kind)
            if value is None and (value := find()) is not None:
                self._rows.keep(key, value)
            self._memory[key] = value
        known: Value | None = self._memory[key]
        return known

    def close(self) -> None:
        """End the processes of replays."""
        if self.replays is not None:
            self.replays.close()

    def _outcome(self, trial: Trial) -> Given:
        name = trial.variant.id if trial.variant is not None else ""
        key = Key("built" if trial.below else "gave", name, trial.test, trial.case)
        return self.once(key, Given, lambda: self._found(trial)) or NOTHING

    def _found(self, trial: Trial) -> Given | None:
        given = self.replays.outcome(trial) if self.replays is not None else None
        if given is None:
            return None
        if given.passed and trial.variant is not None:
            return Given(passed=True, results=())  # right results name no mistake: drop them
        return replace(given, results=tuple(map(_without_places, given.results)))

    def _named(self, exercise: str, *, pair: bool) -> list[Variant]:
        entry = self.once(Key("exercise", exercise), Entry, lambda: None)
        return [
            Variant(
                exercise,
                named.slug,
                "mistake",
                named.title,
                named.hint,
                "",
                same_as=dict.fromkeys(named.same_as, ""),
                breaks=named.breaks,
            )
            for named in (entry.mistakes if entry is not None else ())
            if named.pair is pair
        ]


def _without_places(value: CallResult) -> CallResult:
    """An exception without its line in a known answer's file; any other result as it is."""
    if isinstance(value, wire.Raised):
        return msgspec.structs.replace(value, place=None, caller=None, uses=[])
    return value
