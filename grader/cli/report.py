"""`grader report`: a gradebook as pages."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from grader.cli.app import INSTRUCTORS, CourseOption, GradesArgument, app
from grader.course import find_course, load_course
from grader.wording import counted


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
    from grader import report, terminal
    from grader.gradebook import existing_gradebook

    opened = load_course(find_course(course))
    with existing_gradebook(folder, opened.name) as book:
        write, pages = (
            (report.write_anonymous, 0)
            if anonymous
            else (report.write_pages, sum(1 for _ in book.grades()))
        )
        doing = "writing pages"
        with terminal.progress(Console(stderr=True), doing, pages + 1, first=doing) as advance:
            write(book, opened, advance, similarity=similarity)
    if pages:
        print(f"{counted(pages, 'page')} for students in {folder / report.FEEDBACK}")
    print(f"the report: {folder / (report.ANONYMOUS if anonymous else report.REPORT)}")
