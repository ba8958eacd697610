"""nbgrader: reads ``submitted/<student>/<assignment>/<notebook>.ipynb``.

All assignments of a student are one submission.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from grader.intake.downloads import Downloads, Upload
from grader.intake.files import FileItem, Unreadable
from grader.lms.system import System
from grader.records.faults import CallError
from grader.records.rows import Person
from grader.records.times import read_time

_SUBMITTED = "submitted"
_TIMESTAMP, _MOST = "timestamp.txt", 100  # bytes
_OTHERS = {"source", "release", "autograded", "feedback"}


def _made(names: Collection[str]) -> Collection[str]:
    """All names, if they are those of a course's folder with ``submitted``; otherwise none."""
    own = _SUBMITTED in names and bool(_OTHERS & {*names} or names == {_SUBMITTED})
    return names if own else ()


def _uploads(items: Sequence[FileItem], _units: Collection[str]) -> list[Upload]:
    """Group the files by student."""
    below = any(item.parts[0] == _SUBMITTED for item in items)
    files: dict[str, dict[str, FileItem]] = {}
    for item in items:
        if below and item.parts[0] != _SUBMITTED:
            continue
        parts = item.parts[below:]  # empty if ``submitted`` is itself a file
        if len(parts) > 1:
            files.setdefault(parts[0], {})["/".join(parts[1:])] = item
    return [
        Upload(
            student,
            student,
            own,
            (Person(),),
            moment=(max(i.modified for i in own.values()),),
            submitted=max(filter(None, map(_time, _stamps(own))), default=None),
        )
        for student, own in files.items()
    ]


def _stamps(own: Mapping[str, FileItem]) -> Iterator[FileItem]:
    """The times that nbgrader wrote when it collected a student's assignments.

    A file of this name in a deeper folder is the student's.
    """
    for path, item in own.items():
        _assignment, _, name = path.partition("/")
        if name == _TIMESTAMP:
            yield item


def _time(item: FileItem) -> datetime | None:
    try:
        with item.opened() as file:
            text = file.read(_MOST).decode("ascii", errors="replace")
        return read_time(text, UTC)
    except (CallError, Unreadable, OSError):
        return None


SYSTEM = System(
    "nbgrader",
    "nbgrader",
    downloads=Downloads("nbgrader", _made, _uploads, folder=_SUBMITTED, archive=_SUBMITTED),
)
