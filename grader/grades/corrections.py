"""Corrections of computed points: a person adds points to an exercise, or takes some away.

An instructor types a single correction, or gives many in a CSV. This module checks all of them; its
callers then write them to the gradebook.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from grader.course.course import Course
from grader.course.file import Exercise
from grader.feedback.verdict import mistake_of
from grader.grades.lookup import find_student
from grader.intake.files import decoded
from grader.records.faults import CallError
from grader.records.grade import OPERATIONS, ExerciseResult, thousandths
from grader.records.rows import Adjustment, Row, counted, number, some_of
from grader.records.tables import read_csv

FORM = re.compile(r"[+-]?\d{1,6}(\.\d{1,3})?")
EXPECTED = (
    "points are a number with at most three decimals, like +1 or -0.5; 0 removes the correction"
)
COLUMNS = ("student", "exercise", "points", "reason")
HEADER = f"its first line must name the columns {', '.join(COLUMNS)}, in any order"


@dataclass(frozen=True)
class Correction:
    """A student's row before and after a correction in one exercise."""

    before: Row
    after: Row
    exercise: Exercise

    @property
    def adjustment(self) -> Adjustment:
        """The adjustment to write; zero points remove an earlier correction."""
        return self.after.correction(self.exercise.name) or Adjustment(self.exercise.name, 0, "")


def correction(
    row: Row, exercise: Exercise, points: str, reason: str, *, where: str = "with --reason"
) -> Correction:
    """Check a correction that a person wrote; zero points remove an earlier correction.

    Points above the exercise's maximum are allowed, as a bonus. `where` completes the message about
    a missing reason. Raises `CallError` if the correction makes no sense.
    """
    if not FORM.fullmatch(points):
        raise CallError(f"{EXPECTED}; got {points!r}")
    added = float(points)
    if added and not reason.strip():
        raise CallError(f"give a reason {where}: the student will read it")
    if row.grade is None:
        raise CallError(f"{row.student} {row.ungraded}: there are no points to correct")
    if not row.has_points:
        raise CallError(f"the grader failed on {row.student}: grade the submission again first")
    computed = {result.name: result.points for result in row.grade.exercises}.get(exercise.name)
    if computed is None:
        raise CallError(f"{exercise.name} was not graded in this gradebook")
    if not added and row.correction(exercise.name) is None:
        raise CallError(f"{row.student} has no correction in {exercise.name} to remove")
    if thousandths(computed + added) < 0:
        raise CallError(
            f"{row.student} earned {counted(computed, 'point')} in {exercise.name}: you cannot "
            "take away more than that"
        )
    others = tuple(a for a in row.adjustments if a.exercise != exercise.name)
    new = (Adjustment(exercise.name, added, reason.strip()),) if added else ()
    return Correction(row, replace(row, adjustments=others + new), exercise)


# --- many at once --------------------------------------------------------------------------------


def corrections_from(
    data: bytes, file: str, rows: Sequence[Row], course: Course
) -> list[Correction]:
    """The corrections in a CSV with the columns `COLUMNS`; other columns are ignored.

    Raises one `CallError` that names every wrong line.
    """
    current = {row.student: row for row in rows}
    lines: dict[tuple[str, str], int] = {}  # by student and exercise
    found: list[Correction] = []
    wrong: list[str] = []
    for line, cells in _lines(data, file):
        try:
            if isinstance(cells, str):
                raise CallError(cells)
            name, exercise, points, reason = cells
            chosen = course.one(exercise, "name one exercise of it")
            student = find_student(rows, name).student
            earlier = lines.setdefault((student, chosen.name), line)
            if earlier != line:
                raise CallError(f"line {earlier} already corrects {student} in {chosen.name}")
            one = correction(current[student], chosen, points, reason, where="in the column reason")
        except CallError as error:
            wrong.append(f"line {line}: {' '.join(str(error).split())}")
        else:
            current[student] = one.after
            found.append(one)
    if wrong:
        raise CallError(f"{file}: no correction was written: {some_of(wrong)}")
    if not found:
        raise CallError(f"{file} has no line below its header: there is nothing to correct")
    return found


def _lines(data: bytes, file: str) -> Iterator[tuple[int, list[str] | str]]:
    """The number of each line, with its cells in the order of `COLUMNS`, or an error message."""
    rows = [
        (line, [cell.strip() for cell in cells])
        for line, cells in read_csv(decoded(data), file).rows
    ]
    rows = [(line, cells) for line, cells in rows if any(cells)]
    if not rows:
        raise CallError(f"{file} is empty: {HEADER}")
    (_, header), *rest = rows
    titles = [cell.casefold() for cell in header]
    if any(titles.count(column) != 1 for column in COLUMNS):
        raise CallError(f"{file} is not a table of corrections: {HEADER}")
    places = [titles.index(column) for column in COLUMNS]
    for line, cells in rest:
        if len(cells) != len(titles):
            yield line, f"it has {counted(len(cells), 'cell')}, but the header has {len(titles)}"
        else:
            yield line, [cells[place] for place in places]


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
        correction.exercise,
        f"+{number(correction.points)}",
        "--reason",
        correction.reason,
    )
    return shlex.join(words)
