"""Fills in one column of a table that another system exported; writes a spreadsheet.

All other cells of an exported table keep their text.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.grades.exported import NO_PAST, Mark, Push
from grader.grades.table import gradebook_csv
from grader.intake.names import shown
from grader.lms.system import Filled, System, Table, Totals
from grader.records.faults import CallError
from grader.records.rows import (
    Row,
    called,
    counted,
    letters,
    number,
    some_of,
    spellings,
)
from grader.records.tables import read_csv

BOM = "\ufeff"
EXCUSED_THERE = (
    "left unchanged: grades of excused students that this gradebook did not write there (to "
    "overwrite them: --overwrite NAME)"
)
NO_MARK = ("", "-")  # how systems write that there is no grade


class Sheet:
    """A CSV that another system exported and will import again."""

    def __init__(self, path: Path) -> None:
        try:
            data, moment = path.read_bytes(), path.stat().st_mtime_ns
            text = data.decode("utf-8")
        except OSError as error:
            raise CallError(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CallError(f"{path} is not UTF-8: export it again, as CSV") from None
        self.path = path
        # Identifies this file. Another export of the system may have the same content: for example,
        # if a person put an old grade back.
        salt = moment.to_bytes(16, signed=True)
        self.digest = hashlib.blake2b(data, salt=salt, digest_size=16).hexdigest()
        self._bom = text.startswith(BOM)
        text = text.removeprefix(BOM)
        table = read_csv(text, str(path))
        self._line_end, self.separator = table.line_end, table.separator
        rows = [cells for _, cells in table.rows]
        if not rows:
            raise CallError(f"{path} is empty")
        self.header, self.rows = [cell.strip() for cell in rows[0]], rows
        for row in rows:  # a line may have fewer cells than the header
            row += [""] * (len(self.header) - len(row))

    def place(self, *names: str) -> int | None:
        """The index of the first column in `names` that the table has; None if it has none."""
        return next((self.header.index(name) for name in names if name in self.header), None)

    def places(self, kinds: Iterable[tuple[Kind, str]]) -> Places:
        """The indices of the columns that identify a student, each with its kind of key."""
        found = [(kind, self.place(name)) for kind, name in kinds]
        return [(kind, place) for kind, place in found if place is not None]

    def required(self, *names: str) -> int:
        """The index of the first column in `names` that the table has; else `CallError`."""
        place = self.place(*names)
        if place is None:
            raise CallError(
                f"{self.path} has no column {' or '.join(names)}; it has: {', '.join(self.header)}"
            )
        return place

    def text(self) -> str:
        """The table as CSV."""
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=self.separator, lineterminator=self._line_end).writerows(
            self.rows
        )
        return self._bom * BOM + out.getvalue()


@dataclass(frozen=True)
class Kind:
    """A kind of key that identifies a student in a line of a table."""

    of: Callable[[Row], Sequence[str]]  # a student's keys of this kind
    read: Callable[[str], str] = str  # the key in a cell


def _login(row: Row) -> Sequence[str]:
    known = (row.student, row.person.email, row.person.id, row.person.login)
    return [*(text.casefold() for text in known), row.person.email.partition("@")[0].casefold()]


def _names(row: Row) -> Sequence[str]:
    return [*spellings(row.person.name), letters(row.student)]


ID = Kind(lambda row: [row.person.id])
LOGIN = Kind(_login, str.casefold)
EMAIL = Kind(lambda row: [row.person.email.casefold()], str.casefold)
NAME = Kind(_names, letters)

Places = Sequence[tuple[Kind, int]]  # kinds of keys, each with the index of its column


class Directory:
    """Finds a student's row of the gradebook for a line of another system's table."""

    def __init__(self, rows: Sequence[Row], places: Places) -> None:
        self._places = places
        self._found: dict[Kind, dict[str, set[str]]] = {kind: {} for kind, _ in places}
        self._rows = {row.student: row for row in rows}
        for kind, found in self._found.items():
            for row in rows:
                for key in filter(None, kind.of(row)):
                    found.setdefault(key, set()).add(row.student)

    def find(self, cells: Sequence[str]) -> Row | None:
        """The gradebook's row for a line with these cells; None if no key fits exactly one row."""
        for kind, place in self._places:
            key = kind.read(cells[place].strip())
            found = self._found[kind].get(key, set()) if key else set()
            if len(found) == 1:
                return self._rows[next(iter(found))]
        return None


def as_number(cell: str) -> float | None:
    """The points in a cell, rounded to thousandths; None if the cell holds no number."""
    try:
        found = float(cell.strip().replace(",", "."))
    except ValueError:
        return None
    return round(found, 3) if math.isfinite(found) else None


# --- filling in a column --------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """The column of a sheet to fill in."""

    place: int  # its index
    known: str  # its name in the gradebook's memory of exports
    name: int  # the index of the column with students' names
    # Whether the system itself keeps a line's grade, and the reason.
    closed: Callable[[Sequence[str]], bool]
    because: str
    excused: str = ""  # how the system writes that a student is excused; "" if it cannot
    # The points as the system writes them in a line.
    form: Callable[[float, Sequence[str]], str] = lambda points, _: number(points)


def filled_in(
    sheet: Sheet,
    lines: Iterable[list[str]],
    directory: Directory,
    column: Column,
    totals: Totals,
    notes: Iterable[str] = (),
) -> Filled:
    """Fill the totals into these lines of a sheet, except where a person changed the grade.

    `notes` precede the notes about this column. Raises `CallError` if no line is of a student in
    the gradebook.
    """
    push = push_of(totals, column.known, sheet.digest)
    matched: list[Row] = []
    done, found, excused = 0, 0, 0
    closed: list[str] = []
    bare: list[str] = []
    graded: list[str] = []  # excused students who have a grade in the system
    for cells in lines:
        row = directory.find(cells)
        points = totals.of(row) if row is not None else None
        found += row is not None
        if row is not None and row.excused and column.excused:
            there = cells[column.place].strip()
            if there == column.excused or push.may_replace(row.student, mark_in(there)):
                cells[column.place] = column.excused
                excused += 1
            else:
                graded.append(called(row.student, shown(row.person.name)))
            continue
        if row is None or points is None:
            bare += filter(None, [cells[column.name].strip()])  # Canvas also writes blank rows
            continue
        matched.append(row)
        if column.closed(cells) and not (column.excused and push.is_named(row.student)):
            closed.append(called(row.student, shown(row.person.name)))
        elif push.writes(row.student, points, mark_in(cells[column.place])):
            cells[column.place] = column.form(points, cells)
            done += 1
    if not found:
        raise CallError(
            f"{sheet.path} has no line of a student in this gradebook, so nothing was written: is "
            "it the file of another course? If not, grade with --roster: a roster connects the "
            "names of submissions with names, ids and e-mails"
        )
    return Filled(
        sheet.text(),
        (
            *notes,
            f"{counted(done, 'row')} filled in, in the column {sheet.header[column.place]!r}",
            *([f"{counted(len(push.same), 'row')} had the same grade already"] * bool(push.same)),
            *_closed(column, closed),
            *([f"{counted(excused, 'row')} excused: {column.excused}"] * bool(excused)),
            *([f"{EXCUSED_THERE}: {some_of(graded)}"] * bool(graded)),
            *about_changed(push, totals.rows),
            *without(bare),
            *missing(totals.rows, matched, sheet.path.name),
        ),
        push,
    )


def _closed(column: Column, names: Sequence[str]) -> Iterator[str]:
    """A line about the rows whose grade the system itself keeps."""
    if names:
        more = ": --overwrite NAME fills it in" if column.excused else ""
        count = counted(len(names), "row")
        yield f"{column.because}, and left unchanged: {count} ({some_of(names)}){more}"


def push_of(totals: Totals, column: str, view: str = "") -> Push:
    """The decisions about a column, which depend on earlier exports."""
    return Push(totals.past or NO_PAST, column, view)


def written_anew(totals: Totals, column: str, rows: Iterable[Row]) -> Push:
    """The decisions for a new table with these rows: the system's own grades are unknown."""
    push = push_of(totals, column)
    for row in rows:
        points = totals.of(row)
        if points is not None:
            push.writes(row.student, points)
    return push


def mark_in(cell: str) -> Mark:
    """The grade in a cell: a number if the cell holds one, else its text; None if it is empty."""
    text = cell.strip()
    if text in NO_MARK:
        return None
    points = as_number(text)
    return text if points is None else points


def about_changed(push: Push, rows: Sequence[Row]) -> Iterator[str]:
    """Lines about the grades that a person changed: old and new, and how to overwrite them."""
    if not push.changed:
        return
    names = {row.student: called(row.student, shown(row.person.name)) for row in rows}
    yield (
        f"left unchanged: {counted(len(push.changed), 'grade')} that this gradebook did not write "
        "there. A person, or the system's own rule, changed them:"
    )
    for one in push.changed:
        there = shown(one.there) if isinstance(one.there, str) else number(one.there)
        yield f"  {names[one.student]}: {there} there, {number(one.points)} in this gradebook"
    chosen = shlex.quote(push.changed[0].student)
    yield f"to overwrite one of them: --overwrite {chosen}; to overwrite all: --overwrite-all"


def missing(rows: Sequence[Row], matched: Sequence[Row], where: str) -> Iterator[str]:
    """A line that names the students with a grade who are missing from a table, if any are."""
    students = {row.student for row in matched}
    left = [row.student for row in rows if row.judged and row.student not in students]
    if left:
        yield f"{len(left)} with a grade, but not in {where}: {some_of(left)}"


def without(names: Sequence[str]) -> Iterator[str]:
    """A line about the students in a table who have no grade, if there are any."""
    if names:
        yield (
            f"no grade for {counted(len(names), 'row')}, left as before: "
            f"{some_of([repr(name) for name in names])}"
        )


# --- a spreadsheet -------------------------------------------------------------------------------


def _fresh(totals: Totals) -> Filled:
    """The gradebook with all its columns, for a spreadsheet program."""
    return Filled(gradebook_csv(totals.rows, totals.exercises, totals.scale, unjudged=False))


SYSTEM = System("csv", "a spreadsheet", grades=Table("grades.csv", _fresh, nameless=True))
