"""`grader release`: writes folders for students and for other systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    JobsOption,
    SeedOption,
    app,
    declare,
    instructors_course,
)
from grader.course.course import Course
from grader.lms import SYSTEMS
from grader.lms.system import Bundle
from grader.records.rows import counted

release = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Write folders to give away."
)
app.add_typer(release, name="release", rich_help_panel=INSTRUCTORS)

ToOption = Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write.")]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Overwrite an earlier bundle in DIR.")
]


def _opened(course: Path | None, command: str, assignment: str | None) -> Course:
    from grader.feedback.terminal import course_line
    from grader.release.courses import part_of

    opened = instructors_course(course, f"release {command}")
    print(course_line(opened))
    return part_of(opened, assignment) if assignment is not None else opened


def _recorded(
    write: Callable[..., list[Path]], course: Course, to: Path, replace: bool, jobs: int | None
) -> int:
    """Write a bundle that has recordings, show a progress bar, and return the number of files."""
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    console, exercises = Console(stderr=True), len(course.exercises)
    if not console.is_terminal:
        print(f"recording {counted(exercises, 'exercise')}, unless cached", flush=True)
    with terminal.progress(console, "recording", exercises) as advance:
        jobs = jobs or default_jobs(exercises)
        return len(write(course, to, lambda _: advance(), replace=replace, jobs=jobs))


TorchIndexOption = Annotated[
    str | None,
    typer.Option(
        "--torch-index", metavar="URL", help="A second index for pip, with torch for CPU."
    ),
]


@release.command("student", epilog="Example: grader release student --to course/")
def release_student(
    to: ToOption,
    github: Annotated[
        bool,
        typer.Option("--github", help="Add a workflow that runs the checks at every push."),
    ] = False,
    wheel_url: Annotated[
        str | None,
        typer.Option(
            "--wheel-url", metavar="URL", help="Let notebooks install the kit's wheel from here."
        ),
    ] = None,
    replace: ReplaceOption = False,
    assignment: AssignmentOption = None,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write the student bundle: stubs, public checks, recordings, notebooks; no solution.

    Runs every public check on the references and on all known mistakes, and records the results.
    This takes minutes the first time, and later seconds, until the course or the kit changes. The
    bundle holds the recordings instead of the solutions. With --assignment, the bundle holds whole
    units, because a unit is one file. With --github, students can change the workflow: its results
    are for learning, and marks come from `grader grade`.

    With --wheel-url, the notebooks also work alone on a hosted service that has torch: their first
    cell installs the wheel from there, with its course, and keeps the torch that is there. `make
    dist` builds the wheel; keep the name of its file.
    """
    from grader.release.github import workflow_texts
    from grader.release.hosted import wheel_at
    from grader.release.student import write_student_bundle

    wheel = None if wheel_url is None else wheel_at(wheel_url)
    opened = _opened(course, "student", assignment)
    beside = workflow_texts(opened) if github else None
    write = partial(write_student_bundle, texts_beside=beside, wheel=wheel)
    count = _recorded(write, opened, to, replace, jobs)
    print(f"{count} files in {to}; try it as a student would: see {to / 'README.md'}")
    if github:
        print("push them to GitHub, as a template repository; give marks with grader grade")


# --- for a system --------------------------------------------------------------------------------
#
# Each system that has a bundle gets a command, with the options that the bundle needs.

OPTIONS = {"seed": SeedOption, "torch_index": TorchIndexOption}  # only some bundles take these


def _add(name: str, bundle: Bundle) -> None:
    def command(
        to: Path,
        replace: bool,
        assignment: str | None,
        course: Path | None,
        jobs: int | None = None,
        **options: Any,
    ) -> None:
        opened = _opened(course, name, assignment)
        write = partial(bundle.write, **options)
        if bundle.recorded:
            count = _recorded(write, opened, to, replace, jobs)
        else:
            count = len(write(opened, to, replace=replace))
        for line in bundle.next_steps(to, count):
            print(line)

    own = {option: OPTIONS[option] for option in bundle.options}
    own |= {"jobs": JobsOption} if bundle.recorded else {}
    declare(
        command,
        {
            "to": ToOption,
            "replace": ReplaceOption,
            "assignment": AssignmentOption,
            **own,
            "course": CourseOption,
        },
        **dict.fromkeys([*own, "assignment", "course"]),
        replace=False,
    )
    example = f"Example: grader release {name} --to {bundle.example}"
    release.command(name, help=bundle.help, epilog=example)(command)


for _system in sorted(SYSTEMS, key=lambda system: system.name):
    if _system.bundle is not None:
        _add(_system.name, _system.bundle)
