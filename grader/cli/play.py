"""`grader play`: trains a model of the student's own answers, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.cli.app import STUDENTS, CourseOption, app, students_course
from grader.course.course import Course

EXAMPLES = (
    "Example: grader play addition\n\n"
    "What is the mask for? Add --without mask. What gives the order away? Add --without positions, "
    "then --without mask,positions. What does the scale change? Add --without scale --heads 1. Set "
    "two runs side by side: add --beside addition.html"
)


@app.command(rich_help_panel=STUDENTS, epilog=EXAMPLES)
def play(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The game; without a name, lists all.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of weights and batches.")] = 1,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="The most steps of the training.")
    ] = None,
    heads: Annotated[
        int | None, typer.Option("--heads", metavar="N", help="Heads in each layer.")
    ] = None,
    std: Annotated[
        float | None,
        typer.Option("--std", help="Redraw embeddings with this standard deviation."),
    ] = None,
    without: Annotated[
        str,
        typer.Option(
            "--without", metavar="PARTS", help="Leave out: mask, positions, scale; with commas."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="The page to write (default: NAME.html, NAME-2.html, …)."
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--beside", metavar="FILE", help="An earlier run's page: set both side by side."
        ),
    ] = None,
    no_questions: Annotated[
        bool, typer.Option("--no-questions", help="End after the page, without questions.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines of text only, for a screen reader.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Train a model made of your own answers, ask it questions, and get a page to show around.

    Your code runs in this process. All answers that the model needs must be written.
    """
    from grader.feedback import terminal

    opened = students_course(course)
    if name is None:
        _list(opened)
        return
    with terminal.waiting("loading torch"):
        from grader.playing.learning import Choices
        from grader.playing.session import Session
    console = Console(highlight=False)
    parts = tuple(part.strip() for part in without.split(",") if part.strip())
    session = Session(opened, name, Choices(seed, steps, heads, std, parts), out, beside)
    session.on(console, plain=plain, questions=not no_questions)


def _list(course: Course) -> None:
    import ast

    from rich.text import Text

    from grader.feedback import terminal

    plays = course.plays()
    for name, path in plays.items():
        said = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        begin = f"grader play {name:10} "
        row = Text(begin + said.partition("\n")[0])
        terminal.print_row(Console(highlight=False), row, len(begin))
    if not plays:
        print("this course has nothing to play")
