"""What Gradescope's container runs for each submission: `grader host gradescope ROOT`.

Below the root lie ``source/`` (what `grader release gradescope` wrote), ``submission/``,
``submission_metadata.json`` and ``results/``. What is printed is for instructors; what students
see stands in ``results/results.json``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from grader.export.gradescope import results
from grader.feedback import terminal
from grader.hosts import grade_one
from grader.intake import read_submission
from grader.records.files import write_whole
from grader.records.rows import Row, number
from grader.release.student import load_carried

METADATA = "submission_metadata.json"


class User(msgspec.Struct, frozen=True):
    """One of those who handed in."""

    name: str = ""


class Assignment(msgspec.Struct, frozen=True):
    """What the assignment is, as far as it matters here."""

    total_points: float | None = None


class Metadata(msgspec.Struct, frozen=True):
    """What Gradescope tells of a submission. No grade hangs on it."""

    users: tuple[User, ...] = ()
    assignment: Assignment = Assignment()

    @property
    def student(self) -> str:
        """All their names."""
        return ", ".join(user.name for user in self.users if user.name) or "submission"


def grade_submission(root: Path) -> None:
    """Write the results of one submission; raise `CallError` or `HostFault` and write none."""
    written = root / "results" / "results.json"
    written.unlink(missing_ok=True)
    metadata = read_metadata(root / METADATA)
    course = load_carried(root / "source")
    grade = grade_one(
        course, read_submission(metadata.student, root / "submission"),
        only=course.asked,
        isolation="weak",  # as much as the container has; the results say how much that is
        secrets=[root / METADATA],  # how hidden tests ended the last time
    )  # fmt: skip
    print(terminal.course_line(course))
    for note in terminal.notes([Row(grade.student, grade)]):
        print(note.plain)
    worth, there = number(grade.max * course.worth), metadata.assignment.total_points
    if there is not None and number(there) != worth:
        print(
            f"what is graded is worth {worth} points, and this assignment {number(there)}: "
            "change that in its settings"
        )
    write_whole(written, msgspec.json.encode(results(grade, course, course.worth)))


def read_metadata(path: Path) -> Metadata:
    """The metadata, or nothing where they are not as they were when this was written."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Metadata, strict=False)
    except (OSError, msgspec.DecodeError):
        return Metadata()
