"""`Row`: a student, the grade, and what a person decided. Also lines of CSV, and shared wording."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import msgspec

from grader.records.decisions import LATE, TOTAL
from grader.records.grade import ExerciseResult, Grade, from_thousandths, thousandths
from grader.records.lateness import WHOLE, Lateness

ABSENT = "absent"  # the status of a student on the roster without a submission
EXCUSED = "excused"  # the status of a student whose grade does not count
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


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Points that a person gave for a part of a grade: to add, or to count instead.

    The part is an exercise, a unit, a question that a person marks, `TOTAL`, or `LATE` for the
    points that a late submission loses.
    """

    part: str
    points: float
    reason: str
    sets: bool = False  # whether the points count instead of the computed points

    @property
    def words(self) -> str:
        """The points as a person gave them: ``+1``, ``-0.5``, ``=3``."""
        return f"={number(self.points)}" if self.sets else with_sign(self.points)


@dataclass(frozen=True)
class Comment:
    """An instructor's comment, for the student, about a part of the grade or all of it ("")."""

    part: str
    text: str


LineKind = Literal["computed", "corrected", "marked", "late"]


@dataclass(frozen=True)
class Line:
    """A summand of a total."""

    part: str
    kind: LineKind
    points: float


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
    questions: Mapping[str, float] = field(default_factory=dict)  # marked by a person; their maxima
    comments: tuple[Comment, ...] = ()
    lateness: Lateness | None = None
    excused: bool = False  # whether the grade does not count
    versions: int = 1  # the number of submissions of which this one was chosen

    @property
    def status(self) -> str:
        """The submission's status, ``absent``, ``conflict`` or ``excused``."""
        if self.excused:
            return EXCUSED
        if self.grade is not None:
            return self.grade.status
        return ABSENT if self.conflict is None else CONFLICT

    @property
    def ungraded(self) -> str:
        """The reason why there is no grade; follows the student's name in a sentence."""
        return "has no submission" if self.conflict is None else f"is not graded ({self.conflict})"

    @property
    def has_points(self) -> bool:
        """Whether the points are known: the grader did not fail, and there is something to count.

        Without a submission, only points that a person gave count.
        """
        if self.grade is not None:
            return self.grade.status != "grader_error"
        return self.conflict is None and any(map(self._is_given, self.adjustments))

    @property
    def judged(self) -> bool:
        """Whether other systems get the points: answers were tested, or a person gave points."""
        if self.excused or not self.has_points:
            return False
        tested = self.grade is not None and self.grade.status == "graded"
        return tested or any(map(self._is_given, self.adjustments))

    def _is_given(self, adjustment: Adjustment) -> bool:
        """Whether an adjustment gives points by itself, without computed points."""
        return adjustment.part != LATE and adjustment.part in self.parts

    @property
    def untouched(self) -> bool:
        """Whether there is no answer to any graded exercise."""
        exercises = self.grade.exercises if self.grade else ()
        return bool(exercises) and all(exercise.untouched for exercise in exercises)

    @property
    def max(self) -> float | None:
        """The points that can be earned, without a bonus; None if no submission is graded."""
        return None if self.grade is None else _sum([self.grade.max, *self.questions.values()])

    @property
    def unmarked(self) -> Sequence[str]:
        """The questions for which no person has given points; they count nothing."""
        return [name for name in self.questions if self.correction(name) is None]

    # --- points ----------------------------------------------------------------------------------

    @property
    def points(self) -> Mapping[str, float]:
        """The points of each exercise, corrections included and never below 0; empty if unknown."""
        if self.grade is None or not self.has_points:
            return {}
        return {exercise.name: self._sums[exercise.name] for exercise in self.grade.exercises}

    @property
    def total(self) -> float | None:
        """The sum of the lines; None if unknown, or if the student is excused."""
        return self.earned_after if self.has_points and not self.excused else None

    @cached_property
    def lines(self) -> Sequence[Line]:
        """The summands of the total, in this order: exercises, questions, units, total, lateness.

        A correction of an exercise, a unit or the total never makes its points negative: if it
        would take away more, it counts only so much. The same holds for the points that a late
        submission loses. Empty if the points are unknown.
        """
        if not self.has_points:
            return ()
        found: list[Line] = []
        for exercise in self.grade.exercises if self.grade else ():
            found.append(Line(exercise.name, "computed", exercise.points))
            found += self._corrected(exercise.name, "corrected", exercise.points)
        for name in self.questions:
            found += self._corrected(name, "marked", 0.0)
        for unit in self._units:
            parts = {e.name for e in self._units[unit]}
            points = _sum([line.points for line in found if line.part in parts])
            found += self._corrected(unit, "corrected", points)
        found += self._corrected(TOTAL, "corrected", _sum([line.points for line in found]))
        earned = thousandths(_sum([line.points for line in found]))
        lost = _lost(earned, self.lateness.share if self.lateness else 0)
        if lost:
            found.append(Line(LATE, "late", from_thousandths(-lost)))
        correction = self.correction(LATE)
        if correction is not None:
            given = thousandths(correction.points)
            wanted = given if correction.sets else given - lost
            counting = min(0, max(wanted, -earned)) + lost
            found.append(Line(LATE, "corrected", from_thousandths(counting)))
        return tuple(found)

    def _corrected(self, part: str, kind: LineKind, points: float) -> list[Line]:
        """The line of a correction of a part that has so many points; no line without one."""
        one = self.correction(part)
        if one is None:
            return []
        added = one.points - points if one.sets else max(one.points, -points)
        return [Line(part, kind, _sum([added]))]

    @cached_property
    def _units(self) -> Mapping[str, Sequence[ExerciseResult]]:
        """The exercises of each unit, without units that have the name of an exercise."""
        results = self.grade.exercises if self.grade else ()
        names = {result.name for result in results}
        units: dict[str, list[ExerciseResult]] = {}
        for result in results:
            if result.unit not in names:
                units.setdefault(result.unit, []).append(result)
        return units

    @cached_property
    def parts(self) -> Set[str]:
        """The parts that a person can give points for."""
        exercises = self.grade.exercises if self.grade else ()
        return {*(e.name for e in exercises), *self.questions, *self._units, TOTAL, LATE}

    @cached_property
    def _sums(self) -> Mapping[str, float]:
        found: dict[str, list[float]] = {}
        for line in self.lines:
            found.setdefault(line.part, []).append(line.points)
        return {part: _sum(points) for part, points in found.items()}

    def sum_of(self, parts: Collection[str]) -> float:
        """The sum of the lines of these parts."""
        return _sum([self._sums.get(part, 0.0) for part in parts])

    @property
    def earned(self) -> float:
        """The sum of all lines except those about lateness."""
        return _sum([line.points for line in self.lines if line.part != LATE])

    @property
    def earned_after(self) -> float:
        """The sum of all lines, also of an excused student."""
        return _sum([line.points for line in self.lines])

    def within(self, part: str) -> Collection[str]:
        """The parts that belong to a part: a unit's exercises, or all that a total sums up."""
        if part == TOTAL:
            return self.parts - {LATE}
        return {part, *(result.name for result in self._units.get(part, ()))}

    def beyond(self) -> tuple[float, float, float]:
        """The points that belong to no exercise and no question: of units, total and lateness."""
        return self.sum_of(self._units.keys()), self.sum_of([TOTAL]), self.sum_of([LATE])

    def correction(self, part: str) -> Adjustment | None:
        """The points that a person gave for a part, or None."""
        return next((a for a in self.adjustments if a.part == part), None)

    def counting(self, adjustment: Adjustment) -> float:
        """The points by which a correction changes the total: see `lines`.

        If the part was not graded, the correction counts nothing.
        """
        kinds = ("corrected", "marked")
        own = [x.points for x in self.lines if x.part == adjustment.part and x.kind in kinds]
        return own[0] if own else 0.0

    @property
    def adjustment(self) -> float:
        """The sum of the corrections of computed points, as far as they count."""
        return _sum([line.points for line in self.lines if line.kind == "corrected"])

    @property
    def limits(self) -> Sequence[str]:
        """A sentence for each correction that would make points negative, and counts less."""
        if not self.has_points:
            return []
        return [
            f"{a.part}: {limited(a.points, self.counting(a))}"
            for a in self.adjustments
            if a.part in self.parts and not a.sets and self.counting(a) != a.points
        ]


def _lost(earned: int, share: int) -> int:
    """The thousandths that a share takes away, in hundredths of a percent; half is rounded up."""
    return (earned * share + WHOLE // 2) // WHOLE


def narrowed(row: Row, exercises: Collection[str]) -> Row:
    """The row with only these exercises, which are a part of those that were graded.

    Questions, corrections of the total and lateness belong to the whole, and are left out.
    """
    if row.grade is None:
        return replace(row, adjustments=(), questions={}, lateness=None)
    kept = tuple(e for e in row.grade.exercises if e.name in exercises)
    grade = msgspec.structs.replace(
        row.grade,
        exercises=kept,
        total=_sum([e.points for e in kept]),
        max=_sum([e.max for e in kept]),
    )
    dropped = {e.unit for e in row.grade.exercises if e.name not in exercises}
    whole = {e.unit for e in kept} - dropped
    adjustments = tuple(a for a in row.adjustments if a.part in exercises or a.part in whole)
    return replace(row, grade=grade, adjustments=adjustments, questions={}, lateness=None)


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


def corrected(adjustment: Adjustment) -> str:
    """Says what a person did to the points: ``corrected by +1``, ``set to 3``."""
    if adjustment.sets:
        return f"set to {number(adjustment.points)}"
    return f"corrected by {with_sign(adjustment.points)}"


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
