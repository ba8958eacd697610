"""`grader term`: one sheet from the gradebooks of a term."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.cli.app import INSTRUCTORS, CourseOption, JsonOption, app, instructors_course
from grader.cli.tables import name_column, table_console
from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.records.rows import called, counted, number

if TYPE_CHECKING:
    from grader.grades.term import Part, Term

STANDARD = Path("-")  # this file name means standard output


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader term ps1/ ps2/ ps3/ --drop 1 --weight ps3=2 --out term.csv\n\n"
    "Example: grader term ps1/ ps2/ --free-days 3 --extensions free.csv",
)
def term(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The gradebooks of the term's assignments."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the sheet as CSV; - prints only that."),
    ] = None,
    drop: Annotated[
        int | None,
        typer.Option(
            "--drop", metavar="N", min=0, help="Leave out each student's N lowest shares."
        ),
    ] = None,
    free_days: Annotated[
        int | None,
        typer.Option(
            "--free-days",
            metavar="N",
            min=0,
            help="Days of lateness without a penalty, for each student in the whole term.",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", metavar="NAME=W", help="An assignment's weight, if not 1; may be repeated."
        ),
    ] = None,
    extensions: Annotated[
        Path | None,
        typer.Option(
            "--extensions",
            metavar="FILE",
            help="Write the free days used as a table for `grader extend DIR --from FILE`.",
        ),
    ] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Pseudonyms, and no data of the roster.")
    ] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sum up the gradebooks of a term: a percentage for each student.

    A student's share in an assignment is the points after penalties, by the maximum; the percentage
    is the mean of the shares. Every assignment weighs 1 unless a weight is given, here or in the
    table [term] of course.toml. Excused assignments are left out. Absent, empty and unreadable
    submissions count 0. Where a conflict or a fault of the grader leaves points unknown, there is
    no percentage. Of equal shares, the earlier one is dropped first.
    """
    import msgspec

    from grader.feedback.terminal import safe
    from grader.grades import term as terms

    if as_json and out == STANDARD:
        raise CallError("--json and --out - exclude each other: name a file for the sheet")
    opened = instructors_course(course)
    if anonymous and extensions is not None:
        raise CallError("--extensions needs the students' names: leave out --anonymous")
    table = opened.file.term
    days = table.free_days if free_days is None else free_days
    parts, salt = _parts(folders, opened, weight or [], days)
    sheet = terms.term(parts, table.drop if drop is None else drop, days)
    if anonymous:
        sheet = terms.anonymous_term(sheet, parts, salt)
    if extensions is not None:
        _write(extensions, terms.extensions_csv(sheet, parts))
    if out == STANDARD:
        print(terms.term_csv(sheet), end="")
    elif out is not None:
        _write(out, terms.term_csv(sheet))
    if as_json:
        print(msgspec.json.encode(_plain(sheet)).decode())
    elif out != STANDARD:
        _show(sheet, table_console())
        for path in filter(None, (out, extensions)):
            print(path)
    if as_json or out == STANDARD:
        for note in sheet.notes:
            print(safe(note), file=sys.stderr)


def _parts(
    folders: Sequence[Path], course: Course, given: Sequence[str], free_days: int
) -> tuple[list[Part], str]:
    """The gradebooks, with names that are all different, and a secret for pseudonyms.

    Raises `CallError` if a gradebook is missing, or if two have the same name.
    """
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.term import part_of

    weights = {**course.file.term.weights, **_weights(given)}
    parts: list[Part] = []
    places: dict[str, Path] = {}
    salt = ""
    with ExitStack() as stack:
        for folder in folders:
            book = stack.enter_context(existing_gradebook(folder, course.identity))
            name = book.assignment or folder.resolve().name
            if name in places:
                raise CallError(
                    f"{places[name]} and {folder} are both called {name}: a term has each once"
                )
            places[name] = folder
            salt = salt or book.salt
            parts.append(part_of(book, name, weights.get(name, 1.0), free_days))
    for name in _weights(given):
        if name not in places:
            raise CallError(f"--weight {name}=…: there is no gradebook called {name}")
    return parts, salt


def _weights(given: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            found[name] = float(weight)
        except ValueError:
            found[name] = -1
        if not name or not 0 <= found[name] <= 1_000_000:
            raise CallError(f"--weight {text}: write a name and a number, such as ps3=2")
    return found


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise CallError(f"{path} cannot be written: {error.strerror}") from None


def _plain(sheet: Term) -> object:
    return [
        {
            "student": one.student,
            "points": {
                name: None if share.excused or not share.known else share.points
                for name, share in zip(sheet.names, one.shares, strict=True)
            },
            "dropped": [sheet.names[n] for n in one.dropped],
            "percent": one.percent,
        }
        for one in sheet.members
    ]


def _show(sheet: Term, console: Console) -> None:
    """Print the sheet as a table, and what to look at below it."""
    from grader.feedback.terminal import safe

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    name_column(table, console.width)
    for name in sheet.names:
        table.add_column(Text(safe(name)), justify="right", no_wrap=True)
    if sheet.free_days:
        table.add_column("free days", justify="right", no_wrap=True)
    table.add_column("term %", justify="right", style="bold", no_wrap=True)
    for one in sheet.members:
        cells = []
        for n, share in enumerate(one.shares):
            points = "?" if not share.known else number(share.points)
            shown = "excused" if share.excused else points
            cells.append(f"({shown})" if n in one.dropped else shown)
        days = [f"{one.free_days_used} of {sheet.free_days}"] if sheet.free_days else []
        percent = "-" if one.percent is None else number(one.percent)
        who = Text(safe(called(one.student, one.person.name)), no_wrap=True, overflow="ellipsis")
        table.add_row(who, *cells, *days, percent)
    console.print(table)
    if any(one.dropped for one in sheet.members):
        console.print("in brackets: dropped", markup=False)
    for note in sheet.notes:
        console.print(safe(note), style="yellow", markup=False, soft_wrap=True)
    console.print(counted(len(sheet.members), "student"), markup=False)
