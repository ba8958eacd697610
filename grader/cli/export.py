"""`grader export`: grades on their way to other systems."""

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
from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.files import write_whole

if TYPE_CHECKING:
    from grader.export import Part
    from grader.grades.gradebook import Gradebook


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader export grades/ --to canvas --into canvas.csv --out upload.csv",
)
def export(
    folder: GradesArgument,
    to: Annotated[
        Literal["csv", "canvas", "moodle", "gradescope"],
        typer.Option("--to", help="A table; or, for gradescope, a results.json for each student."),
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
        bool, typer.Option("--anonymous", help="With csv: pseudonyms, and nothing of the roster.")
    ] = False,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write the grades as another system reads them.

    With --into, a CSV that Canvas or Moodle exported is copied, and one column of it filled in.
    Corrections count. Who handed in nothing has no grade, rather than a zero: what is late or
    missing is for the other system to decide.
    """
    from grader.export import exported, write_results
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.privacy import anonymous as nameless
    from grader.grades.privacy import pseudonyms_in

    opened = instructors_course(course)
    with existing_gradebook(folder, opened.name) as book:
        what = _part(opened, book, assignment)
        rows = book.rows()
        if anonymous:
            rows = nameless(rows, pseudonyms_in(rows, book.salt))
    if anonymous and to != "csv":
        raise CallError(f"{to} has to know whose grades these are: --anonymous is for csv")
    if to in ("csv", "gradescope") and (into is not None or column is not None):
        raise CallError("--into and --column are for canvas and moodle")
    if to == "gradescope":
        print(write_results(out or folder / to, rows, what, opened))
        return
    filled = exported(rows, what, to, into, column)
    path = out or folder / ("grades.csv" if to == "csv" else f"{to}.csv")
    if into is not None and path.resolve() == into.resolve():
        raise CallError(f"{path} would be written over: name another file with --out")
    try:
        write_whole(path, filled.text.encode())
    except OSError as error:
        raise CallError(f"{path} cannot be written: {error.strerror}") from None
    for line in filled.told:
        print(line, file=sys.stderr)
    print(path)


def _part(course: Course, book: Gradebook, assignment: str | None) -> Part:
    from grader.export import Part

    name = assignment or book.assignment
    if not name:
        return Part(course.file.title, book.exercises)
    wanted = course.assignment(name)
    exercises = course.select(wanted.exercises)
    if not {*exercises} <= {*book.exercises}:
        raise CallError(f"{book.folder} does not hold grades of all of {name!r}")
    return Part(wanted.heading, exercises, wanted)
