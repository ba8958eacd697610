"""`grader release`: folders to give away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    JobsOption,
    SeedOption,
    app,
    instructors_course,
)
from grader.course.course import Course

release = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Write folders to give away."
)
app.add_typer(release, name="release", rich_help_panel=INSTRUCTORS)

ToOption = Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write.")]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Write over an earlier bundle in DIR.")
]


def _opened(course: Path | None, command: str, assignment: str | None) -> Course:
    from grader.feedback.terminal import course_line
    from grader.release.courses import part_of

    opened = instructors_course(course, f"release {command}")
    print(course_line(opened))
    return part_of(opened, assignment) if assignment is not None else opened


def _recorded(
    write: Callable[..., list[Path]], course: Course, to: Path, replace: bool, jobs: int | None
) -> int:  # fmt: skip
    """Write a bundle that is recorded first, and show how far it is; the number of its files."""
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    units = len(course.units)
    with terminal.progress(Console(stderr=True), "recording", units) as advance:
        jobs = jobs or default_jobs(4 * units)
        return len(write(course, to, lambda _: advance(), replace=replace, jobs=jobs))


TorchIndexOption = Annotated[
    str | None,
    typer.Option(
        "--torch-index", metavar="URL", help="Where pip finds torch for CPU, besides its index."
    ),
]


@release.command("student", epilog="Example: grader release student --to attention/")
def release_student(
    to: ToOption,
    replace: ReplaceOption = False,
    assignment: AssignmentOption = None,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write the student bundle: stubs, public checks, recordings, notebooks; no solution.

    Every public check is run on the references and on all known mistakes, which takes a minute or
    two: the recorded results then stand in the bundle instead of the solutions. An assignment
    brings the whole of its units, since a unit is one file.
    """
    from grader.release.student import release_student as write

    count = _recorded(write, _opened(course, "student", assignment), to, replace, jobs)
    print(f"{count} files in {to}; try it as a student would: see {to / 'README.md'}")


@release.command("classroom", epilog="Example: grader release classroom --to attention-template/")
def release_classroom(
    to: ToOption,
    replace: ReplaceOption = False,
    assignment: AssignmentOption = None,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write a template repository for GitHub Classroom: the student bundle, checked at each push.

    Whoever can push can change the checks: what Classroom shows is for learning. Give marks with
    `grader grade`.
    """
    from grader.release.classroom import WORKFLOW
    from grader.release.classroom import release_classroom as write

    count = _recorded(write, _opened(course, "classroom", assignment), to, replace, jobs)
    print(f"{count} files in {to}: push them to the assignment's template repository")
    print(f"students can change {WORKFLOW} and the checks: give marks elsewhere")


@release.command("gradescope", epilog="Example: grader release gradescope --to gradescope/")
def release_gradescope(
    to: ToOption,
    replace: ReplaceOption = False,
    assignment: AssignmentOption = None,
    seed: SeedOption = None,
    torch_index: TorchIndexOption = None,
    course: CourseOption = None,
) -> None:
    """Write an autograder for Gradescope. It holds the solutions: give it to nobody else.

    Gradescope shows public checks at once, and hidden tests when grades are published.
    """
    from grader.release.gradescope import ZIP
    from grader.release.gradescope import release_gradescope as write

    opened = _opened(course, "gradescope", assignment)
    written = write(opened, to, seed=seed, torch_index=torch_index, replace=replace)
    print(
        f"{len(written)} files in {to}, among them the solutions and the seed: keep it to yourself"
    )
    print(f"upload {to / ZIP}; {to / 'README.md'} says which container it needs")


@release.command("otter", epilog="Example: grader release otter --to otter/")
def release_otter(
    to: ToOption,
    replace: ReplaceOption = False,
    assignment: AssignmentOption = None,
    torch_index: TorchIndexOption = None,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write a folder for otter-grader: student notebooks, autograders, masters for `otter assign`.

    The autograders and masters hold the solutions: only DIR/student is to be given away. Public
    checks are recorded for it, as for the student bundle.
    """
    from grader.release.otter import release_otter as write

    opened = _opened(course, "otter", assignment)
    count = _recorded(partial(write, torch_index=torch_index), opened, to, replace, jobs)
    print(f"{count} files in {to}, which holds the solutions: give away {to / 'student'} only")
