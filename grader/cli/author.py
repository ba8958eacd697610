"""Commands for the author of a course: `schema` and `new`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from grader.cli.app import (
    AUTHORS,
    CourseOption,
    app,
    instructors_course,
)
from grader.records.faults import CallError
from grader.records.rows import counted


@app.command(
    rich_help_panel=AUTHORS,
    epilog="Example: grader schema course > exercises/course.schema.json",
)
def schema(
    file: Annotated[
        Literal["course", "audit", "results"],
        typer.Argument(
            help="course.toml, solutions/mistakes/audit.toml, or a line of results.jsonl."
        ),
    ],
) -> None:
    """Print the JSON schema of a file: with it, editors complete keys, and programs check lines.

    For an editor, write it to a file, and name this file in the first line of course.toml, or of
    audit.toml: #:schema ./course.schema.json
    """
    from grader.author.schema import schema as text_of

    print(text_of(file), end="")


new = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Start something of your own.")
app.add_typer(new, name="new", rich_help_panel=AUTHORS)


@new.command(
    "course",
    epilog='Example: grader new course ../statistics --title "Statistics with tensors"',
)
def new_course(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make; keep it private.")],
    title: Annotated[str, typer.Option("--title", help="The course's title, for people.")] = "",
    name: Annotated[
        str, typer.Option("--name", help="The course's name, for files (default: the folder's).")
    ] = "",
    overlay: Annotated[
        bool,
        typer.Option("--overlay", help="Start a private course on top of the course --course."),
    ] = False,
    course: CourseOption = None,
) -> None:
    """Write a new course with one exercise, which grades, checks, audits and releases as it is.

    With --overlay, DIR becomes a private course on top of another course. Anyone can read the
    references and hidden tests of a public repository. The tests and mistakes that you put into
    DIR are added to them, and stay private.
    """
    if overlay:
        if title or name:
            raise CallError("an overlay takes its title and name from the course below it")
        from grader.release.courses import write_overlay

        write_overlay(instructors_course(course, "new course"), to)
        print(f"{to} has a seed of its own, and {to / 'README.md'} says what else you can add")
        print(f"to grade with it: grader grade submissions/ --out grades/ --course {to}")
        return
    if course is not None:
        raise CallError("--course names the course below an overlay: add --overlay")
    from grader.author.courses import write_course

    write_course(to, title, name)
    print(f"{to} is a course with one exercise, and {to / 'README.md'} says what each file is for")
    print(f"to prove its tests:  grader audit --course {to}")
    print(f"to add an exercise:  grader new exercise NAME --unit UNIT --from FILE --course {to}")


@new.command(
    "exercise",
    epilog="Example: grader new exercise softmax_rows --unit softmax --from answer.py --example "
    '"softmax_rows(torch.randn(2, 5), dim=-1)" --course ../my-course',
)
def new_exercise(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A function or nn.Module class.")],
    unit: Annotated[str, typer.Option("--unit", help="The unit; a new one is added.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The file with the reference (default: the unit's file in solutions/).",
        ),
    ] = None,
    example: Annotated[
        str,
        typer.Option(
            "--example",
            metavar="CALL",
            help="A call of NAME, if annotations and docstring do not say the shapes.",
        ),
    ] = "",
    course: CourseOption = None,
) -> None:
    """Write an exercise from a reference: everything that can be derived from a right answer.

    Writes the stub with its statement, the entry in course.toml, public checks, hidden tests and
    known mistakes. Audits them, and lists what is left for a person. Text that is there already
    stays as it is, so the command can run again at any time.
    """
    from grader.author.scaffold.draft import write_exercise
    from grader.author.scaffold.words import lines_of

    opened = instructors_course(course, "new exercise")
    stderr = Console(stderr=True)
    try:
        with stderr.status("loading torch") as status:
            outcome = write_exercise(opened, name, unit, source, example, status.update)
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    for line in lines_of(name, outcome):
        print(line)


@new.command("class", epilog="Example: grader new class practice/ --students 300")
def new_class(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    students: Annotated[int, typer.Option("--students", min=1, help="Their number.")] = 300,
    course: CourseOption = None,
) -> None:
    """Write an invented class to practise on: a download from Canvas, its gradebook, and a roster.

    Answers are right in some form, have a known mistake, or are missing. Some students submit late,
    twice or never. The same call gives the same class; a smaller class has the first students of a
    larger one. Keep the class private: it contains solutions.
    """
    from grader.author.practice import write_class

    write_class(to, instructors_course(course, "new class"), students)
    print(f"{counted(students, 'student')} in {to}: submissions.zip, roster.csv, canvas.csv")
