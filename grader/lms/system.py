"""Describes a system as data, and does the work that all systems share.

Each system's module fills in a `System`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course.course import Course
from grader.course.file import Assignment
from grader.intake.downloads import Downloads
from grader.intake.names import file_stems, shown
from grader.records.files import drafted, require_empty
from grader.records.grade import scaled
from grader.records.rows import ABSENT, Row, called, counted, narrowed

if TYPE_CHECKING:  # Classroom 50's autograder has this module, but not these rooms
    from grader.grades.exported import Past, Push
    from grader.intake import Submission
    from grader.records.grade import Grade
    from grader.sandbox.jails import Isolation

MOST_OF_A_REASON = 200  # characters


@dataclass(frozen=True)
class Totals:
    """The data from which a system's table of grades is written."""

    rows: Sequence[Row]  # with the exported exercises only
    exercises: tuple[str, ...]
    title: str  # the title of the course or of the assignment
    most: float  # maximum points in the system
    scale: float = 1.0  # points in the system for one point of a grade
    column: str | None = None  # the title of the totals' column, if the user named it
    past: Past | None = None  # what earlier exports wrote

    def of(self, row: Row) -> float | None:
        """A student's points in the system; None if there was nothing to judge."""
        return scaled(row.total, self.scale) if row.judged and row.total is not None else None


@dataclass(frozen=True)
class Filled:
    """A table to upload, with notes for the person who exports it."""

    text: str
    notes: tuple[str, ...] = ()
    push: Push | None = None  # the written grades, which the gradebook remembers


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
class Feedback:
    """A student's feedback, in the two forms that a system may take."""

    row: Row
    page: bytes  # HTML
    text: str  # Markdown
    entry: str  # the name of the graded file in the system's download; "" if unknown


@dataclass(frozen=True)
class FeedbackFiles:
    """How a system takes feedback files from a zip."""

    # A zip's entry for a student: its name and content. Or the reason why there is none.
    entry: Callable[[Feedback], tuple[str, bytes] | str]
    where: str  # where to upload the zip


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
    returned: FeedbackFiles | None = None
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


def totals(
    rows: Sequence[Row], what: Part, column: str | None = None, past: Past | None = None
) -> Totals:
    """The data for a table with these rows and the exported part of the course."""
    own = part_of(rows, what)
    most = max((row.max for row in own if row.max is not None), default=0.0)
    return Totals(own, what.exercises, what.title, what.most(most), what.scale(most), column, past)


def part_of(rows: Sequence[Row], what: Part) -> Sequence[Row]:
    """The rows of the exported part; the rows themselves if all graded exercises are exported."""
    graded = {one.name for row in rows if row.grade is not None for one in row.grade.exercises}
    return rows if graded <= {*what.exercises} else [narrowed(row, what.exercises) for row in rows]


def unjudged(rows: Sequence[Row]) -> Iterator[str]:
    """Lines about the students without points: those who get no grade, and those who get zero."""
    without = [row for row in rows if not row.judged and not row.excused]
    if without:
        yield f"no grade for {counted(len(without), 'student')}, since there is nothing to judge:"
    absent = [_called(row) for row in without if row.status == ABSENT]
    if absent:
        yield f"  {ABSENT}: {', '.join(absent)}"
    for row in without:
        if row.status != ABSENT:
            why = row.conflict if row.grade is None else row.grade.message
            yield f"  {_called(row)}: {row.status}{f' ({_line(why)})' if why else ''}"
    stubs = [_called(row) for row in rows if row.status == "graded" and row.untouched]
    if stubs:
        yield (
            f"0 points for {counted(len(stubs), 'student')}, who submitted no answer, or left all "
            f"stubs as they were: {', '.join(stubs)}"
        )


def _called(row: Row) -> str:
    return called(row.student, shown(row.person.name))


def _line(text: str) -> str:
    """The last line of a message, which says what went wrong, in bounded length."""
    lines = text.strip().splitlines()
    return lines[-1].strip()[:MOST_OF_A_REASON] if lines else ""


def write_results(
    to: Path, rows: Sequence[Row], what: Part, course: Course, results: ResultFiles
) -> Path:
    """Write a file of results for each student whose answers were judged, into a new folder.

    Raises `CallError` if `to` is not empty.
    """
    own = part_of(rows, what)
    graded = {row.student: row for row in own if row.judged and row.grade is not None}
    stems = file_stems(graded)
    require_empty(to)
    with drafted(to, private=True) as draft:
        for student, row in graded.items():
            (draft / stems[student]).mkdir()
            data = results.of(row, course, what.scale(row.max or 0))
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
