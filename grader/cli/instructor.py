"""What an instructor types: from a folder of submissions to a gradebook."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    CourseOption,
    DeviceOption,
    JobsOption,
    JsonOption,
    SeedOption,
    app,
)
from grader.course import find_course, load_course
from grader.faults import CallError


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader grade submissions/ --out grades/ --jobs 2",
)
def grade(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="A .py file, a notebook, a zip or folder of those, or a folder of submissions.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the gradebook goes.")],
    jobs: JobsOption = None,
    seed: SeedOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Just this exercise or unit; may be repeated."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Lose earlier grades in DIR that this run leaves out.")
    ] = False,
    isolation: Annotated[
        Literal["strong", "weak"],
        typer.Option(
            "--isolation",
            help="With weak, grade even where submissions could reach secrets: see doctor.",
        ),
    ] = "strong",
    device: DeviceOption = "cpu",
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grade submissions into a gradebook: grades.db, gradebook.csv and results.jsonl.

    A student's name is the file's or the folder's. Who is graded again in the same folder gets
    the new grade.
    """
    from grader import terminal
    from grader.batch import grade_into
    from grader.intake import find_submissions
    from grader.workers import Order, default_jobs

    opened = load_course(find_course(course))
    opened.require_solutions("grade")
    if device != "cpu" and isolation == "strong":
        raise CallError(
            f"no jail may touch {device}, so submissions run where nothing isolates them: "
            "--isolation=weak grades all the same, and says so in each grade"
        )
    chosen = opened.select(only or [])
    submissions = find_submissions(paths, opened)
    files = opened.test_files()
    order = Order(
        opened, seed or opened.hidden_seed(), files, chosen, isolation=isolation,
        secrets=(out, *paths), device=device,
    )  # fmt: skip
    stderr, stdout = Console(stderr=True), Console(highlight=False)
    try:
        with terminal.progress(stderr, "grading", len(submissions)) as advance:
            rows = grade_into(
                out, order, submissions, jobs or default_jobs(len(submissions)),
                lambda _: advance(), replace=replace,
            )  # fmt: skip
    except KeyboardInterrupt:
        print(f"grader: stopped; what was graded so far is kept in {out}", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        most = [row.grade.max if row.grade else None for row in rows]
        fields = ("student", "status", "total")
        told = [{f: getattr(row, f) for f in fields} for row in rows]
        print(json.dumps([{**one, "max": most} for one, most in zip(told, most, strict=True)]))
    else:
        stdout.print(terminal.gradebook_table(opened, rows))
        stdout.print(terminal.legend(opened, rows), soft_wrap=True)
        for note in terminal.notes([row.grade for row in rows if row.grade]):
            stdout.print(note)
        count = f"{len(rows)} submission{'s' if len(rows) != 1 else ''}"
        stdout.print(f"{count} in {out / 'gradebook.csv'}", soft_wrap=True)
    if any(row.status == "grader_error" for row in rows):
        raise typer.Exit(3)
