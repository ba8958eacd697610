"""`grader report` and `grader export`: pages, and grades on their way to other systems."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    GradesArgument,
    app,
    instructors_course,
)
from grader.cli.pages import written
from grader.course.course import Course
from grader.lms import SYSTEMS
from grader.lms.system import Filled, Part, ResultFiles, Table, Totals, totals, write_results
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.records.rows import listed

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook


@app.command(rich_help_panel=INSTRUCTORS, epilog="Example: grader report grades/")
def report(
    folder: GradesArgument,
    anonymous: Annotated[
        bool,
        typer.Option("--anonymous", help="Only a report, report-anonymous.html, without names."),
    ] = False,
    similarity: Annotated[
        bool, typer.Option("--similarity/--no-similarity", help="Compare submissions in pairs.")
    ] = True,
    course: CourseOption = None,
) -> None:
    """Write the pages of a gradebook: feedback for each student, and a report on the class."""
    opened = instructors_course(course)
    print(written(folder, opened, anonymous=anonymous, similarity=similarity))


# --- export --------------------------------------------------------------------------------------
#
# `grader export`: grades on their way to other systems.


TO = {system.name: system.grades for system in SYSTEMS if system.grades is not None}
FILLED = [system for system in SYSTEMS if isinstance(system.grades, Table) and system.grades.into]
NAMELESS = [name for name, grades in TO.items() if isinstance(grades, Table) and grades.nameless]
RESULTS = "; ".join(
    f"for {name}, a {grades.file} for each student"
    for name, grades in TO.items()
    if isinstance(grades, ResultFiles)
)

# The choices of --to: those of the table, which a type checker does not run.
if TYPE_CHECKING:
    Target = str
else:
    Target = Literal[tuple(TO)]

HELP = f"""Write the grades as another system reads them.

With --into, a CSV that {listed([system.title for system in FILLED], "or")} exported is copied, and
one column of it filled in. Corrections count. Who handed in nothing has no grade, rather than a
zero: what is late or missing is for the other system to decide.
"""


@app.command(
    rich_help_panel=INSTRUCTORS,
    help=HELP,
    epilog="Example: grader export grades/ --to canvas --into canvas.csv --out upload.csv",
)
def export(
    folder: GradesArgument,
    to: Annotated[
        Target,
        typer.Option("--to", help=f"A table; or, {RESULTS}."),
    ],
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Fill in a CSV that the system exported."),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="TITLE", help="The column for the totals, if in doubt."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="PATH", help="What to write (default: in DIR, named after --to)."
        ),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help=f"With {listed(NAMELESS, 'or')}: pseudonyms, and nothing of the roster.",
        ),
    ] = False,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write the grades as another system reads them: see `HELP`."""
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.privacy import anonymous as nameless
    from grader.grades.privacy import pseudonyms_in

    opened = instructors_course(course)
    with existing_gradebook(folder, opened.name) as book:
        what = _part(opened, book, assignment)
        rows = book.rows()
        if anonymous:
            rows = nameless(rows, pseudonyms_in(rows, book.salt))
    if anonymous and to not in NAMELESS:
        raise CallError(
            f"{to} has to know whose grades these are: --anonymous is for {listed(NAMELESS, 'and')}"
        )
    fillable = [system.name for system in FILLED]
    if to not in fillable and (into is not None or column is not None):
        raise CallError(f"--into and --column are for {listed(fillable, 'and')}")
    grades = TO[to]
    if isinstance(grades, ResultFiles):
        print(write_results(out or folder / to, rows, what, opened, grades))
        return
    filled = _table(grades, totals(rows, what, column), into)
    path = out or folder / grades.file
    if into is not None and path.resolve() == into.resolve():
        raise CallError(f"{path} would be written over: name another file with --out")
    try:
        write_whole(path, filled.text.encode())
    except OSError as error:
        raise CallError(f"{path} cannot be written: {error.strerror}") from None
    for line in filled.told:
        print(line, file=sys.stderr)
    print(path)


def _table(grades: Table, given: Totals, into: Path | None) -> Filled:
    if into is None:
        return grades.fresh(given)
    assert grades.into is not None
    return grades.into(given, into)


def _part(course: Course, book: Gradebook, assignment: str | None) -> Part:
    name = assignment or book.assignment
    if not name:
        return Part(course.file.title, book.exercises)
    wanted = course.assignment(name)
    exercises = course.select(wanted.exercises)
    if not {*exercises} <= {*book.exercises}:
        raise CallError(f"{book.folder} does not hold grades of all of {name!r}")
    return Part(wanted.heading, exercises, wanted)
