"""The gradebook as a table: the text of ``gradebook.csv``."""

from __future__ import annotations

from collections.abc import Sequence

from grader.records.grade import scaled, shared
from grader.records.rows import Cell, Row, csv_line


def gradebook_csv(
    rows: Sequence[Row], exercises: Sequence[str], scale: float = 1.0, *, unjudged: bool = True
) -> str:
    """A line for each student: points, status and corrections, then the roster's columns.

    One point of a grade is written as `scale` points. Unless `unjudged`, the points of a submission
    in which there was nothing to judge are left empty, and not written as zeros.
    """
    named = any(row.person.id or row.person.name or row.person.email for row in rows)
    person_heads = ["id", "name", "email"] if named else []
    extra_heads = list(dict.fromkeys(key for row in rows for key in row.person.extra))
    heads = [
        "student",
        "submission",
        "status",
        "total",
        "max",
        *exercises,
        "late",
        "attempts",
        "adjustment",
        *person_heads,
        *extra_heads,
    ]
    lines = [csv_line(heads)]
    for row in rows:
        person = [getattr(row.person, field) for field in person_heads]
        extra = [row.person.extra.get(key, "") for key in extra_heads]
        cells = _cells(row, exercises, scale, known=unjudged or row.judged)
        lines.append(csv_line([*cells, *person, *extra]))
    return "".join(lines)


def _cells(row: Row, exercises: Sequence[str], scale: float, *, known: bool) -> list[Cell]:
    # Without a submission, or if the grader failed, the points are unknown: leave the cells empty.
    total = row.total if known else None
    parts = shared([*row.points.values()], scale)
    earned = dict(zip(row.points, parts, strict=True)) if known else {}
    points = [earned.get(name) for name in exercises]
    if row.grade is None:
        attempts = 0 if row.conflict is None else None
        return [row.student, None, row.status, None, None, *points, None, attempts, None]
    grade = row.grade
    return [
        row.student,
        grade.submission,
        row.status,
        None if total is None else scaled(total, scale),
        scaled(grade.max, scale),
        *points,
        "late" if grade.late else None,
        grade.attempts,
        scaled(row.adjustment, scale) if row.adjustments else None,
    ]
