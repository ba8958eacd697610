"""The points that a student lost, by exercise and test, with corrections: for `grader explain`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from grader.feedback.verdict import mistake_of
from grader.records.faults import CallError
from grader.records.grade import ENGINE_CHECKS, EXISTS, ExerciseResult, TestResult
from grader.records.lateness import percent
from grader.records.rows import Adjustment, Comment, Line, Row, corrected


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
class OtherLine:
    """Points that belong to no exercise: of a question, a unit, the total, or lateness."""

    part: str
    points: float  # added to the total; negative if they are taken away
    why: str


@dataclass(frozen=True)
class Losses:
    """A student's points, and what each exercise cost."""

    student: str
    total: float
    max: float
    exercises: tuple[ExerciseLosses, ...]
    message: str  # why the submission could not be graded; usually ""
    others: tuple[OtherLine, ...] = ()
    comments: tuple[Comment, ...] = ()


def losses_of(row: Row, exercises: Collection[str] | None = None) -> Losses:
    """A student's losses in all exercises, or in some; raises `CallError` if points are unknown."""
    grade = row.grade
    if grade is None and not row.has_points:
        raise CallError(f"{row.student} {row.ungraded}: there are no points to explain")
    if row.excused:
        raise CallError(f"{row.student} is excused: the grade does not count")
    if row.total is None:
        raise CallError(f"the grader failed on {row.student}: grade the submission again first")
    every = grade.exercises if grade is not None else ()
    results = [one for one in every if exercises is None or one.name in exercises]
    message = (grade.message or "") if grade is not None and grade.status != "graded" else ""
    own = tuple(_losses(row, result) for result in results)
    others = tuple(_other(row, line) for line in row.lines if line.part not in row.points)
    comments = tuple(c for c in row.comments if exercises is None or c.part in exercises)
    whole = exercises is None
    most = row.max or 0.0
    return Losses(row.student, row.total, most, own, message, others * whole, comments)


def _other(row: Row, line: Line) -> OtherLine:
    if line.kind == "late":
        late = row.lateness
        why = f"{late.words}: {percent(late.share)} of the points" if late is not None else ""
        return OtherLine(line.part, line.points, why)
    correction = row.correction(line.part)
    reason = f": {correction.reason}" if correction is not None and correction.reason else ""
    said = corrected(correction) if correction is not None else ""
    return OtherLine(line.part, line.points, said + reason)


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
