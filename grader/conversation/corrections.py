"""What a person may do to a computed grade: add points to an exercise, or take some away."""

from __future__ import annotations

import re

from grader.course import THOUSAND, Exercise
from grader.faults import CallError
from grader.rows import Adjustment, Row
from grader.spreadsheets import number

FORM = re.compile(r"[+-]?\d{1,6}(\.\d{1,3})?")
EXPECTED = "points are a number with at most three decimals, like +1, -0.5, or 0 to take it back"


def correction(row: Row, exercise: Exercise, points: str, reason: str) -> Adjustment:
    """The correction of a student's points that a person typed; zero takes an earlier one back.

    More than the exercise's maximum is allowed: a bonus. Raises `CallError` for what makes no
    sense.
    """
    if not FORM.fullmatch(points):
        raise CallError(f"{EXPECTED}; got {points!r}")
    added = float(points)
    if added and not reason.strip():
        raise CallError("say why with --reason: the student will read it")
    if row.grade is None:
        raise CallError(f"{row.student} handed in nothing: there are no points to correct")
    if not row.known:
        raise CallError(f"the grader failed on {row.student}: grade that again first")
    computed = {result.name: result.points for result in row.grade.exercises}.get(exercise.name)
    if computed is None:
        raise CallError(f"{exercise.name} was not graded in this gradebook")
    if not added and row.correction(exercise.name) is None:
        raise CallError(f"{row.student} has no correction in {exercise.name} to take back")
    if round((computed + added) * THOUSAND) < 0:
        raise CallError(
            f"{row.student} earned {number(computed)} points in {exercise.name}: no more than "
            "that can be taken away"
        )
    return Adjustment(exercise.name, added, reason.strip())
