"""The program `grader`, and the options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Parameter, Signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from grader.cli import commands, completion
from grader.cli.streams import checked_streams
from grader.course.course import NAMED, Course, find_course, load_course
from grader.records.faults import CallError, exit_codes

WHOLE_KIT = (
    "{} is a command of the whole kit, and only the student's part is installed here: "
    "pip install attention-grader, in another environment"
)


def _course_here() -> Course | None:
    """The course that a student's command would use here; None if there is none."""
    with suppress(CallError):
        return students_course(None)
    return None


class StudentCommand(TyperCommand):
    """A command whose example in the help names a unit and an exercise of the student's course."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Show the example."""
        course, names = _course_here(), {"exercise": "NAME", "unit": "UNIT", "experiment": ""}
        if course is not None and course.asked:
            exercise = course.asked[0]
            experiments = [name for names in course.experiments.values() for name in names]
            names = {
                "exercise": exercise,
                "unit": course.unit_of[exercise],
                "experiment": next(iter(experiments), ""),
            }
        self.epilog = (self.epilog or "").format_map(names)
        super().format_epilog(ctx, formatter)


class _Program(TyperGroup):
    """The group of the commands in the table `MODULE_OF`, each imported only when needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (Click passes it)
        """The installed commands, in the table's order."""
        return commands.offered()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; raises `CallError` if only an install of the whole kit has it."""
        here = self.list_commands(ctx)
        if cmd_name in commands.MODULE_OF and cmd_name not in here:
            raise CallError(WHOLE_KIT.format(cmd_name))
        if cmd_name not in self.commands:
            # For an unknown name, load all commands: Click then suggests a similar name.
            commands.load([cmd_name] if cmd_name in here else here)
            self.commands.update(typer.main.get_group(app).commands)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands under headings, so that students find the commands for students.

        Commands for which this course has no content are left out.
        """
        names, course = self.list_commands(ctx), _course_here()
        commands.load(names)
        if course is not None:
            names = [name for name in names if name not in course.lacking]
        width = formatter.width - 6 - max(map(len, names))
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            command = self.get_command(ctx, name)
            if command.hidden:
                continue
            whose = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(whose, []).append((name, command.get_short_help_str(width)))
        for whose, rows in sections.items():
            with formatter.section(whose):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=_Program,
    name="grader",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The headings in the help.
STUDENTS, INSTRUCTORS, AUTHORS = "For students", "For instructors", "For authors and everyone"

CourseOption = Annotated[
    Path | None,
    typer.Option(
        "--course", metavar="DIR", help=f"The course: a folder with course.toml. Or: {NAMED}."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def _one_or_more(jobs: int | None) -> int | None:
    if jobs is not None and jobs < 1:
        raise CallError(f"--jobs must be at least 1, got {jobs}")
    return jobs


JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", callback=_one_or_more, help="Processes (default: by the cores)."
    ),
]
SeedOption = Annotated[
    str | None,
    typer.Option("--seed", metavar="TEXT", help="The hidden seed (default: solutions/seed)."),
]
GradesArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The gradebook: the folder of `grader grade --out`.")
]
AssignmentOption = Annotated[
    str | None,
    typer.Option(
        "--assignment",
        metavar="NAME",
        autocompletion=completion.assignments,
        help="Only this assignment of course.toml.",
    ),
]
BackendOption = Annotated[
    Literal["auto", "jail", "worker"],
    typer.Option(
        "--backend",
        help="How your code runs: isolated, in a new process (Linux), or in one worker process.",
    ),
]
DeviceOption = Annotated[
    Literal["cpu", "cuda"],
    typer.Option(
        "--device",
        help="The device for answers. A GPU is never needed, and jails cannot use one.",
    ),
]


def name_of_unit(given: str | None) -> str | None:
    """The unit's name, if a shell completed the name to the unit's file; else the given name."""
    path = Path(given or "")
    return path.stem if path.suffix in (".py", ".ipynb") else given


def _names(given: list[str] | None) -> list[str] | None:
    return [str(name_of_unit(name)) for name in given or ()] or None


NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        callback=_names,
        autocompletion=completion.exercises,
        help="Exercises or units (default: all).",
    ),
]


def declare(command: Callable[..., None], options: Mapping[str, Any], **defaults: Any) -> None:
    """Give a command a signature, from which Typer reads its parameters.

    `options` maps names to annotations. A parameter without a default is required.
    """
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=defaults.get(name, Parameter.empty),
            )
            for name, annotation in options.items()
        ]
    )


def students_course(given: Path | None) -> Course:
    """The course of a student's command: see `find_course`."""
    return load_course(find_course(given, student=True))


def instructors_course(given: Path | None, command: str = "") -> Course:
    """The course of an instructor's command; `command` is its name, if it needs the solutions."""
    course = load_course(find_course(given))
    if command:
        course.require_solutions(command)
    return course


def main() -> None:
    """Run a command; the kit's own exceptions become a line of text and an exit code."""
    with checked_streams(), exit_codes():
        if isinstance(sys.stdout, TextIOWrapper):
            # Names may have letters that a terminal cannot show; paths may be undecodable bytes.
            sys.stdout.reconfigure(errors="backslashreplace")
        app()
