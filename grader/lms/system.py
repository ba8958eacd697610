"""Describes a system as data, and does the work that all systems share.

Each system's module fills in a `System`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course.course import Course
from grader.course.file import Assignment
from grader.intake.downloads import Downloads
from grader.intake.names import file_stems
from grader.records.files import drafted, require_empty
from grader.records.grade import scaled
from grader.records.rows import Row, narrowed

if TYPE_CHECKING:
    from grader.intake import Submission
    from grader.records.grade import Grade
    from grader.sandbox.jails import Isolation


@dataclass(frozen=True)
class Totals:
    """The data from which a system's table of grades is written."""

    rows: Sequence[Row]  # with the exported exercises only
    exercises: tuple[str, ...]
    title: str  # the title of the course or of the assignment
    most: float  # maximum points in the system
    scale: float = 1.0  # points in the system for one point of a grade
    column: str | None = None  # the title of the totals' column, if the user named it

    def of(self, row: Row) -> float | None:
        """A student's points in the system; None if they are unknown."""
        return None if row.total is None else scaled(row.total, self.scale)


@dataclass(frozen=True)
class Filled:
    """A table to upload, with notes for the person who exports it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The kind of CSV in which a system reads the grades of a class."""

    file: str  # the default name
    fresh: Callable[[Totals], Filled]
    into: Callable[[Totals, Path], Filled] | None = None  # fills in a CSV that the system exported
    nameless: bool = False  # whether the table may have pseudonyms instead of names


@dataclass(frozen=True)
class ResultFiles:
    """The kind of file in which a system reads the results of one student."""

    file: str
    of: Callable[[Row, Course, float], bytes]  # the float is the scale: see `Totals`


@dataclass(frozen=True)
class Host:
    """The command by which the system runs the grader: ``grader host NAME ARGUMENT``."""

    run: Callable[[Any], None]
    argument: str  # its name in the help
    about: str  # its description in the help
    example: str
    help: str
    kind: type[Any] = str  # the argument's type


@dataclass(frozen=True)
class Bundle:
    """The folder that ``grader release NAME`` writes.

    `write` takes a course and a folder, and as keyword arguments ``replace`` and the names in
    `options`. If `recorded`, `write` also takes ``report``, a function to call after each recorded
    exercise, and ``jobs``. `write` returns the written files.
    """

    write: Callable[..., list[Path]]
    next_steps: Callable[[Path, int], Sequence[str]]  # lines to print, from folder and file count
    example: str  # the folder in the help's example
    help: str
    options: tuple[str, ...] = ()  # any of ``seed`` and ``torch_index``
    recorded: bool = False


@dataclass(frozen=True)
class System:
    """A system that sends submissions, takes grades, or runs the grader.

    A field is None if the system does not have this ability.
    """

    name: str  # in commands
    title: str  # in messages
    downloads: Downloads | None = None
    grades: Table | ResultFiles | None = None
    host: Host | None = None
    bundle: Bundle | None = None


# --- exporting grades ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The exported part of a course: its exercises and title."""

    title: str
    exercises: tuple[str, ...]
    assignment: Assignment | None = None  # the assignment that has these exercises

    def scale(self, most: float) -> float:
        """Points in the system for one point of a grade; `most` is the maximum of a grade."""
        return self.assignment.scale(most) if self.assignment is not None else 1.0

    def most(self, most: float) -> float:
        """The maximum in the system; `most` is the maximum of a grade."""
        points = self.assignment.points if self.assignment is not None else None
        return most if points is None else points


def totals(rows: Sequence[Row], what: Part, column: str | None = None) -> Totals:
    """The data for a table with these rows and the exported part of the course."""
    own = [narrowed(row, what.exercises) for row in rows]
    most = max((row.grade.max for row in own if row.grade), default=0.0)
    return Totals(own, what.exercises, what.title, what.most(most), what.scale(most), column)


def write_results(
    to: Path, rows: Sequence[Row], what: Part, course: Course, results: ResultFiles
) -> Path:
    """Write a file of results for each student who has a grade, into a new folder.

    Raises `CallError` if `to` is not empty.
    """
    graded = {row.student: row for row in rows if row.has_points}
    stems = file_stems(graded)
    require_empty(to)
    with drafted(to, private=True) as draft:
        for student, row in graded.items():
            own = narrowed(row, what.exercises)
            assert own.grade is not None
            (draft / stems[student]).mkdir()
            data = results.of(own, course, what.scale(own.grade.max))
            (draft / stems[student] / results.file).write_bytes(data)
    return to


# --- one submission ------------------------------------------------------------------------------


def grade_one(
    course: Course,
    submission: Submission,
    *,
    only: Sequence[str] = (),
    isolation: Isolation = "strong",
    secrets: Sequence[Path] = (),
) -> Grade:
    """Grade one submission with public checks and hidden tests, for a system that runs the grader.

    Submissions can read neither `secrets` nor the solutions. Raises `CallError` if this machine
    cannot provide the isolation.
    """
    from grader.grading.order import Order  # not needed to export or release

    exercises = course.select(only)
    order = Order(
        course,
        course.hidden_seed(),
        course.tests_of(exercises),
        exercises,
        isolation=isolation,
        secrets=tuple(secrets),
        keeps_sheet=True,
    )
    with order.desk() as desk:
        # This import loads torch, while the desk's warm process loads torch in parallel.
        from grader.grading.ladder import grade_submission

        return grade_submission(desk, submission)
