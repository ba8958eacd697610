"""`grader report`: a gradebook as pages."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.app import INSTRUCTORS, CourseOption, GradesArgument, app, instructors_course
from grader.cli.pages import written


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
