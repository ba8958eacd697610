"""A student's feedback page: the part of a grade that students may see, and the corrections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from grader.course.course import Course
from grader.course.file import Assignment
from grader.feedback.pictures.svg import picture_svg
from grader.feedback.verdict import Finding, Verdict, verdict_of
from grader.feedback.visible import for_students
from grader.records.grade import ExerciseResult, Grade, Picture
from grader.records.rows import Adjustment, Row
from grader.report.rendering import page

if TYPE_CHECKING:
    from markupsafe import Markup

TROUBLES = {
    "graded": "Note", "empty": "The submission holds no answers to grade",
    "unreadable": "The submission cannot be read", "grader_error": "Not graded yet",
}  # fmt: skip
MANY = 512  # pictures in the cache: students with the same mistake often get the same picture


@dataclass(frozen=True)
class _Exercise:
    """The results of an exercise that its student may see."""

    verdict: Verdict
    title: str
    points: float | None  # corrections included; None if the grader failed
    adjustment: Adjustment | None
    counting: float  # the points by which the correction changes the total: see `Row.counting`

    @property
    def failed(self) -> Sequence[Finding]:
        """The tests that failed."""
        return [finding for finding in self.verdict.worth_reading if not finding.quiet]

    @property
    def rest(self) -> Sequence[Finding]:
        """The tests that did not fail: they passed, or were not run."""
        return [finding for finding in self.verdict.worth_reading if finding.quiet]

    @property
    def passed(self) -> int:
        """The number of tests that passed."""
        return sum(finding.status == "passed" for finding in self.rest)


@dataclass(frozen=True)
class _Unit:
    """The exercises of a unit, and their points."""

    name: str
    title: str
    exercises: Sequence[_Exercise]

    @property
    def points(self) -> float | None:
        """The sum of the earned points; None if some are unknown."""
        points = [exercise.points for exercise in self.exercises if exercise.points is not None]
        return round(sum(points), 3) if len(points) == len(self.exercises) else None

    @property
    def max(self) -> float:
        """The sum of the points that can be earned."""
        return round(sum(exercise.verdict.max for exercise in self.exercises), 3)


def feedback_page(row: Row, course: Course, assignment: Assignment | None = None) -> str:
    """The page of a student who has a grade."""
    assert row.grade is not None
    counts = None
    if assignment is not None and assignment.points is not None and row.total is not None:
        counts = row.total * assignment.scale(row.grade.max), assignment.points
    visible = for_students(row.grade, course)
    units = [*_units(row, visible, course)]
    return page(
        "feedback.html",
        "feedback.js",
        course=course.titled(assignment),
        counts=counts,
        row=row,
        grade=visible,
        units=units,
        corrected=[e for unit in units for e in unit.exercises if e.adjustment],
        drawn=_picture,
        trouble=TROUBLES[visible.status],
    )


def _units(row: Row, visible: Grade, course: Course) -> Iterator[_Unit]:
    titles = {unit.name: unit.title for unit in course.units}
    points = row.points
    for unit, results in groupby(visible.exercises, key=lambda result: result.unit):
        exercises = [_exercise(result, points.get(result.name), row, course) for result in results]
        yield _Unit(unit, titles.get(unit, unit), exercises)


def _exercise(result: ExerciseResult, points: float | None, row: Row, course: Course) -> _Exercise:
    known = course.exercises.get(result.name)
    title = known.title if known else result.name
    adjustment = row.correction(result.name)
    counting = row.counting(adjustment) if adjustment else 0.0
    return _Exercise(verdict_of(result), title, points, adjustment, counting)


@lru_cache(MANY)
def _picture(picture: Picture) -> Markup:
    from markupsafe import Markup

    return Markup(picture_svg(picture))
