"""The points that a student lost, by exercise and test, with corrections: for `grader explain`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from grader.feedback.verdict import mistake_of
from grader.records.faults import CallError
from grader.records.grade import ENGINE_CHECKS, EXISTS, ExerciseResult, TestResult
from grader.records.rows import Adjustment, Row


@dataclass(frozen=True)
class LostTest:
    """A test that cost points, or a check that explains why an exercise got none."""

    name: str
    title: str
    status: str
    lost: float
    hidden: bool
    mistake: str  # the heading of the known mistake; "" if there is none
    follows: str | None  # the earlier exercise whose mistake makes the test fail


@dataclass(frozen=True)
class ExerciseLosses:
    """What an exercise cost."""

    name: str
    points: float  # corrections included
    max: float
    tests: tuple[LostTest, ...]
    skipped: float  # the points of tests that were skipped after a failure
    passed: int  # the number of tests that passed
    correction: Adjustment | None
    counting: float  # the points by which the correction changes the total: see `Row.counting`


@dataclass(frozen=True)
class Losses:
    """A student's points, and what each exercise cost."""

    student: str
    total: float
    max: float
    exercises: tuple[ExerciseLosses, ...]
    message: str  # why the submission could not be graded; usually ""


def losses_of(row: Row, exercises: Collection[str] | None = None) -> Losses:
    """A student's losses in all exercises, or in some; raises `CallError` if points are unknown."""
    grade = row.grade
    if grade is None:
        raise CallError(f"{row.student} {row.ungraded}: there are no points to explain")
    if row.total is None:
        raise CallError(f"the grader failed on {row.student}: grade the submission again first")
    results = [one for one in grade.exercises if exercises is None or one.name in exercises]
    message = grade.message or "" if grade.status != "graded" else ""
    own = tuple(_losses(row, result) for result in results)
    return Losses(row.student, row.total, grade.max, own, message)


def _losses(row: Row, result: ExerciseResult) -> ExerciseLosses:
    correction = row.correction(result.name)
    waiting = [test for test in result.tests if test.status in ("skipped", "missing")]
    return ExerciseLosses(
        result.name,
        row.points[result.name],
        result.max,
        tuple(map(_lost, _decisive(result))),
        round(sum(test.max - test.points for test in waiting), 3),
        sum(test.status == "passed" for test in result.tests),
        correction,
        row.counting(correction) if correction else 0.0,
    )


def _decisive(result: ExerciseResult) -> list[TestResult]:
    """The tests that cost points, and failed checks by the engine; else all tests that failed."""
    if result.untouched:
        return [test for test in result.tests if test.name == EXISTS]
    failed = [
        test
        for test in result.tests
        if test.status not in ("skipped", "missing")
        and (test.status != "passed" or test.points < test.max)
    ]
    costly = [test for test in failed if test.points < test.max or test.name in ENGINE_CHECKS]
    return costly or failed


def _lost(test: TestResult) -> LostTest:
    mistake = mistake_of(test)
    return LostTest(
        test.name,
        test.title,
        test.status,
        round(test.max - test.points, 3),
        test.hidden,
        mistake.heading if mistake else "",
        test.follows,
    )
