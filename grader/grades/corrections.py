"""Points that a person gives: corrections of computed points, and marks for questions without code.

An instructor types a single one, or gives many in a CSV. This module checks all of them; its
callers then write them to the gradebook.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.course.course import Course
from grader.feedback.verdict import mistake_of
from grader.grades.entries import Columns, entries
from grader.grades.lookup import find_student
from grader.records.decisions import LATE, TOTAL
from grader.records.faults import CallError
from grader.records.grade import OPERATIONS, ExerciseResult, thousandths
from grader.records.rows import Adjustment, Row, counted, number

FORM = re.compile(r"([+-]?|=-?)\d{1,6}(\.\d{1,3})?")
EXPECTED = (
    "points are a number with at most three decimals: +1 or -0.5 adds, =3 sets, and 0 removes the "
    "correction"
)
COLUMNS = Columns(
    "corrections",
    ("student", "exercise", "reason"),
    either=("points", "set"),
    aliases={"part": "exercise", "question": "exercise", "unit": "exercise"},
)


@dataclass(frozen=True)
class Correction:
    """A student's row before and after a correction of a part of the grade."""

    before: Row
    after: Row
    part: str

    @property
    def adjustment(self) -> Adjustment:
        """The adjustment to write; zero points remove an earlier correction."""
        return self.after.correction(self.part) or Adjustment(self.part, 0, "")


def part_named(course: Course, name: str) -> str:
    """The part of a grade that a person names; raises `CallError` if there is none."""
    if name in (TOTAL, LATE) or name in course.questions:
        return name
    if name not in course.exercises:
        course.select([name])  # raises an error with a suggestion, unless the name is a unit
    return name


def correction(
    row: Row, part: str, points: str, reason: str, *, where: str = "with --reason"
) -> Correction:
    """Check points that a person wrote; zero points remove an earlier correction.

    Points above the maximum are allowed, as a bonus. `where` completes the message about a missing
    reason. Raises `CallError` if the correction makes no sense.
    """
    if not FORM.fullmatch(points):
        raise CallError(f"{EXPECTED}; got {points!r}")
    sets, given = points.startswith("="), float(points.removeprefix("="))
    removes = not sets and not given
    if not removes and not reason.strip():
        raise CallError(f"give a reason {where}: the student will read it")
    others = tuple(a for a in row.adjustments if a.part != part)
    bare = replace(row, adjustments=others)
    earlier = row.correction(part)
    if removes:
        if earlier is None:
            raise CallError(f"{row.student} has no correction in {part} to remove")
        return Correction(row, bare, part)
    new = Adjustment(part, given, reason.strip(), sets)
    after = replace(row, adjustments=(*others, new))
    _refuse_unknown(row, part)
    _refuse_too_much(new, after, bare)
    return Correction(row, after, part)


def _refuse_unknown(row: Row, part: str) -> None:
    """Raise `CallError` if a person cannot give points for this part of the student's grade."""
    computed = part not in row.questions and part != TOTAL
    if row.grade is None and (computed or row.conflict is not None):
        raise CallError(f"{row.student} {row.ungraded}: there are no points to correct")
    if row.grade is not None and not row.has_points:
        raise CallError(f"the grader failed on {row.student}: grade the submission again first")
    if part not in row.parts:
        raise CallError(f"{part} was not graded in this gradebook")


def _refuse_too_much(given: Adjustment, after: Row, bare: Row) -> None:
    """Raise `CallError` if points would be negative, or if lateness would give points."""
    part, student = given.part, after.student
    if part == LATE:
        lost = -bare.sum_of([LATE])
        left = thousandths(given.points if given.sets else given.points - lost)
        if left > 0:
            raise CallError(
                f"{student} loses {counted(lost, 'point')} for lateness: you cannot give back more "
                "than that; =0 gives back all of it"
            )
        earned = after.earned
        if left < -thousandths(earned):
            raise CallError(
                f"{student} earned {counted(earned, 'point')}: lateness cannot take away more"
            )
        return
    if given.sets and given.points < 0:
        raise CallError(f"{student}'s points in {part} cannot be below 0")
    computed = bare.sum_of([*bare.within(part)])
    if not given.sets and thousandths(computed + given.points) < 0:
        raise CallError(
            f"{student} earned {counted(computed, 'point')} in {part}: you cannot take away more "
            "than that"
        )


# --- many at once --------------------------------------------------------------------------------


def corrections_from(
    data: bytes, file: str, rows: Sequence[Row], course: Course
) -> list[Correction]:
    """The corrections in a CSV with the columns `COLUMNS`.

    The column ``points`` has points to add, and ``set`` those that replace the computed points.
    A line without points and without a reason says nothing, and is left out. Raises one
    `CallError` that names every wrong line.
    """
    current = {row.student: row for row in rows}
    lines: dict[tuple[str, str], int] = {}  # by student and part

    def make(line: int, cells: Mapping[str, str]) -> Correction | None:
        part = part_named(course, cells["exercise"])
        student = find_student(rows, cells["student"]).student
        earlier = lines.setdefault((student, part), line)
        if earlier != line:
            raise CallError(f"line {earlier} already corrects {student} in {part}")
        added, fixed = cells.get("points", ""), cells.get("set", "")
        if not (added or fixed or cells["reason"]):
            return None
        if added and fixed:
            raise CallError("fill in points, to add, or set, to replace: not both")
        points = f"={fixed.removeprefix('=')}" if fixed else added
        one = correction(
            current[student], part, points, cells["reason"], where="in the column reason"
        )
        current[student] = one.after
        return one

    found = [one for one in entries(data, file, COLUMNS, make) if one is not None]
    if not found:
        raise CallError(f"{file} has no points: there is nothing to write")
    return found


# --- points lost through an earlier mistake ------------------------------------------------------


def at_stake(result: ExerciseResult) -> Adjustment | None:
    """The correction that gives back the points lost through a mistake in an earlier exercise.

    These are the points of tests that failed only because of that mistake, and of tests that were
    skipped after them. None if no points were lost in this way.
    """
    following = [test for test in result.tests if test.follows]
    lost = [test for test in result.tests if test.follows or test.status == "skipped"]
    points = round(sum(test.max - test.points for test in lost), 3)
    forbidden = any(t.name == OPERATIONS and t.status != "passed" for t in result.tests)
    if not following or not points or forbidden:
        return None
    mistake = mistake_of(following[0])
    return Adjustment(result.name, points, mistake.heading if mistake else "")


def command(folder: str, student: str, correction: Adjustment) -> str:
    """The shell command that writes a correction."""
    words = (
        "grader",
        "adjust",
        folder,
        student,
        correction.part,
        f"+{number(correction.points)}",
        "--reason",
        correction.reason,
    )
    return shlex.join(words)
