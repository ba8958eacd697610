"""Moodle: the worksheet for offline grading, fresh or as Moodle exported it.

Import there needs Identifier, Grade and Last modified (grade).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grader.export.sheets import Directory, Filled, Sheet, missing, without
from grader.records.rows import Row, csv_line, number
from grader.records.wording import counted

COLUMNS = (
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
)  # fmt: skip
COMMA = re.compile(r"\d+,\d+")  # a number where people write it so
PARTICIPANT = "Participant "
KINDS = (("moodle", "Identifier"), ("id", "ID number"), ("email", "Email address"),
         ("name", "Full name"))  # fmt: skip


def fresh(rows: Sequence[Row], scale: float, most: float) -> Filled:
    """A worksheet of those whose number in Moodle is known: from a download of Moodle's."""
    lines = [csv_line(COLUMNS)]
    known = [row for row in rows if row.person.moodle]
    for row in known:
        lines.append(
            csv_line([
                f"{PARTICIPANT}{row.person.moodle}", row.person.name, row.person.email, "",
                None if row.total is None else row.total * scale, most * scale, "Yes",
                None, None, None,
            ])
        )  # fmt: skip
    return Filled("".join(lines), tuple(missing(rows, known, "the worksheet")))


def filled(
    rows: Sequence[Row], into: Path, column: str | None, scale: float, most: float
) -> Filled:  # fmt: skip
    """A worksheet that Moodle exported, with the totals in its column for grades.

    Where Moodle says that a grade cannot be changed it stays. In another language than English the
    column is to be named.
    """
    sheet = Sheet(into)
    place = sheet.required(column or "Grade")
    locked, top = sheet.place("Grade can be changed"), sheet.place("Maximum Grade")
    # In another language the columns have other names, and the first two stand where they stood.
    directory = Directory(rows, [*sheet.places(KINDS), ("moodle", 0), ("name", 1)])
    matched: list[Row] = []
    told: set[str] = set()
    kept, bare = 0, []
    for cells in sheet.rows[1:]:
        row = directory.find(cells)
        if row is None or row.total is None:
            bare.append(cells[1].strip())
            continue
        matched.append(row)
        if locked is not None and cells[locked].strip().lower() == "no":
            kept += 1
            continue
        points = number(row.total * scale)
        maximum = cells[top].strip() if top is not None else ""
        comma = any(COMMA.fullmatch(cell.strip()) for cell in cells)
        cells[place] = points.replace(".", ",") if comma else points
        if maximum and _as_number(maximum) != round(most * scale, 3):
            told.add(
                f"Moodle has a maximum grade of {maximum}, and the grades are of "
                f"{number(most * scale)}: give the assignment `points` in course.toml"
            )
    done = counted(len(matched) - kept, "row")
    lines = [*told, f"{done} filled in, in the column {sheet.header[place]!r}"]
    if kept:
        lines.append(f"locked in Moodle, and left as it was: {counted(kept, 'row')}")
    lines += [*without(bare), *missing(rows, matched, into.name)]
    return Filled(sheet.text(), tuple(lines))


def _as_number(cell: str) -> float | None:
    try:
        return round(float(cell.replace(",", ".")), 3)
    except ValueError:
        return None
