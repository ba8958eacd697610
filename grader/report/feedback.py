"""A student's feedback page: the part of a grade that students may see, and the corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from grader import __version__
from grader.course.course import Course
from grader.course.file import Assignment
from grader.feedback.excerpts import without_prints
from grader.feedback.pictures.svg import panels_svg
from grader.feedback.verdict import Finding, State, Verdict, verdict_of
from grader.feedback.visible import for_students
from grader.records.decisions import TOTAL
from grader.records.grade import HEART, OPERATIONS, ExerciseResult, Grade, Picture
from grader.records.lateness import Policy, percent
from grader.records.rows import Adjustment, Row
from grader.records.times import shown_time
from grader.report.answers import Own, own_lines
from grader.report.rendering import page
from grader.wire import SourceText

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
    comment: str = ""
    own: Sequence[Own] = ()  # the student's own lines, if a test failed

    @property
    def failed(self) -> Sequence[Finding]:
        """The tests that failed; an exception that several tests met is shown once."""
        told: set[str] = set()
        failed = [finding for finding in self.verdict.worth_reading if not finding.quiet]
        return [_told_once(one, told) for one in failed if one.name not in CENTRAL]

    @property
    def broken(self) -> Sequence[Finding]:
        """The central rules that the answer breaks, whatever its results are."""
        return [one for one in self.verdict.worth_reading if one.name in CENTRAL and not one.quiet]

    @property
    def unwritten(self) -> bool:
        """Whether there is nothing to say but that the exercise is not written."""
        return self.verdict.state == "untouched" and not (self.adjustment or self.comment)

    @property
    def rest(self) -> Sequence[Finding]:
        """The tests that did not fail: they passed, or were not run."""
        return [finding for finding in self.verdict.worth_reading if finding.quiet]

    @property
    def passed(self) -> int:
        """The number of tests that passed."""
        return sum(finding.status == "passed" for finding in self.rest)


@dataclass(frozen=True)
class _Cost:
    """An exercise that lost points, and the first reason."""

    exercise: str
    lost: float
    why: str


@dataclass(frozen=True)
class _Summand:
    """A line of the sum that gives the total."""

    title: str
    points: float
    max: float | None = None
    why: str = ""


@dataclass(frozen=True)
class _Unit:
    """The exercises of a unit, and their points."""

    name: str
    title: str
    exercises: Sequence[_Exercise]
    comment: str = ""

    @property
    def unwritten(self) -> Sequence[_Exercise]:
        """The exercises that are not written, of which there is nothing else to say."""
        return [exercise for exercise in self.exercises if exercise.unwritten]

    @property
    def points(self) -> float | None:
        """The sum of the earned points; None if some are unknown."""
        points = [exercise.points for exercise in self.exercises if exercise.points is not None]
        return round(sum(points), 3) if len(points) == len(self.exercises) else None

    @property
    def max(self) -> float:
        """The sum of the points that can be earned."""
        return round(sum(exercise.verdict.max for exercise in self.exercises), 3)


def feedback_page(
    row: Row,
    course: Course,
    assignment: Assignment | None = None,
    policy: Policy | None = None,
    sources: Sequence[SourceText] = (),
) -> str:
    """The page of a student who has a grade; `policy` is the rule for late submissions.

    `sources` is the text that was graded, from which failing answers are quoted.
    """
    assert row.grade is not None
    assert row.max is not None
    counts = None
    if assignment is not None and assignment.points is not None and row.total is not None:
        counts = row.total * assignment.scale(row.max), assignment.points
    visible = for_students(row.grade, course)
    units = [*_units(row, visible, course, sources)]
    costs = _costs(units)
    return page(
        "feedback.html",
        "feedback.js",
        course=course.titled(assignment),
        counts=counts,
        row=row,
        grade=visible,
        units=units,
        corrected=[e for unit in units for e in unit.exercises if e.adjustment],
        comments=[one for one in row.comments if one.part in ("", TOTAL)],
        facts=[*_facts(row, course, policy)],
        summands=_summands(row, course),
        costs=costs[:DEAREST],
        more=len(costs[DEAREST:]),
        counts_by=_counts_by_state(units),
        cells=any(source.name.endswith(".ipynb") for source in sources),
        ask=course.file.feedback.ask,
        version=__version__,
        questions=[course.questions[name] for name in row.questions if name in course.questions],
        drawn=_picture,
        trouble=TROUBLES[visible.status],
    )


SAME = "the same exception as above"


def _told_once(finding: Finding, told: set[str]) -> Finding:
    """The finding, with `SAME` in place of an exception that is in `told`; adds its exception."""
    if finding.status != "error" or not finding.reason:
        return finding
    exception = without_prints(finding.reason)
    if exception in told:
        return replace(finding, message=finding.message.replace(exception, SAME, 1))
    told.add(exception)
    return finding


def _costs(units: Sequence[_Unit]) -> Sequence[_Cost]:
    """The exercises that lost points though they are written, the most expensive first.

    Empty if there is a single one, because that one is open anyway.
    """
    found: list[_Cost] = []
    for unit in units:
        for exercise in unit.exercises:
            verdict = exercise.verdict
            lost = verdict.max - exercise.points if exercise.points is not None else 0.0
            if lost > 0 and verdict.state == "unsolved":
                mistakes = [mistake.heading for mistake in verdict.mistakes]
                titles = [finding.title for finding in (*exercise.broken, *exercise.failed)]
                found.append(_Cost(verdict.exercise, lost, next(iter([*mistakes, *titles]), "")))
    return sorted(found, key=lambda cost: -cost.lost) if len(found) > 1 else []


def _counts_by_state(units: Sequence[_Unit]) -> str:
    """How many exercises are right, wrong, and not written, in words."""
    states = Counter(exercise.verdict.state for unit in units for exercise in unit.exercises)
    words: Mapping[State, str] = {
        "solved": "right", "unsolved": "not right yet", "untouched": "not written",
    }  # fmt: skip
    return ", ".join(f"{states[state]} {word}" for state, word in words.items() if states[state])


CENTRAL = (OPERATIONS, HEART)
DEAREST = 3  # exercises in the list of what cost most
CHOSEN = {
    "last in time": "of {} submissions, the last that was in time counts, or else the last",
    "best": "of {} submissions, the one with the most points counts",
}


def _facts(row: Row, course: Course, policy: Policy | None) -> Iterator[str]:
    """Facts about the submission: its time, which one it is, whether it is late."""
    grade = row.grade
    assert grade is not None
    if grade.submitted:
        moment = datetime.fromisoformat(grade.submitted)
        yield f"submitted at {shown_time(moment, course.zone)}"
    if row.lateness is not None:
        ours = policy is not None and policy.by == "us"
        yield row.lateness.words + ("" if ours else f" ({ELSEWHERE})")
    elif grade.late:
        yield "submitted late"
    if policy is not None and row.versions > 1:
        yield CHOSEN[policy.counts].format(row.versions)
    elif grade.attempts > 1:
        yield f"the last of {grade.attempts} submissions"


ELSEWHERE = "no points are subtracted here; the learning platform may have a rule of its own"


def _summands(row: Row, course: Course) -> Sequence[_Summand]:
    """The lines that give the total; none if exercises alone give it."""
    others = [line for line in row.lines if line.part not in row.points]
    if row.total is None or not (others or row.questions):
        return []
    found = [_Summand("exercises", row.sum_of([*row.points]), row.grade.max if row.grade else None)]
    for name, most in row.questions.items():
        known = course.questions.get(name)
        title = known.title or name if known is not None else name
        correction = row.correction(name)
        why = correction.reason if correction is not None else "not marked yet"
        comment = _comment(row, name)
        found.append(
            _Summand(title, row.sum_of([name]), most, " ".join(filter(None, [why, comment])))
        )
    titles = {unit.name: unit.title for unit in course.units}
    for line in others:
        if line.part in row.questions:
            continue
        correction = row.correction(line.part)
        if line.kind == "late" and row.lateness is not None:
            lost = percent(row.lateness.share)
            found.append(_Summand("late", line.points, None, f"{row.lateness.words}: −{lost}"))
        elif correction is not None:
            title = "whole" if line.part == TOTAL else titles.get(line.part, line.part)
            found.append(_Summand(title, line.points, None, f"{CORRECTED}: {correction.reason}"))
    return found


CORRECTED = "corrected by your instructor"


def _comment(row: Row, part: str) -> str:
    return next((one.text for one in row.comments if one.part == part), "")


def _units(
    row: Row, visible: Grade, course: Course, sources: Sequence[SourceText]
) -> Iterator[_Unit]:
    titles = {unit.name: unit.title for unit in course.units}
    points = row.points
    for unit, results in groupby(visible.exercises, key=lambda result: result.unit):
        exercises = [
            _exercise(result, points.get(result.name), row, course, sources) for result in results
        ]
        yield _Unit(unit, titles.get(unit, unit), exercises, _comment(row, unit))


def _exercise(
    result: ExerciseResult,
    points: float | None,
    row: Row,
    course: Course,
    sources: Sequence[SourceText],
) -> _Exercise:
    known = course.exercises.get(result.name)
    title = known.title if known else result.name
    adjustment = row.correction(result.name)
    counting = row.counting(adjustment) if adjustment else 0.0
    comment = _comment(row, result.name)
    verdict = verdict_of(result)
    return _Exercise(
        verdict, title, points, adjustment, counting, comment, own_lines(sources, verdict)
    )


@lru_cache(MANY)
def _picture(picture: Picture) -> Markup:
    from markupsafe import Markup

    return Markup("\n".join(panels_svg(picture)))
