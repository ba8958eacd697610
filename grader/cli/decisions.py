"""Commands for what a person decides about a student: points, comments, extensions, excuses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    CourseOption,
    GradesArgument,
    JsonOption,
    app,
    instructors_course,
)
from grader.cli.completion import beginning, course_of, exercises
from grader.course.course import Course
from grader.records.faults import CallError

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook
    from grader.records.decisions import Decision
    from grader.records.rows import Row

STUDENT_HELP = "A student's name in the gradebook, id, e-mail or full name."
STANDARD = Path("-")  # this file name means standard input


def students(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a shell offers for a student: those in the gradebook that the line names."""
    from grader.grades.gradebook import existing_gradebook

    found: list[str] = []
    with suppress(Exception):  # an error message would tear up the line that the user types
        folder, name = ctx.params["folder"], course_of(ctx).identity
        with existing_gradebook(folder, name, meanwhile=True) as book:
            found += sorted(book.graded | {*book.people()})
    return beginning(found, incomplete)


StudentArgument = Annotated[
    str,
    typer.Argument(
        metavar="STUDENT", autocompletion=students, help=STUDENT_HELP, show_default=False
    ),
]
PartArgument = Annotated[
    str,
    typer.Argument(
        metavar="PART",
        autocompletion=exercises,
        help="An exercise, a unit, a question that you mark, total, or late for the points that a "
        "late submission loses.",
        show_default=False,
    ),
]
PointsArgument = Annotated[
    str,
    typer.Argument(
        metavar="±N",
        help="+1 or -0.5 adds; '=3' sets the points, whatever is computed; 0 removes a correction.",
        show_default=False,
    ),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason, which the student will read.")
]
PrivateOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason, which no student will read.")
]
UndoOption = Annotated[bool, typer.Option("--undo", help="Take the earlier decision back.")]


def _from_option(columns: str) -> object:
    return typer.Option(
        "--from",
        metavar="FILE.csv",
        help=f"Many at once: a table with the columns {columns}; - reads standard input.",
    )


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog='Example: grader adjust grades/ ada causal_mask +1 --reason "typo in the statement"\n\n'
    "Example: grader adjust grades/ ada essay '=4' --reason \"clear, but no source\"\n\n"
    "Example: grader adjust grades/ ada late '=0' --reason \"the server was down\"\n\n"
    "Example: grader adjust grades/ --from corrections.csv",
    context_settings={"ignore_unknown_options": True},  # -0.5 is a number, not an option
)
def adjust(
    folder: GradesArgument,
    student: StudentArgument = "",
    part: PartArgument = "",
    points: PointsArgument = "",
    reason: ReasonOption = "",
    file: Annotated[
        str,
        _from_option("student, exercise, points (to add) or set (to replace), and reason"),
    ] = "",
    course: CourseOption = None,
) -> None:
    """Correct a student's points, or mark a question without code; computed points stay stored.

    A second correction of the same part replaces the first. Regrading keeps all corrections. With
    --from, all lines of the table are checked before any is written.
    """
    from grader.cli import revisions
    from grader.grades.corrections import correction, corrections_from, part_named
    from grader.grades.decided import decision_of
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_student

    _one_or_many(
        file, [student, part, points, reason], "a student, a part and points", bool(points)
    )
    opened = instructors_course(course)
    with existing_gradebook(folder, opened.identity) as book:
        chosen = part_named(opened, part) if not file else ""
        rows = book.rows()
        corrections = (
            corrections_from(read(file), called(file), rows, opened)
            if file
            else [correction(find_student(rows, student), chosen, points, reason)]
        )
        book.decide(decision_of(one.before.student, one.adjustment) for one in corrections)
        rewrite(book, opened)
    revisions.show_corrections(corrections, opened, Console(highlight=False))


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog='Example: grader comment grades/ ada "Come and see me about the mask."\n\n'
    'Example: grader comment grades/ ada causal_mask "Nice use of triu."\n\n'
    "Example: grader comment grades/ --from comments.csv",
)
def comment(
    folder: GradesArgument,
    student: StudentArgument = "",
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART] TEXT",
            help="What the student will read; about an exercise, a unit or a question, or all.",
            show_default=False,
        ),
    ] = None,
    undo: UndoOption = False,
    file: Annotated[str, _from_option("student, exercise (may be empty) and comment")] = "",
    course: CourseOption = None,
) -> None:
    """Write a comment on a student's page; it changes no points.

    A second comment about the same part replaces the first.
    """
    from grader.grades.decisions import comment_of, comments_from

    given = list(words or [])
    _one_or_many(file, [student, *given], "a student and a text", bool(given) or undo)
    if len(given) > 2 - undo:
        raise CallError("write the comment in quotes: it is one argument, after the part if any")
    opened = instructors_course(course)
    with _decided(folder, opened) as (book, rows):
        if file:
            decisions = comments_from(read(file), called(file), rows, opened)
        else:
            *part, text = [*given, ""] if undo else given
            decisions = [comment_of(rows, opened, student, part[0] if part else "", text)]
        _decide(book, opened, decisions)


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog='Example: grader extend grades/ ada "2026-12-04 23:59" --reason "ill"\n\n'
    "Example: grader extend grades/ ada --undo\n\n"
    "Example: grader extend grades/ --from extensions.csv",
)
def extend(
    folder: GradesArgument,
    student: StudentArgument = "",
    until: Annotated[
        str,
        typer.Argument(
            metavar="TIME",
            help="The student's own due time: 2026-12-04 23:59 (in the zone of course.toml), or "
            "with an offset or Z; or a span after the due time, such as '3 days'.",
            show_default=False,
        ),
    ] = "",
    reason: PrivateOption = "",
    undo: UndoOption = False,
    file: Annotated[
        str,
        _from_option("student, until (none takes it back), and if you like assignment and reason"),
    ] = "",
    course: CourseOption = None,
) -> None:
    """Give a student more time; lateness then counts from the new due time.

    In a table, lines for other assignments than this gradebook's are left out.
    """
    from grader.grades.decisions import extension_of, extensions_from

    _one_or_many(file, [student, until, reason], "a student and a time", bool(until) or undo)
    opened = instructors_course(course)
    with _decided(folder, opened) as (book, rows):
        if file:
            decisions = extensions_from(read(file), called(file), rows, opened, book)
        else:
            decisions = [extension_of(rows, opened, book, student, until, reason, undo=undo)]
        _decide(book, opened, decisions)


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog='Example: grader excuse grades/ ada --reason "ill"\n\n'
    "Example: grader excuse grades/ ada --undo\n\n"
    "Example: grader excuse grades/ --from excused.csv",
)
def excuse(
    folder: GradesArgument,
    student: StudentArgument = "",
    reason: PrivateOption = "",
    undo: UndoOption = False,
    file: Annotated[str, _from_option("student, and if you like assignment and reason")] = "",
    course: CourseOption = None,
) -> None:
    """Excuse a student: the grade does not count, and the term's sheet leaves it out.

    In a table, lines for other assignments than this gradebook's are left out.
    """
    from grader.grades.decisions import excuse_of, excuses_from

    _one_or_many(file, [student, reason], "a student", bool(student))
    opened = instructors_course(course)
    with _decided(folder, opened) as (book, rows):
        if file:
            decisions = excuses_from(read(file), called(file), rows, opened, book)
        else:
            decisions = [excuse_of(rows, student, reason, undo=undo)]
        _decide(book, opened, decisions)


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader assign grades/ hw1_final ada\n\n"
    "Example: grader assign grades/ hw1_final --undo",
)
def assign(
    folder: GradesArgument,
    submission: Annotated[
        str,
        typer.Argument(
            metavar="SUBMISSION",
            help="The submission's name: the column submission of gradebook.csv.",
            show_default=False,
        ),
    ],
    student: StudentArgument = "",
    undo: UndoOption = False,
    course: CourseOption = None,
) -> None:
    """Say whose a submission is that came under a wrong name.

    The student gets its grade, now and whenever the class is graded again.
    """
    from grader.grades.decisions import assignment_of

    if bool(student) == undo:
        raise CallError("name the student whose submission it is, or --undo")
    opened = instructors_course(course)
    with _decided(folder, opened) as (book, rows):
        decision = assignment_of(rows, book, submission, student, undo=undo)
        _decide(book, opened, [decision])


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader history grades/ ada",
)
def history(
    folder: GradesArgument,
    student: StudentArgument = "",
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what people decided about a student, or about all: when, what, why, by whom.

    Keep the output to yourself: it has the reasons of extensions and excuses.
    """
    import msgspec

    from grader.cli import revisions
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_student

    opened = instructors_course(course)
    with existing_gradebook(folder, opened.identity, meanwhile=True) as book:
        who = find_student(book.rows(), student).student if student else None
        found = [one for one in book.decisions() if who in (None, one.student)]
        zone = opened.zone
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        revisions.show_history(found, zone, Console(highlight=False))


# --- what the commands share ---------------------------------------------------------------------


def _one_or_many(file: str, given: Iterable[str], needed: str, complete: bool) -> None:
    """Raise `CallError` unless one decision is given, or a table of many."""
    if file and any(given):
        raise CallError("--from reads everything from its table: give nothing else")
    if not file and not complete:
        raise CallError(f"name {needed}; or a table with --from FILE.csv")


@contextmanager
def _decided(folder: Path, course: Course) -> Iterator[tuple[Gradebook, list[Row]]]:
    from grader.grades.gradebook import existing_gradebook

    with existing_gradebook(folder, course.identity) as book:
        yield book, book.rows()


def _decide(book: Gradebook, course: Course, decisions: Iterable[Decision]) -> None:
    """Store decisions, write the tables and pages again, and print each new decision."""
    from grader.cli import revisions

    before = {row.student: row for row in book.rows()}
    new = book.decide(decisions)
    rewrite(book, course)
    after = {row.student: row for row in book.rows()}
    revisions.show_decisions(new, before, after, course, Console(highlight=False))


def read(file: str) -> bytes:
    """The content of a table that an instructor wrote, or of standard input."""
    try:
        return sys.stdin.buffer.read() if Path(file) == STANDARD else Path(file).read_bytes()
    except OSError as error:
        raise CallError(f"{file}: {error.strerror}") from None


def called(file: str) -> str:
    """The name of a table in messages."""
    return "standard input" if Path(file) == STANDARD else file


def rewrite(book: Gradebook, course: Course) -> None:
    """Write a gradebook's tables again, and also its HTML pages if it has some."""
    from grader.grades.gradebook import REPORT
    from grader.report import write_pages

    book.write_files()
    if (book.folder / REPORT).is_file():
        write_pages(book, course)
