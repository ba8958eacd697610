"""The page of a class: a gradebook's numbers, who is behind them, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from grader.course.course import Course
from grader.course.file import Assignment
from grader.grades.corrections import at_stake, command
from grader.records.grade import ExerciseResult
from grader.records.rows import Adjustment, Row
from grader.report.rendering import page
from grader.report.similarity import SimilarPair
from grader.report.statistics import Classroom, classroom, histogram, mistakes_in
from grader.sandbox.isolation import MEANING

if TYPE_CHECKING:
    from markupsafe import Markup

SLOWEST = 5  # submissions that are listed
FEW_NAMES = 4  # that are listed without being asked for


@dataclass(frozen=True)
class _Student:
    """A row of the matrix."""

    row: Row
    place: int  # by which links find it
    page: str | None  # the feedback, as a link
    cells: Sequence[tuple[str, float | None]]  # how much of an exercise's points, and the points
    mistakes: Sequence[int]  # their places in the ranking


@dataclass(frozen=True)
class _Stake:
    """What failed in an exercise only through an earlier mistake."""

    who: _Student
    lost: Adjustment
    corrected: Adjustment | None  # what a person has decided already
    line: str | None  # for a shell: it gives back what was lost


def report_page(
    rows: Sequence[Row],
    exercises: Sequence[str],
    course: Course,
    assignment: Assignment | None = None,
    *,
    pages: Mapping[str, str],
    pairs: Sequence[SimilarPair] | None,
    folder: str | None = None,
) -> str:
    """The page of a gradebook with these exercises.

    `pages` are files of feedback by student, for links to them; `pairs` are submissions that look
    alike, None where nobody compared them; `folder` is the gradebook's, as commands name it, None
    where students are not named by their names.
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
        pairs=pairs,
        chart=_chart(numbers),
        looks=[one for one in students if _needs_a_look(one.row)],
        slowest=numbers.slowest[:SLOWEST],
        layers=MEANING,
        few=FEW_NAMES,
        places={student.row.student: student for student in students},
        members=_members(students),
        stakes=[*_stakes(students, folder)],
    )


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
    """The class of a cell: how much of an exercise's points there is."""
    points = row.points.get(result.name) if result else None
    if result is None or points is None:
        return "unknown"
    if points > 0:
        return "all" if points >= result.max else "some"
    return "untouched" if result.untouched else "zero"


def _stakes(students: Sequence[_Student], folder: str | None) -> Iterator[_Stake]:
    for student in students:
        row = student.row
        for result in row.grade.exercises if row.grade is not None and row.known else ():
            lost = at_stake(result)
            if lost is not None:
                line = command(folder, row.student, lost) if folder is not None else None
                yield _Stake(student, lost, row.correction(result.name), line)


def _needs_a_look(row: Row) -> bool:
    return row.status != "graded" or bool(row.grade and row.grade.notes)


def _members(students: Sequence[_Student]) -> Mapping[str, Sequence[_Student]]:
    """The students of each submission."""
    members: dict[str, list[_Student]] = {}
    for student in students:
        if student.row.grade is not None:
            members.setdefault(student.row.grade.submission, []).append(student)
    return members


def _chart(numbers: Classroom) -> Markup:
    from markupsafe import Markup

    return Markup(histogram(numbers.distribution, "How many students have how many points"))
