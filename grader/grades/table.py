"""The gradebook as a table: the text of ``gradebook.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from grader.records.grade import from_thousandths, scaled, shared, thousandths
from grader.records.rows import Cell, Row, csv_line

# Columns for points that belong to no exercise and no question, in the order of `Row.beyond`.
BEYOND = ("unit_corrections", "total_correction", "penalty")


def gradebook_csv(
    rows: Sequence[Row], exercises: Sequence[str], scale: float = 1.0, *, unjudged: bool = True
) -> str:
    """A line for each student: points, status and corrections, then the roster's columns.

    A total is the sum of its line's exercises, questions and columns `BEYOND`. One point of a grade
    is written as `scale` points. Unless `unjudged`, the points of a submission in which there was
    nothing to judge are left empty, and not written as zeros. Columns that no student needs are
    left out: questions, `BEYOND`, the time of submission, and the roster's.
    """
    named = any(row.person.id or row.person.name or row.person.email for row in rows)
    person_heads = ["id", "name", "email"] if named else []
    extra_heads = list(dict.fromkeys(key for row in rows for key in row.person.extra))
    questions = list(dict.fromkeys(name for row in rows for name in row.questions))
    beyond = [n for n in range(len(BEYOND)) if any(row.beyond()[n] for row in rows)]
    timed = any(row.grade is not None and row.grade.submitted for row in rows)
    heads = [
        "student",
        "submission",
        "status",
        "total",
        "max",
        *exercises,
        *questions,
        *(BEYOND[n] for n in beyond),
        "late",
        *["submitted"] * timed,
        "attempts",
        "adjustment",
        *person_heads,
        *extra_heads,
    ]
    lines = [csv_line(heads)]
    for row in rows:
        known = unjudged or row.judged
        more = _beyond(row, scale)
        points = [
            *_points(row, [*exercises, *questions], scale, known=known),
            *(more[n] if row.has_points and known and more[n] else None for n in beyond),
        ]
        person = [getattr(row.person, field) for field in person_heads]
        extra = [row.person.extra.get(key, "") for key in extra_heads]
        cells = _cells(row, points, scale, known=known, timed=timed)
        lines.append(csv_line([*cells, *person, *extra]))
    return "".join(lines)


def _points(row: Row, parts: Sequence[str], scale: float, *, known: bool) -> list[Cell]:
    """The points of exercises and questions; None for an unmarked question, and if unknown."""
    marked = {name: row.sum_of([name]) for name in row.questions if row.correction(name)}
    own = {**row.points, **marked} if row.has_points and known else {}
    earned = dict(zip(own, shared([*own.values()], scale), strict=True))
    return [earned.get(name) for name in parts]


def _beyond(row: Row, scale: float) -> list[float]:
    """The points of the columns `BEYOND`, so that the scaled points sum to the scaled total."""
    inner = row.sum_of([*row.points, *row.questions])
    exact = accumulate(map(thousandths, (inner, *row.beyond())))
    sums = [scaled(from_thousandths(points), scale) for points in exact]
    return [
        from_thousandths(thousandths(after) - thousandths(before))
        for before, after in pairwise(sums)
    ]


def _cells(
    row: Row, points: Sequence[Cell], scale: float, *, known: bool, timed: bool
) -> list[Cell]:
    # Without a submission, or if the grader failed, the points are unknown: leave the cells empty.
    total = row.total if known else None
    shown = None if total is None else scaled(total, scale)
    corrected = scaled(row.adjustment, scale) if row.adjustments else None
    grade = row.grade
    if grade is None:
        attempts = 0 if row.conflict is None else None
        time = [None] * timed
        return [row.student, None, row.status, shown, None, *points, None, *time, attempts, None]
    return [
        row.student,
        grade.submission,
        row.status,
        shown,
        scaled(row.max or 0, scale),
        *points,
        "late" if grade.late or row.lateness is not None else None,
        *[grade.submitted] * timed,
        grade.attempts,
        corrected,
    ]
