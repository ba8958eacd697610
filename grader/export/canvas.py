"""Canvas: a gradebook to import, or one that Canvas exported, with one column filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.export.sheets import Directory, Filled, Sheet, missing, without
from grader.records.faults import CallError
from grader.records.rows import Person, Row, csv_line, number
from grader.records.wording import counted

ABOUT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "Points Possible"
TITLE = re.compile(r"(?P<title>.*\S)\s+\(\d+\)")  # Canvas adds the assignment's own number
EXCUSED = "EX"
KINDS = (("canvas", "ID"), ("id", "SIS User ID"), ("login", "SIS Login ID"), ("name", "Student"))


def fresh(rows: Sequence[Row], title: str, scale: float, most: float) -> Filled:
    """A table of our own; a title that Canvas does not know proposes a new assignment there."""
    lines = [
        csv_line([*ABOUT, title]),
        csv_line([f"    {POINTS}", None, None, None, None, most * scale]),
    ]
    for row, (number_there, sis) in zip(rows, _ids([row.person for row in rows]), strict=True):
        person = row.person
        total = None if row.total is None else row.total * scale
        lines.append(
            csv_line([
                person.name or row.student, number_there, sis, person.email,
                person.extra.get("Section", ""), total,
            ])
        )  # fmt: skip
    return Filled("".join(lines))


def filled(
    rows: Sequence[Row], into: Path, title: str, column: str | None, scale: float, most: float
) -> Filled:  # fmt: skip
    """A table that Canvas exported, with the totals in the assignment's column.

    Rows that say EX stay excused, and who has no grade keeps what is there. Raises `CallError`
    where it is not plain which column is meant.
    """
    sheet = Sheet(into)
    sheet.required("Student")
    place = _column(sheet, title, column)
    directory = Directory(rows, sheet.places(KINDS))
    matched: list[Row] = []
    told: list[str] = []
    excused, bare = 0, []
    for cells in sheet.rows[1:]:
        if POINTS in cells[0]:
            told += _about_points(cells[place], most * scale)
            continue
        row = directory.find(cells)
        if row is None or row.total is None:
            bare.append(cells[0].strip())
            continue
        matched.append(row)
        if cells[place].strip() == EXCUSED:
            excused += 1
            continue
        cells[place] = number(row.total * scale)
    done = counted(len(matched) - excused, "row")
    told.append(f"{done} filled in, in the column {sheet.header[place]!r}")
    if excused:
        told.append(f"excused in Canvas, and left as it was: {counted(excused, 'row')}")
    told += [*without(bare), *missing(rows, matched, into.name)]
    return Filled(sheet.text(), tuple(told))


def _ids(people: Sequence[Person]) -> list[tuple[str, str]]:
    """Of each person Canvas' own number, and the university's id.

    A roster may have Canvas' numbers for ids: then those that a download tells are the same.
    """
    if any(person.id and person.id == person.canvas for person in people):
        return [(person.canvas or person.id, "") for person in people]
    return [(person.canvas, person.id) for person in people]


def _column(sheet: Sheet, title: str, wanted: str | None) -> int:
    """The column to fill in: the one that is named, or titled like the assignment, or alone."""
    if wanted is not None:
        return sheet.required(wanted, *(h for h in sheet.header if _title(h) == wanted))
    titled = [place for place, head in enumerate(sheet.header) if TITLE.fullmatch(head)]
    named = [place for place in titled if _title(sheet.header[place]).lower() == title.lower()]
    if len(named) == 1 or len(titled) == 1:
        return (named or titled)[0]
    columns = ", ".join(repr(sheet.header[place]) for place in titled) or "none at all"
    raise CallError(f"which column of {sheet.path}? --column TITLE; its assignments: {columns}")


def _title(head: str) -> str:
    match = TITLE.fullmatch(head)
    return match["title"] if match else head


def _about_points(cell: str, most: float) -> Iterator[str]:
    if cell.strip() and cell.strip().replace(".", "", 1).isdigit() and float(cell) != most:
        yield (
            f"Canvas has {number(float(cell))} points possible, and the grades are of "
            f"{number(most)}: change it there, or give the assignment `points` in course.toml"
        )
