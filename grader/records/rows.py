"""A student's line: grade, person and corrections; cells of a CSV; and its words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from grader.records.grade import THOUSAND, Grade

ABSENT = "absent"  # the status of who is on the roster, and handed in nothing
CONFLICT = "conflict"  # the status of who handed in several, where nothing says which one counts


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """A student, as far as a download and the roster tell."""

    id: str = ""  # the university's
    name: str = ""
    email: str = ""
    canvas: str = ""  # Canvas' own number of this user
    moodle: str = ""  # Moodle's number of this participant
    extra: Mapping[str, str] = {}  # further columns of the roster


class Adjustment(msgspec.Struct, frozen=True):
    """Points that a person added to one exercise, or took away."""

    exercise: str
    points: float
    reason: str


@dataclass(frozen=True)
class Row:
    """One student."""

    student: str
    grade: Grade | None  # None where nothing was handed in
    person: Person = field(default_factory=Person)
    adjustments: tuple[Adjustment, ...] = ()
    conflict: str | None = None  # why what was handed in has no grade; empty where names are hidden

    @property
    def status(self) -> str:
        """The submission's, ``absent`` or ``conflict``."""
        if self.grade is not None:
            return self.grade.status
        return ABSENT if self.conflict is None else CONFLICT

    @property
    def ungraded(self) -> str:
        """Why there is no grade, as the rest of a sentence that begins with the student."""
        return "handed in nothing" if self.conflict is None else f"is not graded ({self.conflict})"

    @property
    def has_points(self) -> bool:
        """Whether there are points: not where nothing came, nor where the grader failed."""
        return self.grade is not None and self.grade.status != "grader_error"

    @property
    def points(self) -> Mapping[str, float]:
        """The points of each exercise, corrections included; empty where they are not known."""
        if self.grade is None or not self.has_points:
            return {}
        added = {a.exercise: a.points for a in self.adjustments}
        return {e.name: _sum([e.points, added.get(e.name, 0)]) for e in self.grade.exercises}

    @property
    def total(self) -> float | None:
        """The sum of the points, corrections included; None where they are not known."""
        return _sum([*self.points.values()]) if self.has_points else None

    def correction(self, exercise: str) -> Adjustment | None:
        """What a person corrected in an exercise, if anything."""
        return next((a for a in self.adjustments if a.exercise == exercise), None)

    @property
    def adjustment(self) -> float:
        """By how much corrections change the total."""
        graded = {e.name for e in self.grade.exercises} if self.grade else set()
        return _sum([a.points for a in self.adjustments if a.exercise in graded])


def narrowed(row: Row, exercises: Collection[str]) -> Row:
    """The row, as if nothing but these exercises had been graded."""
    if row.grade is None:
        return row
    kept = tuple(e for e in row.grade.exercises if e.name in exercises)
    grade = msgspec.structs.replace(
        row.grade,
        exercises=kept,
        total=_sum([e.points for e in kept]),
        max=_sum([e.max for e in kept]),
    )
    adjustments = tuple(a for a in row.adjustments if a.exercise in exercises)
    return replace(row, grade=grade, adjustments=adjustments)


# --- names of people -----------------------------------------------------------------------------


def called(student: str, name: str) -> str:
    """``40077 Dana Diaz``: a student's key, with the name beside it where it says more."""
    return f"{student} {name}" if name not in ("", student) else student


def letters(text: str) -> str:
    """Letters and digits, without accents: what remains of a name in every system."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in plain if c.isalnum())


def spellings(name: str) -> set[str]:
    """``Jane Mary Doe``, ``Doe, Jane Mary`` and ``doejanemary`` are one name."""
    words = re.split(r"[\s,]+", name.strip())
    return {letters("".join(words[k:] + words[:k])) for k in range(len(words))} - {""}


def _sum(points: Sequence[float]) -> float:
    """Exact to a thousandth, as points are."""
    return sum(round(part * THOUSAND) for part in points) / THOUSAND


Cell = str | float | None  # None is an empty cell


def separator_of(text: str) -> str:
    """What parts the cells of a CSV, by its first line that is not blank."""
    return max(",;\t", key=text.lstrip("\r\n").partition("\n")[0].count)


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


# --- words that several rooms say ----------------------------------------------------------------


def counted(count: float, noun: str) -> str:
    """``1 file``, ``2 files``, ``0.5 points``."""
    return f"{number(count)} {noun}{'s' if count != 1 else ''}"


def listed(names: Sequence[str], link: str) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} {link} {last}" if others else last


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
