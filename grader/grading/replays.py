"""Runs known answers in a course's tests.

A known mistake may loop forever. Therefore mistakes run in a fork of this process, with the limits
of a student's test, if the platform has `fork`. The references run in this process.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, starmap
from typing import Any

import msgspec

from grader.mistakes import Library, Variant
from grader.proxies.calls import CallResult
from grader.sandbox.session import Limits
from grader.unsandboxed.forked import Ended, Forked

COMMON = 12  # so many mistakes of an exercise, the first in the library, are also tried in pairs


@dataclass(frozen=True)
class Given:
    """The outcome of one case of a test: the results of its calls, and whether it passed."""

    passed: bool
    results: tuple[CallResult, ...]
    uses: tuple[str, ...] = ()  # the forbidden functions that were called, sorted


NOTHING = Given(passed=False, results=())  # a variant with this outcome is never named

# A function of definitions, a test's key and a case's label: runs the case on the definitions.
Replay = Callable[[Mapping[str, Any], str, str], Given]


@dataclass(frozen=True)
class Trial:
    """A case of a test, and the variant on which to run it, or None to run it on the references."""

    test: str
    case: str
    variant: Variant | None = None
    below: bool = False  # whether to run the case on references that all use the variant


class Replays:
    """Runs known answers; an exercise's mistakes share a fork until a mistake ends the fork."""

    def __init__(
        self,
        library: Library,
        references: Mapping[str, Any],
        replay: Replay,
        limits: Callable[[], Limits | None] = lambda: None,
    ) -> None:
        """If `limits` returns None, mistakes run in this process, without limits."""
        self.library = library
        self._limits = limits
        self._references = references
        self._replay = replay
        self._made: dict[str, Mapping[str, Any]] = {}
        self._pairs: dict[str, list[Variant]] = {}
        self._built: dict[str, Mapping[str, Any]] = {}
        self._fork: Forked | None = None
        self._forked_for = ""  # the exercise whose mistakes run in the fork
        self._unfit: set[str] = set()  # variants that did not end within the limits

    def pairs(self, exercise: str) -> Sequence[Variant]:
        """The declared pairs of mistakes, and all pairs of an exercise's commonest mistakes."""
        if exercise not in self._pairs:
            mistakes = self.library.of(exercise, "mistake")
            changes = [variant for variant in mistakes if variant.change][:COMMON]
            pairs = starmap(self.library.combined, combinations(changes, 2))
            declared = {both.id: both for both in self.library.of(exercise, "pair")}
            found = {both.id: both for both in pairs if both is not None}
            self._pairs[exercise] = [*(found | declared).values()]
        return self._pairs[exercise]

    def outcome(self, trial: Trial) -> Given | None:
        """The outcome of a trial; None if it exceeds the limits, or ends the process."""
        limits = self._limits()
        if trial.variant is None or limits is None:
            return self._tried(trial)
        if trial.variant.id in self._unfit:
            return None
        if self._fork is None or self._fork.ended or self._forked_for != trial.variant.exercise:
            self.close()
            self._fork = Forked(self._answer, limits)
            self._forked_for = trial.variant.exercise
        try:
            return msgspec.msgpack.decode(self._fork.ask(trial), type=Given)
        except Ended:
            self._unfit.add(trial.variant.id)
            return None

    def close(self) -> None:
        """End the fork, if there is one."""
        if self._fork is not None:
            self._fork.close()
            self._fork = None

    def _answer(self, trial: Trial) -> bytes:
        return msgspec.msgpack.encode(self._tried(trial))

    def _tried(self, trial: Trial) -> Given:
        try:
            if trial.variant is None:
                definitions = self._references
            elif trial.below:
                definitions = self._on(trial.variant)
            else:
                definitions = self.definitions(trial.variant)
        except Exception:  # two changes together may give a definition that cannot run
            return NOTHING
        return self._replay(definitions, trial.test, trial.case)

    def definitions(self, variant: Variant) -> Mapping[str, Any]:
        """The references' definitions, with the variant in place of its exercise's reference."""
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
        """The references' definitions, which all use the mistake `base` in place of a reference."""
        if base.id not in self._built:
            namespace: dict[str, Any] = {"__name__": f"built on {base.id}"}
            for code in (*self._together, compile(base.definition, f"<{base.id}>", "exec")):
                exec(code, namespace)
            self._built[base.id] = {name: namespace[name] for name in self._references}
        return self._built[base.id]
