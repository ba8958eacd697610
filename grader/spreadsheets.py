"""Rows of the gradebook as CSV that no spreadsheet program misreads, or runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.rows import Row

Cell = str | float | None  # None is an empty cell


def gradebook_csv(rows: Sequence[Row], exercises: Sequence[str]) -> str:
    """The gradebook as CSV: what a student earned, how it came, and what the roster says."""
    known = any(row.person.id or row.person.name or row.person.email for row in rows)
    extra = list(dict.fromkeys(key for row in rows for key in row.person.extra))
    who = ["id", "name", "email"] if known else []
    heads = [
        "student", "submission", "status", "total", "max", *exercises,
        "late", "attempts", "adjustment", *who, *extra,
    ]  # fmt: skip
    lines = [csv_line(heads)]
    for row in rows:
        person = [getattr(row.person, field) for field in who]
        further = [row.person.extra.get(key, "") for key in extra]
        lines.append(csv_line([*_cells(row, exercises), *person, *further]))
    return "".join(lines)


def _cells(row: Row, exercises: Sequence[str]) -> list[Cell]:
    # What the grader itself got wrong is no zero, nor is what never came: the cell stays empty.
    points = [row.points.get(name) for name in exercises]
    if row.grade is None:
        return [row.student, None, row.status, None, None, *points, None, 0, None]
    grade = row.grade
    return [
        row.student, grade.submission, row.status, row.total, grade.max, *points,
        "late" if grade.late else None, grade.attempts,
        row.adjustment if row.adjustments else None,
    ]  # fmt: skip


def csv_line(cells: Sequence[Cell]) -> str:
    """One line; a cell is quoted for whatever some program may take for the end of it."""
    return ",".join(map(_cell, cells)) + "\n"


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return number(cell)
    text = _harmless(cell)
    # The csv module knows one separator: a spreadsheet elsewhere has semicolons, or tabs.
    if re.search(r'[",;|\t\r\n]|^\s|\s$', text):
        return '"' + text.replace('"', '""') + '"'
    return text


def number(points: float) -> str:
    """Points without needless digits: ``2``, ``1.333``, ``-0.5``."""
    return f"{points:.3f}".rstrip("0").rstrip(".")


def _harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return (
        f"'{text}"
        if text.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
        else text
    )
