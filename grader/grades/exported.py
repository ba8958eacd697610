"""Decides which grades an export writes into another system, and which it leaves to people.

A person may have changed a grade in the other system, or the system itself, by its rule for late
work. An export replaces a grade there only if the kit wrote it. This module knows neither files nor
systems: an exporter of any kind asks a `Push` about each student.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

Mark = float | str | None  # a grade in another system: points, other text, or None if it is empty
# The views of a server: a grade whose request began, and a grade that is there. If the process is
# killed between the two, the next export looks which of them is true.
BEGUN, DONE = "api, begun", "api"
ROUNDED = 0.005 + 1e-9  # systems that show two decimals round by at most this


@dataclass(frozen=True)
class Written:
    """The grade that the kit last wrote for a student into a column of another system."""

    points: float
    view: str  # identifies what that export knew of the system; "" if it knew nothing
    before: float | None = None  # the kit's earlier grade, which is there if this one is not


@dataclass(frozen=True)
class Past:
    """The grades that earlier exports wrote, and the students whose changed grades to replace."""

    written: Mapping[str, Mapping[str, Written]] = field(
        default_factory=dict
    )  # by column and student
    overwrite: Collection[str] = ()
    overwrite_all: bool = False


NO_PAST = Past()


@dataclass(frozen=True)
class ChangedMark:
    """A grade in another system that the kit did not write, and the grade in the gradebook."""

    student: str
    there: float | str
    points: float


class Push:
    """The decisions of one export about one column of another system.

    `view` identifies what the export knows of the system: the file that the system exported, or
    `BEGUN` if its server is asked directly. If the last export began with the same file, the grades
    before that export count: the same export twice gives the same result. A grade may never have
    arrived if its request was cut off, or if nobody imported its file before the server is asked:
    then the grade before it counts, too.
    """

    def __init__(self, past: Past, column: str, view: str = "") -> None:
        self.column = column
        self.written: dict[str, Written] = {}
        self.same: list[str] = []
        self.changed: list[ChangedMark] = []
        self._past, self._view = past, view

    def writes(self, student: str, points: float, there: Mark = None) -> bool:
        """Whether to write a student's points over the grade that is there."""
        if alike(there, points):
            self.same.append(student)
            return False
        if there is not None and not self.may_replace(student, there):
            self.changed.append(ChangedMark(student, there, points))
            return False
        own = [one for one in self._own(student) if there is None or alike(there, one)]
        self.written[student] = Written(points, self._view, own[0] if own else None)
        return True

    def may_replace(self, student: str, there: Mark) -> bool:
        """Whether nothing is there, or what the kit wrote, or what the user wants to replace."""
        ours = there is None or any(alike(there, one) for one in self._own(student))
        return ours or self._past.overwrite_all or self.is_named(student)

    def is_named(self, student: str) -> bool:
        """Whether the user named this student, to replace whatever is there."""
        return student in self._past.overwrite

    def _own(self, student: str) -> list[float]:
        """The kit's grades that may be there."""
        last = self._past.written.get(self.column, {}).get(student)
        if last is None:
            return []
        if BEGUN in (last.view, self._view):
            own = [last.points, last.before]
        else:
            own = [last.before if last.view == self._view else last.points]
        return [one for one in own if one is not None]


def alike(there: Mark, points: float) -> bool:
    """Whether a grade there is this number of points, which the system may show rounded."""
    if not isinstance(there, int | float):
        return False
    if round(there, 3) == round(points, 3):
        return True
    return round(there, 2) == round(there, 6) and abs(there - points) <= ROUNDED
