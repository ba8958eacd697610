"""`grader release`: folders to give away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.cli.app import INSTRUCTORS, AssignmentOption, CourseOption, JobsOption, app
from grader.course import find_course, load_course

release = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Write folders to give away."
)
app.add_typer(release, name="release", rich_help_panel=INSTRUCTORS)


@release.command("student", epilog="Example: grader release student --to attention/")
def release_student(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over an earlier bundle in DIR.")
    ] = False,
    assignment: AssignmentOption = None,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write the student bundle: stubs, public checks, recordings, notebooks; no solution.

    Every public check is run on the references and on all known mistakes, which takes a minute or
    two: the recorded results then stand in the bundle instead of the solutions. An assignment
    brings the whole of its units, since a unit is one file.
    """
    from grader import terminal
    from grader.release.student import release_student as write
    from grader.workers import default_jobs

    opened = load_course(find_course(course))
    opened.require_solutions("release student")
    part = opened.assignment(assignment) if assignment else None
    units = len({opened.unit_of[name] for name in opened.select(part.exercises if part else ())})
    with terminal.progress(Console(stderr=True), "recording", units) as advance:
        written = write(
            opened, to, lambda _: advance(), replace=replace, jobs=jobs or default_jobs(4 * units),
            assignment=part,
        )  # fmt: skip
    print(f"{len(written)} files in {to}; try it as a student would: see {to / 'README.md'}")
