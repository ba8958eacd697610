"""`grader canvas`: fetches submissions from Canvas, and sends grades to it, without files between.

The library for it is optional, so its modules are imported when a command runs.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    GradesArgument,
    app,
    instructors_course,
)
from grader.cli.conversation import OverwriteAllOption, OverwriteOption, exported_part, not_exported
from grader.cli.tables import table_console
from grader.feedback.terminal import progress, safe
from grader.lms.canvas import SYSTEM
from grader.lms.system import totals, unjudged
from grader.records.faults import CallError, Unreachable
from grader.records.rows import counted, number

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook
    from grader.lms.canvas_api import Api
    from grader.lms.canvas_push import PushPlan

canvas = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Fetch submissions from Canvas, and send grades to it. The token is in the environment "
    "variable CANVAS_TOKEN, or in your keyring: keyring set attention-grader HOST.",
)
app.add_typer(canvas, name="canvas", rich_help_panel=INSTRUCTORS)

ADDRESS = "In the address of its page in Canvas: /courses/COURSE/assignments/ASSIGNMENT."
PlaceArgument = Annotated[int, typer.Argument(metavar="COURSE", min=1, help=ADDRESS)]
NumberArgument = Annotated[
    int, typer.Argument(metavar="ASSIGNMENT", min=1, help="The assignment's number in Canvas.")
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The address of Canvas (default: CANVAS_URL)."),
]


def _tell(line: str) -> None:
    print(safe(line), file=sys.stderr, flush=True)


@canvas.command(
    "fetch",
    epilog="Example: grader canvas fetch 1234 5678 --out ps1/ --url https://canvas.example.edu",
)
def canvas_fetch(
    place: PlaceArgument,
    number_there: NumberArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
    url: UrlOption = None,
) -> None:
    """Fetch an assignment's submissions, its roster and the times of the submissions.

    Only each student's newest attempt is fetched. If it is interrupted, run the same command again:
    files that are there are kept.
    """
    from grader.lms.canvas_api import canvas_at
    from grader.lms.canvas_fetch import ROSTER, SUBMISSIONS, TIMES, fetch, list_submissions

    api = canvas_at(url, _tell)
    listing = list_submissions(api, place, number_there)
    console, files = Console(stderr=True), len(listing.items)
    with progress(console, "fetching", files, first="fetching") as advance:
        done = fetch(api, listing, out, advance)
    for line in done.left_out:
        _tell(line)
    print(
        f"{counted(done.new, 'file')} fetched, {done.kept} here already, {done.removed} of earlier "
        "attempts removed; to grade them:"
    )
    command = ["grader", "grade", str(out / SUBMISSIONS), "--roster", str(out / ROSTER)]
    command += ["--times", str(out / TIMES), "--out", str(out / "grades")]
    print(shlex.join(command))
    if done.failed:
        raise Unreachable(
            f"{counted(done.failed, 'file')} could not be fetched, listed above: run the same "
            "command again, or grade without them"
        )


@canvas.command(
    "push", epilog="Example: grader canvas push ps1/grades/ 1234 5678 --feedback --dry-run"
)
def canvas_push(
    folder: GradesArgument,
    place: PlaceArgument,
    number_there: NumberArgument,
    feedback: Annotated[
        bool, typer.Option("--feedback", help="Also attach each student's page, as a comment.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be sent.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    overwrite: OverwriteOption = None,
    overwrite_all: OverwriteAllOption = False,
    assignment: AssignmentOption = None,
    url: UrlOption = None,
    course: CourseOption = None,
) -> None:
    """Send the grades to an assignment in Canvas, after showing them beside those that are there.

    The points are those of `grader export`. A grade that somebody changed in Canvas stays, and so
    does an excuse. Students without a grade get none. With --feedback, students also get their page
    from DIR/feedback, unless their grade in Canvas is a person's. If it is interrupted, run the
    same command again: nothing is sent twice.
    """
    from grader.grades.gradebook import alone, existing_gradebook
    from grader.grades.lookup import find_student
    from grader.grades.remarks import remarks
    from grader.lms.canvas_api import canvas_at
    from grader.lms.canvas_push import plan

    opened = instructors_course(course)
    # No other push, and no grading, runs at the same time.
    with existing_gradebook(folder, opened.identity) as book, alone(folder):
        what, rows = exported_part(opened, book, assignment), book.rows()
        given = totals(rows, what)
        chosen = frozenset(find_student(rows, name).student for name in overwrite or ())
        pages = _pages(book) if feedback else {}
        api = canvas_at(url, _tell)
        where = (place, number_there)
        planned = plan(api, where, book, given, pages, chosen, overwrite_all)
        table_console().print(_table(planned))
        about = (*unjudged(given.rows), *remarks(given.rows, book.policy))
        for line in (*planned.notes, *about, *not_exported(rows, given.rows)):
            _tell(line)
        acting = [step for step in planned.steps if step.acts]
        if not dry_run:
            book.remember_export(SYSTEM.name, planned.column, planned.settled)
        if acting and not dry_run:
            title = f"{planned.column} at {api.url}"
            if not yes:
                _confirm(f"send to {counted(len(acting), 'student')} in {title}?")
                if book.rows() != rows:
                    raise CallError("the gradebook changed meanwhile: run the same command again")
            _carry_out(api, planned, book, len(acting))
        else:
            print(f"nothing was sent; {counted(len(acting), 'student')} would get something")


def _confirm(question: str) -> None:
    """Ask; a no ends the command with exit code 1, and Ctrl-C with 130."""
    try:
        typer.confirm(safe(question), abort=True)
    except typer.Abort as answer:
        if isinstance(answer.__context__, KeyboardInterrupt):
            raise typer.Exit(130) from None
        raise


def _carry_out(api: Api, planned: PushPlan, book: Gradebook, count: int) -> None:
    from grader.lms.canvas_push import carry_out

    with progress(Console(stderr=True), "sending", count, first="sending") as advance:
        refused = list(carry_out(api, planned, book, advance))
    print(f"sent to {counted(count - len(refused), 'student')}")
    if refused:
        for line in refused:
            _tell(line)
        raise CallError(f"Canvas refused {counted(len(refused), 'grade')}, listed above")


def _pages(book: Gradebook) -> dict[str, Path]:
    """Each graded student's page; `CallError` if one is missing."""
    from grader.grades.gradebook import FEEDBACK, feedback_names

    names = feedback_names(book.rows())
    pages = {student: book.folder / FEEDBACK / name for student, name in names.items()}
    if any(not page.is_file() for page in pages.values()):
        raise CallError(
            f"{book.folder / FEEDBACK} lacks pages: grader report {shlex.quote(str(book.folder))}"
        )
    return pages


def _table(planned: PushPlan) -> Table:
    table = Table(title=safe(planned.column), title_justify="left", box=box.SIMPLE_HEAD)
    for title in ("student", "there", "new", "page", "left unchanged"):
        table.add_column(title, justify="right" if title in ("there", "new") else "left")
    for step in planned.steps:
        there = "EX" if step.excused_there else _shown(step.there)
        new = "EX" if step.writes and step.new is None else _shown(step.new)
        cells = (step.name, there, new, "yes" if step.page else "", step.why)
        table.add_row(*(Text(safe(cell)) for cell in cells))
    return table


def _shown(mark: str | float | None) -> str:
    if mark is None:
        return ""
    return mark if isinstance(mark, str) else number(mark)
