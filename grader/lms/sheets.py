"""Fills in one column of a table that another system exported; writes a spreadsheet.

All other cells of an exported table keep their text.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.grades.table import gradebook_csv
from grader.lms.system import Filled, System, Table, Totals
from grader.records.faults import CallError
from grader.records.rows import (
    Row,
    counted,
    letters,
    separator_of,
    some_of,
    spellings,
)

BOM = "\ufeff"


class Sheet:
    """A CSV that another system exported and will import again."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            raise CallError(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CallError(f"{path} is not UTF-8: export it again, as CSV") from None
        self.path = path
        self._bom = text.startswith(BOM)
        text = text.removeprefix(BOM)
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self.separator = separator_of(text)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator))
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
    known = (row.student, row.person.email, row.person.id)
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


def missing(rows: Sequence[Row], matched: Sequence[Row], where: str) -> Iterator[str]:
    """A line that names the students with a grade who are missing from a table, if any are."""
    students = {row.student for row in matched}
    left = [row.student for row in rows if row.has_points and row.student not in students]
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
    return Filled(gradebook_csv(totals.rows, totals.exercises, totals.scale))


SYSTEM = System("csv", "a spreadsheet", grades=Table("grades.csv", _fresh, nameless=True))
