"""What a system can do, as data, and the work that is the same for all of them.

Each module beside this one describes one system: it makes a `System` of what applies to it.
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
    """What a table of grades is made of."""

    rows: Sequence[Row]  # with the exported exercises only
    exercises: tuple[str, ...]
    title: str  # of the course, or of the assignment
    most: float  # points, as the system counts them
    scale: float = 1.0  # what one point of a grade counts there
    column: str | None = None  # the one for the totals, where it was named

    def of(self, row: Row) -> float | None:
        """A student's points, as the system counts them; None where they are not known."""
        return None if row.total is None else scaled(row.total, self.scale)


@dataclass(frozen=True)
class Filled:
    """A table to upload, and what someone should know about it."""

    text: str
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A CSV that takes the grades of a class."""

    file: str  # what it is called where nobody says
    fresh: Callable[[Totals], Filled]
    into: Callable[[Totals, Path], Filled] | None = None  # fills in one that the system exported
    nameless: bool = False  # whether it makes sense with pseudonyms


@dataclass(frozen=True)
class ResultFiles:
    """A file of results for each student."""

    file: str
    of: Callable[[Row, Course, float], bytes]  # the last is what one point counts there


@dataclass(frozen=True)
class Host:
    """How the system runs us: ``grader host NAME ARGUMENT``."""

    run: Callable[[Any], None]
    argument: str  # its name in the help
    about: str  # the argument
    example: str
    help: str
    kind: type[Any] = str  # the argument's type


@dataclass(frozen=True)
class Bundle:
    """What ``grader release NAME`` writes.

    `write` takes a course and a folder, and by name ``replace`` and its `options`; one that is
    `recorded` also ``jobs`` and ``report``, which it calls for each exercise. It returns the files.
    """

    write: Callable[..., list[Path]]
    said: Callable[[Path, int], Sequence[str]]  # the lines about it, given its number of files
    example: str  # a folder
    help: str
    options: tuple[str, ...] = ()  # of ``seed`` and ``torch_index``
    recorded: bool = False


@dataclass(frozen=True)
class System:
    """One that submissions come from, grades go to, or that runs us; None is what it cannot do."""

    name: str  # as commands have it
    title: str  # as people write it
    downloads: Downloads | None = None
    grades: Table | ResultFiles | None = None
    host: Host | None = None
    bundle: Bundle | None = None


# --- grades out ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What is exported of a course: these exercises, under this title."""

    title: str
    exercises: tuple[str, ...]
    assignment: Assignment | None = None  # that they are, if it is one

    def scale(self, most: float) -> float:
        """What one point of the exercises' `most` counts elsewhere."""
        return self.assignment.scale(most) if self.assignment is not None else 1.0

    def most(self, most: float) -> float:
        """What the exercises' `most` counts elsewhere."""
        points = self.assignment.points if self.assignment is not None else None
        return most if points is None else points


def totals(rows: Sequence[Row], what: Part, column: str | None = None) -> Totals:
    """What a table of these grades is made of."""
    own = [narrowed(row, what.exercises) for row in rows]
    most = max((row.grade.max for row in own if row.grade), default=0.0)
    return Totals(own, what.exercises, what.title, what.most(most), what.scale(most), column)


def write_results(
    to: Path, rows: Sequence[Row], what: Part, course: Course, results: ResultFiles
) -> Path:
    """Write a file of results for each student who has a grade, into a new folder.

    Raises `CallError` where `to` holds something else.
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
    """Grade one submission with public checks and hidden graders, for a system that runs us.

    `secrets` is what no submission may read, besides the solutions. Raises `CallError` where the
    isolation that is asked for cannot be had.
    """
    from grader.grading.order import Order  # commands that grade nothing need not load it

    exercises = course.select(only)
    order = Order(
        course,
        course.hidden_seed(),
        course.tests_of(exercises),
        exercises,
        isolation=isolation,
        secrets=tuple(secrets),
        remembers=True,
    )
    with order.desk() as desk:
        # It loads torch, which the desk began to load beside us.
        from grader.grading.ladder import grade_submission

        return grade_submission(desk, submission)
