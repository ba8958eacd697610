"""A folder in which hand-ins arrive while someone waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from grader.course.course import Course
from grader.intake.arrivals import Arrivals, take_in
from grader.intake.names import ARCHIVES, SOURCES
from grader.intake.roster import Roster
from grader.records.faults import CallError
from grader.records.saves import saves, snapshot

HAND_INS = (*SOURCES, *ARCHIVES)


def arriving(folder: Path, course: Course, roster: Roster, stop: Event) -> Iterator[Arrivals]:
    """What the folder holds: now, and after each change, until `stop` is set."""
    seen = snapshot(folder, HAND_INS)
    yield _look(folder, course, roster)
    for _ in saves(folder, HAND_INS, seen, stop):
        yield _look(folder, course, roster)


def _look(folder: Path, course: Course, roster: Roster) -> Arrivals:
    try:
        return take_in([folder], course, roster)
    except CallError as error:  # empty so far, or two of one name: the others wait for a change
        return Arrivals((), roster.keys, (str(error),))
