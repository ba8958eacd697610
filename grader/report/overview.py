"""The report on a class: statistics, common mistakes, and submissions to look at.

The statistics count only students with a graded submission. Absent students, and submissions that
could not be read, say nothing about an exercise.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from grader import __version__
from grader.course.course import Course
from grader.course.file import Assignment
from grader.grades.corrections import at_stake, command
from grader.grades.remarks import remarks
from grader.records.grade import ExerciseResult, Grade
from grader.records.lateness import Policy
from grader.records.rows import Adjustment, Row, counted, number
from grader.records.times import shown_time
from grader.report.answers import shown_passage
from grader.report.looks import looks
from grader.report.rendering import page
from grader.report.similarity import Resemblance
from grader.sandbox.jails import MEANING

if TYPE_CHECKING:
    from markupsafe import Markup

SLOWEST = 5  # submissions in the list of the slowest
FEW_NAMES = 4  # a longer list of names is folded away
BARS = 10  # bars in the histogram of totals
HARD = 0.2  # a test that a smaller share of students passes is listed
FEWEST = 3  # students needed to compute a correlation


# --- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """The number of totals from `low` to below `high`; the last bar includes `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class ExerciseNumbers:
    """The statistics of an exercise in a class; a number that is unknown is None."""

    name: str
    unit: str
    max: float
    passed: float | None  # the share of students who have all points
    mean: float | None  # the mean of the points, as a share of the maximum
    untouched: int  # students who did not change the stub
    discrimination: float | None  # a correlation from -1 to 1: see `correlation`
    tests: tuple[TestNumbers, ...] = ()


@dataclass(frozen=True)
class UnitNumbers:
    """The mean of a unit's points in a class."""

    name: str
    max: float
    mean: float  # as a share of the maximum


@dataclass(frozen=True)
class TestNumbers:
    """How many students passed a test that carries points."""

    title: str
    passed: float  # as a share of the students whose answer was tested
    tested: int  # the number of these students

    __test__ = False


@dataclass(frozen=True)
class MadeMistake:
    """A known mistake, and the students who made it."""

    exercise: str
    title: str
    hint: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class RunSetting:
    """The conditions under which some submissions were graded, and the number of submissions."""

    isolation: tuple[str, ...]
    device: str
    torch: str
    course: str  # the fingerprint of tests and references
    count: int


@dataclass(frozen=True)
class Classroom:
    """The statistics of a gradebook."""

    students: int
    graded: int
    max: float
    mean: float | None
    median: float | None
    distribution: tuple[Bar, ...]
    exercises: tuple[ExerciseNumbers, ...]
    mistakes: tuple[MadeMistake, ...]  # the most frequent first
    settings: tuple[RunSetting, ...]  # the most frequent first
    slowest: tuple[Grade, ...]  # a group's grade only once; the slowest first
    units: tuple[UnitNumbers, ...] = ()


def classroom(rows: Sequence[Row], exercises: Sequence[str]) -> Classroom:
    """The statistics of a gradebook; `exercises` are in the course's order.

    If there is a roster, only students on the roster count.
    """
    listed = [row for row in rows if not row.unlisted]
    graded = [row for row in listed if row.status == "graded"]
    grades = [row.grade for row in rows if row.grade is not None]
    totals = [row.total for row in graded if row.total is not None]
    most = max((row.max for row in rows if row.max is not None), default=0.0)
    numbers = tuple(_exercise(name, graded) for name in exercises)
    return Classroom(
        len(listed),
        len(graded),
        most,
        statistics.fmean(totals) if totals else None,
        statistics.median(totals) if totals else None,
        points_distribution(totals, most),
        numbers,
        ranked_mistakes(graded, exercises),
        tuple(_settings(grades)),
        tuple(sorted(_one_per_submission(grades), key=lambda grade: -grade.seconds)),
        tuple(_units(numbers)),
    )


def _units(exercises: Sequence[ExerciseNumbers]) -> Iterator[UnitNumbers]:
    by_unit: dict[str, list[ExerciseNumbers]] = {}
    for exercise in exercises:
        if exercise.mean is not None:
            by_unit.setdefault(exercise.unit, []).append(exercise)
    for unit, own in by_unit.items():
        most = sum(one.max for one in own)
        yield UnitNumbers(unit, most, sum((one.mean or 0) * one.max for one in own) / most)


def points_distribution(totals: Sequence[float], most: float) -> tuple[Bar, ...]:
    """The distribution of totals over equal ranges from zero to `most`.

    A correction can move a total above all ranges. Such a total counts in the last range.
    """
    width = most / BARS
    places = Counter(min(int(total / width), BARS - 1) if width else 0 for total in totals)
    return tuple(Bar(k * width, (k + 1) * width, places[k]) for k in range(BARS))


def ranked_mistakes(rows: Sequence[Row], exercises: Sequence[str]) -> tuple[MadeMistake, ...]:
    """The known mistakes that students made, the most frequent first.

    Equally frequent mistakes are in the course's order. Failures that only follow from a mistake in
    an earlier exercise are not counted.
    """
    made: dict[tuple[str, str], dict[str, None]] = {}
    hints: dict[tuple[str, str], str] = {}
    for row in rows:
        for exercise in row.grade.exercises if row.grade else ():
            for title, hint in mistakes_in(exercise):
                made.setdefault((exercise.name, title), {})[row.student] = None
                hints[exercise.name, title] = hint
    order = {name: place for place, name in enumerate(exercises)}
    ranked = sorted(made, key=lambda key: (-len(made[key]), order.get(key[0], -1), key[1]))
    return tuple(MadeMistake(*key, hints[key], tuple(made[key])) for key in ranked)


def mistakes_in(exercise: ExerciseResult) -> Iterator[tuple[str, str]]:
    """The title and hint of each known mistake that the student made in this very exercise."""
    hints = {
        test.mistake: test.hint or ""
        for test in exercise.tests
        if test.mistake and not test.follows
    }
    return iter(hints.items())


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation of two series; None if a series is too short, or constant.

    The report correlates an exercise's points with the total of all *other* exercises. This is the
    item-rest correlation (Allen and Yen, Introduction to Measurement Theory, 1979, section 6.3).
    The exercise itself is left out of the total, since its points correlate with themselves.
    """
    if len(first) < FEWEST or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(first, second)


def _exercise(name: str, rows: Sequence[Row]) -> ExerciseNumbers:
    results = [
        (result, row.points[name], row.total or 0.0)
        for row in rows
        for result in (row.grade.exercises if row.grade else ())
        if result.name == name
    ]
    if not results:
        return ExerciseNumbers(name, "", 0.0, None, None, 0, None)
    first = results[0][0]
    points = [points for _, points, _ in results]
    rests = [round(total - points, 3) for _, points, total in results]
    return ExerciseNumbers(
        name,
        first.unit,
        first.max,
        statistics.fmean(earned >= first.max for earned in points),
        statistics.fmean(points) / first.max,
        sum(result.untouched for result, _, _ in results),
        correlation(points, rests),
        tuple(_tests([result for result, _, _ in results if not result.untouched])),
    )


def _tests(results: Sequence[ExerciseResult]) -> Iterator[TestNumbers]:
    """The tests that carry points, in the order of the ladder; skipped tests are not passed."""
    statuses: dict[str, list[bool]] = {}
    for result in results:
        for test in result.tests:
            if test.max:
                statuses.setdefault(test.title, []).append(test.status == "passed")
    for title, passed in statuses.items():
        yield TestNumbers(title, statistics.fmean(passed), len(passed))


def _settings(grades: Sequence[Grade]) -> Iterator[RunSetting]:
    counted = Counter(
        (grade.isolation, grade.device, grade.torch, grade.course)
        for grade in _one_per_submission(grades)
    )
    for setting, count in counted.most_common():
        yield RunSetting(*setting, count)


def _one_per_submission(grades: Sequence[Grade]) -> Sequence[Grade]:
    """One grade for each submission: all members of a group have the same grade."""
    return [*{grade.submission: grade for grade in grades}.values()]


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Student:
    """A row of the table of students."""

    row: Row
    place: int  # the row's index, for links to the row
    page: str | None  # the address of the feedback page
    cells: Sequence[tuple[str, float | None]]  # for each exercise: the cell's class, and the points
    mistakes: Sequence[int]  # indices into `Classroom.mistakes`


@dataclass(frozen=True)
class _Stake:
    """The points that a student lost in an exercise through a mistake in an earlier exercise."""

    who: _Student
    lost: Adjustment
    corrected: Adjustment | None  # the correction that the exercise already has
    line: str | None  # the shell command that gives the points back


def report_page(
    rows: Sequence[Row],
    exercises: Sequence[str],
    course: Course,
    assignment: Assignment | None = None,
    *,
    pages: Mapping[str, str],
    pairs: Sequence[Resemblance] | None,
    folder: str | None = None,
    policy: Policy | None = None,
) -> str:
    """The report on a gradebook with these exercises; `policy` is the rule for late submissions.

    `pages` has the name of each student's feedback page, to which the report links. `pairs` are
    similar submissions, or None if submissions were not compared. `folder` is the gradebook's
    folder in the commands that correct grades. With None the report has no commands: an anonymous
    report cannot name students.
    """
    numbers = classroom(rows, exercises)
    students = _students(rows, exercises, numbers, pages)
    return page(
        "report.html",
        "report.js",
        course=course.titled(assignment),
        numbers=numbers,
        students=students,
        titles={name: exercise.title for name, exercise in course.exercises.items()},
        units=[unit.name for unit in course.units],
        names={unit.name: unit.title for unit in course.units},
        hard=[*_hard(numbers)],
        pairs=pairs,
        read=shown_passage,
        facts=[*_facts(rows, numbers, course, assignment, policy, named=folder is not None)],
        version=__version__,
        chart=_chart(numbers),
        remarks=[*remarks(rows, policy)],
        looks=[(students[look.place], look) for look in looks(rows, pairs or ())],
        slowest=numbers.slowest[:SLOWEST],
        layers=MEANING,
        few=FEW_NAMES,
        places={student.row.student: student for student in students},
        members=_members(students),
        stakes=[*_stakes(students, folder)],
    )


def _facts(
    rows: Sequence[Row],
    numbers: Classroom,
    course: Course,
    assignment: Assignment | None,
    policy: Policy | None,
    *,
    named: bool,
) -> Iterator[str]:
    """What the report is about; the same gradebook gives the same facts at any time.

    An anonymous report does not tell when the newest submission came, which may say whose it is.
    """
    if assignment is not None:
        yield f"assignment {assignment.name}"
    due = policy.due if policy is not None else assignment.due if assignment is not None else None
    if due is not None:
        yield f"due at {shown_time(due, course.zone)}"
    submitted = [row.grade.submitted for row in rows if row.grade is not None]
    newest = max(filter(None, submitted), default="")
    if newest and named:
        moment = datetime.fromisoformat(newest)
        yield f"the newest submission came at {shown_time(moment, course.zone)}"
    for setting in numbers.settings:
        yield (
            f"{counted(setting.count, 'submission')} graded with torch {setting.torch}, "
            f"tests and references {setting.course[:12]}"
        )


def _hard(numbers: Classroom) -> Iterator[tuple[str, TestNumbers]]:
    """The tests that nearly all students fail; later tests of an exercise follow from the first."""
    for exercise in numbers.exercises:
        for test in exercise.tests:
            if test.passed < HARD and test.tested >= FEWEST:
                yield exercise.name, test
                break


def _students(
    rows: Sequence[Row], exercises: Sequence[str], numbers: Classroom, pages: Mapping[str, str]
) -> list[_Student]:
    ranks = {(m.exercise, m.title): place for place, m in enumerate(numbers.mistakes)}
    students = []
    for place, row in enumerate(rows):
        made = [
            ranks[exercise.name, title]
            for exercise in (row.grade.exercises if row.grade else ())
            for title, _ in mistakes_in(exercise)
            if (exercise.name, title) in ranks
        ]
        results = {result.name: result for result in (row.grade.exercises if row.grade else ())}
        cells = [(_how_much(row, results.get(name)), row.points.get(name)) for name in exercises]
        link = f"feedback/{quote(pages[row.student])}" if row.student in pages else None
        students.append(_Student(row, place, link, cells, made))
    return students


def _how_much(row: Row, result: ExerciseResult | None) -> str:
    """The CSS class of a cell, which shows whether all, some or no points were earned."""
    points = row.points.get(result.name) if result else None
    if result is None or points is None:
        return "unknown"
    if points > 0:
        return "all" if points >= result.max else "some"
    return "untouched" if result.untouched else "zero"


def _stakes(students: Sequence[_Student], folder: str | None) -> Iterator[_Stake]:
    for student in students:
        row = student.row
        for result in row.grade.exercises if row.grade is not None and row.has_points else ():
            lost = at_stake(result)
            if lost is not None:
                line = command(folder, row.student, lost) if folder is not None else None
                yield _Stake(student, lost, row.correction(result.name), line)


def _members(students: Sequence[_Student]) -> Mapping[str, Sequence[_Student]]:
    """The students of each submission."""
    members: dict[str, list[_Student]] = {}
    for student in students:
        if student.row.grade is not None:
            members.setdefault(student.row.grade.submission, []).append(student)
    return members


def _chart(numbers: Classroom) -> Markup:
    from markupsafe import Markup

    return Markup(histogram(numbers.distribution, "Number of students by total points"))


# --- histogram -----------------------------------------------------------------------------------
#
# The page's style sheet defines the classes ``bar``, ``axis`` and ``count``.


WIDTH, HEIGHT = 640, 200
ABOVE, BELOW, GAP = 22, 26, 4  # space for counts above bars, points below, and between bars
BASE = HEIGHT - BELOW


def histogram(bars: Sequence[Bar], title: str) -> str:
    """An ``<svg>`` with counts above the bars and points below, and a description in words."""
    ends = {end: number(round(end, 1)) for end in {e for b in bars for e in (b.low, b.high)}}
    described = "; ".join(f"{ends[b.low]} to {ends[b.high]} points: {b.count}" for b in bars)
    return (
        f'<svg class="histogram" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="histogram-title" aria-describedby="histogram-described">'
        f'<title id="histogram-title">{escape(title)}</title>'
        f'<desc id="histogram-described">{escape(described)}</desc>'
        f'{"".join(_bars(bars, ends))}<path class="axis" d="M0 {BASE}H{WIDTH}"/></svg>'
    )


def _bars(bars: Sequence[Bar], ends: Mapping[float, str]) -> Iterator[str]:
    most = max((bar.count for bar in bars), default=0)
    step = WIDTH / max(len(bars), 1)
    for place, bar in enumerate(bars):
        left, middle = place * step, (place + 0.5) * step
        height = (BASE - ABOVE) * bar.count / most if most else 0
        yield (
            f'<rect class="bar" x="{left + GAP / 2:.1f}" y="{BASE - height:.1f}"'
            f' width="{step - GAP:.1f}" height="{height:.1f}"/>'
        )
        if bar.count:
            yield _text(middle, BASE - height - 6, str(bar.count), "middle", "count")
        # A narrow screen has no room for each end.
        kind = "minor" if place % 2 else ""
        yield _text(left, HEIGHT - 9, ends[bar.low], "middle" if place else "start", kind)
    if bars:
        yield _text(WIDTH, HEIGHT - 9, ends[bars[-1].high], "end")


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'
