"""The sheet of an oral exam: a CSV to tick, which `grader adjust --from` reads as corrections.

`grader adjust` leaves out a line without points and without a reason, so a student who was not
examined keeps the points. Columns that it does not know are for the examiner.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.intake.files import decoded
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.records.rows import Cell, Row, csv_line
from grader.records.tables import read_csv

VIVA = "viva"  # the folder of an oral exam in the gradebook's folder
SHEET = "marks.csv"  # in that folder
STUDENT, ALIKE = "student", "alike"  # columns with names of students
PRINTED = {STUDENT, "name", "exercise", ALIKE, "page"}  # columns that a person need not fill in
BETWEEN = "; "  # between the names in the column `ALIKE`


def marks_csv(
    rows: Sequence[Row],
    pages: Mapping[str, str],
    alike: Mapping[str, Sequence[str]],
    part: str,
    count: int,
) -> str:
    """A line for each student who has a page, with a column to tick for each of `count` questions.

    `alike` has the students with similar submissions. Marks replace the points of a question of
    the assignment, and are added to any other part.
    """
    examined = [row for row in rows if row.student in pages]
    named = any(row.person.name for row in examined)
    marks = "set" if any(part in row.questions for row in rows) else "points"
    heads = [STUDENT, *["name"] * named, "exercise", marks, "reason"]
    lines = [csv_line([*heads, *map(str, range(1, count + 1)), ALIKE, "page"])]
    for row in examined:
        cells: list[Cell] = [row.student, *[row.person.name] * named, part, None, None]
        others = BETWEEN.join(alike.get(row.student, ())) or None
        lines.append(csv_line([*cells, *[None] * count, others, pages[row.student]]))
    return "".join(lines)


def refuse_marked(sheet: Path) -> None:
    """Raise `CallError` if a person has written into a sheet, which a new sheet would replace."""
    if not sheet.is_file():
        return
    (_, heads), *lines = read_csv(decoded(sheet.read_bytes()), str(sheet)).rows or [(1, [])]
    filled = [number for number, head in enumerate(heads) if head not in PRINTED]
    for line, cells in lines:
        if any(cells[number].strip() for number in filled if number < len(cells)):
            raise CallError(
                f"{sheet}:{line}: this sheet has marks or remarks, and a new sheet would replace "
                "it: move it, or name another folder with --out"
            )


def leave_sheet(sheet: Path, student: str) -> bool:
    """Remove a student from a sheet, and keep all that a person wrote about others.

    Returns False if the sheet cannot be read, and may still name the student.
    """
    if not sheet.is_file():
        return True
    try:
        table = read_csv(decoded(sheet.read_bytes()), str(sheet))
        heads = table.rows[0][1]
        own, alike = heads.index(STUDENT), heads.index(ALIKE)
        kept = [heads]
        for _, cells in table.rows[1:]:
            if cells[own] != student:
                others = [name for name in cells[alike].split(BETWEEN) if name != student]
                kept.append([*cells[:alike], BETWEEN.join(others), *cells[alike + 1 :]])
    except (CallError, IndexError, ValueError):
        return False
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=table.separator, lineterminator=table.line_end).writerows(kept)
    write_whole(sheet, text.getvalue().encode())
    return True
