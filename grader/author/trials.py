"""Runs the tests of an exercise on known answers and mutants.

Known answers are graded in a jail, like submissions. Mutants are the kit's own code, so hidden
tests run on them in this process, in milliseconds. A test that crashes by its own fault proves
nothing: it neither catches an answer nor lets it pass.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Literal

from grader.course.collection import Test
from grader.grading.desk import Desk
from grader.grading.ladder import FOUNDATIONS, grade_alone
from grader.grading.play import replay
from grader.intake import Submission
from grader.mistakes import Variant
from grader.records.grade import ENGINE_CHECKS, ExerciseResult
from grader.wire import SourceText

TOO_LONG = 3.0  # seconds: a variant that takes longer in a test counts as caught
UNPROVED = ("passed", "skipped", "missing", "grader_error")  # statuses that prove no mistake

TrialStatus = Literal["passed", "failed", "crashed"]


@dataclass(frozen=True)
class Crash:
    """An exception that a test raised by its own fault."""

    test: Test
    answer: str  # the id of the known answer or mutant
    text: str  # file and line, the exception, and its traceback


class Trials:
    """Runs one exercise's tests, and keeps the first crash of each test."""

    def __init__(self, desk: Desk, exercise: str) -> None:
        self.crashes: dict[str, Crash] = {}  # by the test's key
        self._desk = desk
        # Margins are those of the answers that are graded, not of the runs in this process.
        self._unmeasured = replace(desk, margins=None)
        self._exercise = exercise
        self._tests = desk.tests[exercise]

    def graded(self, answer: str, sources: tuple[SourceText, ...]) -> ExerciseResult:
        """Grade an answer to the exercise in a jail, like a submission."""
        submission = Submission(self._exercise, sources)
        with self._desk.seat(submission, [self._exercise]) as seat:
            result = grade_alone(self._desk, seat, self._exercise)
        crashed = {(t.name, t.hidden): t for t in result.tests if t.status == "grader_error"}
        for test in self._tests:
            if one := crashed.get((test.name, test.hidden)):
                self._crashed(test, answer, one.message_with_case or "")
        return result

    def outcome(self, answer: str, definitions: Mapping[str, Any], test: Test) -> TrialStatus:
        """Run all cases of a test on definitions in this process, up to the first failure."""
        for case in test.cases:
            with no_longer_than(TOO_LONG) as late:
                try:
                    played = replay(self._unmeasured, definitions, test, case)
                except Late:
                    return "failed"
            if played.status == "grader_error" and not late:
                again = replay(self._unmeasured, definitions, test, case, words=True)
                self._crashed(test, answer, again.message or "")
                return "crashed"
            if not played.passed:
                return "failed"
        return "passed"

    def _crashed(self, test: Test, answer: str, text: str) -> None:
        self.crashes.setdefault(test.key, Crash(test, answer, text.strip()))

    def catchers(self, variant: Variant, result: ExerciseResult) -> frozenset[str]:
        """The hidden tests that would catch a mistake if the exercise had no public checks."""
        rungs = {test.name: test.rung for test in self._tests}
        failed = [t for t in result.tests if t.status not in UNPROVED]
        if any(not t.hidden and rungs.get(t.name) in FOUNDATIONS for t in failed):
            return self.killers(variant)  # the failed public check may have skipped hidden tests
        return frozenset(t.name for t in failed if t.hidden and t.name not in ENGINE_CHECKS)

    def killers(self, variant: Variant) -> frozenset[str]:
        """The hidden tests that catch a variant; they run in this process."""
        tests = [test for test in self._tests if test.hidden]
        try:
            definitions = self._desk.replays.definitions(variant)
        except Exception:  # executing the variant's definition raises an exception
            return frozenset(test.name for test in tests)
        killers: set[str] = set()
        failed_at: str | None = None
        for test in tests:
            # As in a grading, tests are skipped if a foundation of a lower rung failed.
            if failed_at not in (None, test.rung):
                continue
            if self.outcome(variant.id, definitions, test) == "failed":
                killers.add(test.name)
                failed_at = test.rung if test.rung in FOUNDATIONS else None
        return frozenset(killers)

    def memory_suffices(self) -> bool:
        """Whether a table of the public checks' inputs and results passes all hidden tests."""
        name, ours = self._exercise, self._desk.definitions
        reference = ours[name]
        if isinstance(reference, type):
            return False  # a module's results depend on its weights, which differ in hidden tests
        remembered: dict[str, Any] = {}

        def learn(*arguments: Any, **by_name: Any) -> Any:
            value = reference(*arguments, **by_name)
            remembered[repr((arguments, by_name))] = value
            return value

        def recall(*arguments: Any, **by_name: Any) -> Any:
            return remembered[repr((arguments, by_name))]

        for test in self._tests:
            if not test.hidden:
                self.outcome("reference", {**ours, name: learn}, test)
        paid = (test for test in self._tests if test.hidden and test.weight > 0)
        answers = {**ours, name: recall}
        return all(self.outcome("a table of results", answers, test) == "passed" for test in paid)


class Late(BaseException):
    """Raised in a known answer or mutant that takes too long."""


@contextmanager
def no_longer_than(seconds: float) -> Iterator[list[float]]:
    """Raise `Late` after so many seconds of CPU time; the yielded list is then not empty.

    The code that runs may catch the exception.
    """
    late: list[float] = []

    def stop(_: int, __: FrameType | None) -> None:
        late.append(seconds)
        raise Late

    before = signal.signal(signal.SIGPROF, stop)
    # CPU time: unlike time on the clock, it does not depend on how busy the machine is.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
