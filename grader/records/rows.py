"""`Row`: a student, the grade and its corrections. Also names, lines of CSV, and shared wording."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from grader.records.grade import Grade, from_thousandths, thousandths

ABSENT = "absent"  # the status of a student on the roster without a submission
CONFLICT = "conflict"  # the status of a student with several submissions that may count


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """A student's data from a download and from the roster."""

    id: str = ""  # the university's id of the student
    name: str = ""
    email: str = ""
    canvas: str = ""  # Canvas' id of the user
    moodle: str = ""  # Moodle's id of the participant
    login: str = ""  # the name of an account, such as GitHub's
    extra: Mapping[str, str] = {}  # cells of the roster's other columns, by title


class Adjustment(msgspec.Struct, frozen=True):
    """A person's correction of an exercise: points to add; negative points are subtracted."""

    exercise: str
    points: float
    reason: str


@dataclass(frozen=True)
class Row:
    """A student's row of the gradebook."""

    student: str
    grade: Grade | None  # None if no submission is graded
    person: Person = field(default_factory=Person)
    adjustments: tuple[Adjustment, ...] = ()
    # If several submissions may count: why none of them is graded, or "" if names are hidden.
    conflict: str | None = None
    # Whether there is a roster, and the student is not on it: statistics leave the row out.
    unlisted: bool = False

    @property
    def status(self) -> str:
        """The submission's status, ``absent`` or ``conflict``."""
        if self.grade is not None:
            return self.grade.status
        return ABSENT if self.conflict is None else CONFLICT

    @property
    def ungraded(self) -> str:
        """The reason why there is no grade; follows the student's name in a sentence."""
        return "has no submission" if self.conflict is None else f"is not graded ({self.conflict})"

    @property
    def has_points(self) -> bool:
        """Whether the points are known: a submission was graded, and the grader did not fail."""
        return self.grade is not None and self.grade.status != "grader_error"

    @property
    def judged(self) -> bool:
        """Whether other systems get the points: answers were tested, or a person gave points."""
        if self.grade is None or not self.has_points:
            return False
        given = {a.exercise for a in self.adjustments} & {e.name for e in self.grade.exercises}
        return self.grade.status == "graded" or bool(given)

    @property
    def untouched(self) -> bool:
        """Whether there is no answer to any graded exercise."""
        exercises = self.grade.exercises if self.grade else ()
        return bool(exercises) and all(exercise.untouched for exercise in exercises)

    @property
    def points(self) -> Mapping[str, float]:
        """The points of each exercise, corrections included and never below 0; empty if unknown."""
        if self.grade is None or not self.has_points:
            return {}
        added = {a.exercise: self.counting(a) for a in self.adjustments}
        return {e.name: _sum([e.points, added.get(e.name, 0)]) for e in self.grade.exercises}

    @property
    def total(self) -> float | None:
        """The sum of the points, corrections included; None if unknown."""
        return _sum([*self.points.values()]) if self.has_points else None

    def correction(self, exercise: str) -> Adjustment | None:
        """A person's correction of an exercise, or None."""
        return next((a for a in self.adjustments if a.exercise == exercise), None)

    def counting(self, adjustment: Adjustment) -> float:
        """The points by which a correction changes the total.

        A correction may take away more than a later grading computes. Then only the computed points
        are taken away, because points are never below 0. If the exercise was not graded, the
        correction counts nothing.
        """
        computed = {e.name: e.points for e in self.grade.exercises} if self.grade else {}
        if adjustment.exercise not in computed:
            return 0.0
        return max(adjustment.points, 0.0 - computed[adjustment.exercise])

    @property
    def adjustment(self) -> float:
        """The sum of the corrections, as far as they count."""
        return _sum([self.counting(adjustment) for adjustment in self.adjustments])

    @property
    def limits(self) -> Sequence[str]:
        """A sentence for each correction that would make points negative, and counts less."""
        if not self.has_points:
            return []
        return [
            f"{a.exercise}: {limited(a.points, self.counting(a))}"
            for a in self.adjustments
            if a.exercise in self.points and self.counting(a) != a.points
        ]


def narrowed(row: Row, exercises: Collection[str]) -> Row:
    """The row with only these exercises, and the sums of their points."""
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
    """A student's key, followed by the name if the two differ: ``40077 Dana Diaz``."""
    return f"{student} {name}" if name not in ("", student) else student


def letters(text: str) -> str:
    """A name's letters and digits, without case and accents: some systems change the rest."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in plain if c.isalnum())


def spellings(name: str) -> set[str]:
    """Keys of a name; two names with a common key may belong to the same person.

    ``Jane Mary Doe`` and ``Doe, Jane Mary`` have the common key ``doejanemary``.
    """
    words = re.split(r"[\s,]+", name.strip())
    return {letters("".join(words[k:] + words[:k])) for k in range(len(words))} - {""}


def _sum(points: Sequence[float]) -> float:
    """The sum of points, exact to a thousandth."""
    return from_thousandths(sum(map(thousandths, points)))


Cell = str | float | None  # None is an empty cell


def separator_of(text: str) -> str:
    """The separator of a CSV's cells, guessed from the first line that is not blank."""
    return max(",;\t", key=text.lstrip("\r\n").partition("\n")[0].count)


def csv_line(cells: Sequence[Cell]) -> str:
    """A line of CSV; cells with characters that a program may read as a separator are quoted."""
    return ",".join(map(_cell, cells)) + "\n"


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return number(cell)
    text = _harmless(cell)
    # The csv module quotes only its own separator, but some spreadsheets use semicolons or tabs.
    if re.search(r'[",;|\t\r\n]|^\s|\s$', text):
        return '"' + text.replace('"', '""') + '"'
    return text


def number(points: float) -> str:
    """Points without needless digits: ``2``, ``1.333``, ``-0.5``."""
    return f"{points:.3f}".rstrip("0").rstrip(".")


def _harmless(text: str) -> str:
    """The text; with an apostrophe in front if a spreadsheet would read it as a formula."""
    return (
        f"'{text}"
        if text.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
        else text
    )


# --- wording that several rooms share ------------------------------------------------------------


def with_sign(points: float) -> str:
    """The points of a correction with their sign: ``+1``, ``-0.5``."""
    return f"{'+' if points > 0 else ''}{number(points)}"


def limited(points: float, counting: float) -> str:
    """Says that a correction by `points` changes the total only by `counting`."""
    counts = f"the correction by {with_sign(points)} counts {with_sign(counting)}"
    return f"{counts}: points are never below 0"


def counted(count: float, noun: str) -> str:
    """A number with its noun in singular or plural: ``1 file``, ``2 files``, ``0.5 points``."""
    return f"{number(count)} {noun}{'s' if count != 1 else ''}"


def listed(names: Sequence[str], link: str) -> str:
    """Join names with commas, and the last with a word: ``a``, ``a or b``, ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} {link} {last}" if others else last


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first names and the number of the others: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
