"""A folder in which hand-ins arrive while someone waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

from watchfiles import Change, watch

from grader.course import Course
from grader.faults import CallError
from grader.intake.arrivals import Arrivals, take_in
from grader.intake.names import ARCHIVES, SOURCES, suffix
from grader.intake.roster import Roster

TOGETHER = 1000  # milliseconds: an upload may take several writes


def arriving(
    folder: Path, course: Course, roster: Roster, stop: Event | None = None
) -> Iterator[Arrivals]:  # fmt: skip
    """What the folder holds: now, and after each change, until `stop` is set."""
    yield _look(folder, course, roster)
    changes = watch(
        folder, watch_filter=_is_hand_in, debounce=TOGETHER, stop_event=stop, raise_interrupt=True
    )
    for _ in changes:
        yield _look(folder, course, roster)


def _look(folder: Path, course: Course, roster: Roster) -> Arrivals:
    try:
        return take_in([folder], course, roster)
    except CallError as error:  # empty so far, or two of one name: the others wait for a change
        return Arrivals((), told=(str(error),))


def _is_hand_in(_: Change, path: str) -> bool:
    return suffix(path) in (*SOURCES, *ARCHIVES)
