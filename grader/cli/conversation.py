"""Commands for a gradebook: `explain`, `forget`, `diff`, `report`, `export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    GradesArgument,
    JsonOption,
    SeedOption,
    app,
    instructors_course,
)
from grader.cli.decisions import STUDENT_HELP, rewrite, students
from grader.cli.grade import written
from grader.course.course import Course
from grader.lms import SYSTEMS
from grader.lms.system import Part, ResultFiles, Table, totals, unjudged, write_results
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.records.rows import listed, some_of

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook
    from grader.records.grade import ExerciseResult
    from grader.records.rows import Row


StudentArgument = Annotated[
    str, typer.Argument(metavar="STUDENT", autocompletion=students, help=STUDENT_HELP)
]
STANDARD = Path("-")  # this file name means standard input or output


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader explain grades/ ada causal_mask",
)
def explain(
    folder: GradesArgument,
    student: StudentArgument,
    test: Annotated[
        str,
        typer.Argument(
            metavar="TEST",
            help="A test's name or title, EXERCISE/TEST, or an exercise for its first lost points. "
            "Without it, all lost points are listed.",
            show_default=False,
        ),
    ] = "",
    isolation: Annotated[
        Literal["strong", "weak"],
        typer.Option("--isolation", help="As for grade: weak runs the test in any case."),
    ] = "strong",
    seed: SeedOption = None,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one test of a grading again, and show its inputs, its results and the lines that ran.

    Without TEST, list the points that the student lost. Keep the output to yourself: it shows all
    of a hidden test.
    """
    import msgspec

    from grader.feedback import terminal
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_graded, find_student, passed_exercise, refuse_another_seed
    from grader.grading.order import Order

    opened = instructors_course(course, "explain")
    with existing_gradebook(folder, opened.identity, meanwhile=True) as book:
        row = find_student(book.rows(), student)
        passed = passed_exercise(opened, row, test) if test else None
        if not test or passed:
            _list_losses(row, passed, folder, as_json=as_json)
            return
        refuse_another_seed(book, seed or opened.hidden_seed(), "the seed of that grading")
        graded = find_graded(book, opened, student, test)
    exercises = (graded.exercise.name,)
    order = Order(
        opened,
        graded.grade.seed,
        opened.tests_of(exercises),
        exercises,
        isolation=isolation,
        secrets=(folder,),
    )
    with terminal.waiting("running it again"), order.desk() as desk:
        from grader.inspection.explanation import explain_test, show_explanation

        explanation = explain_test(desk, graded)
    if as_json:
        print(msgspec.json.encode(explanation).decode())
    else:
        console = Console(highlight=False)
        console.print(terminal.course_line(opened), soft_wrap=True, markup=False)
        show_explanation(explanation, str(folder), console)


def _list_losses(row: Row, exercise: ExerciseResult | None, folder: Path, *, as_json: bool) -> None:
    """Print what a student lost in an exercise, or in all of them; no test runs again."""
    import msgspec

    from grader.cli import revisions
    from grader.grades.losses import losses_of

    losses = losses_of(row, [exercise.name] if exercise else None)
    if as_json:
        print(msgspec.json.encode(losses).decode())
    else:
        revisions.show_losses(losses, str(folder), Console(highlight=False))


@app.command(rich_help_panel=INSTRUCTORS, epilog="Example: grader forget grades/ ada")
def forget(
    folder: GradesArgument,
    student: StudentArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    course: CourseOption = None,
) -> None:
    """Remove a student and all their data from a gradebook."""
    from grader.cli import revisions
    from grader.grades.gradebook import alone, existing_gradebook
    from grader.grades.lookup import find_student
    from grader.grades.privacy import forget_student as remove

    opened = instructors_course(course)
    # Lock the folder: a grading that runs at the same time would store the student's data again.
    with existing_gradebook(folder, opened.identity) as book, alone(folder):
        row = find_student(book.rows(), student)
        if not yes:
            typer.confirm(revisions.question(row), abort=True)
        forgotten = remove(book, row)
        rewrite(book, opened)
    revisions.show_forgotten(forgotten, Console(highlight=False))


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader diff grades-monday/ grades-friday/",
)
def diff(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="[OLD] NEW",
            help="Two gradebooks; or one, to compare with its grades before the last regrading.",
        ),
    ],
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Pseudonyms for names, and no messages.")
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Also write a table to mail from: a line for each student whose grade changed; "
            "- prints only the table.",
        ),
    ] = None,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show whose grade changed between two gradings, and why.

    Students whose points changed for the same reason are listed together.
    """
    import msgspec

    from grader.cli import revisions
    from grader.grades.changes import changes_csv, compared

    if as_json and table == STANDARD:
        raise CallError("--json and --csv - exclude each other: name a file for the table")

    if len(folders) > 2:
        raise CallError(f"name one gradebook or two, not {len(folders)}")
    opened = instructors_course(course)
    found = compared(opened, folders[-1], folders[0] if len(folders) == 2 else None, anonymous)
    written_to = "" if table is None else _put(changes_csv(found).encode(), table, None)
    if as_json:
        print(msgspec.json.encode(found).decode())
    elif table != STANDARD:
        revisions.show_changes(found, Console(highlight=False))
        print(written_to, end="")


# --- pages ---------------------------------------------------------------------------------------


RETURNED = {system.name: system for system in SYSTEMS if system.returned is not None}

# The choices of --zip and --to. A type checker cannot compute them from the table.
if TYPE_CHECKING:
    Returner = str
    Target = str
else:
    Returner = Literal[tuple(RETURNED)]
    Target = Literal[tuple(system.name for system in SYSTEMS if system.grades is not None)]


@app.command(rich_help_panel=INSTRUCTORS, epilog="Example: grader report grades/ --zip canvas")
def report(
    folder: GradesArgument,
    anonymous: Annotated[
        bool,
        typer.Option("--anonymous", help="Only a report, report-anonymous.html, without names."),
    ] = False,
    similarity: Annotated[
        bool, typer.Option("--similarity/--no-similarity", help="Compare submissions in pairs.")
    ] = True,
    to: Annotated[
        Returner | None,
        typer.Option("--zip", help="Also a zip of the feedback, to upload into this system."),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Write the pages of a gradebook: feedback for each student, and a report on the class.

    With --zip, the students get their feedback as a file from the system that their submissions
    were downloaded from. A line names the students whom the zip cannot reach.
    """
    from grader.grades.gradebook import existing_gradebook

    opened = instructors_course(course)
    if anonymous and to is not None:
        raise CallError("--anonymous writes no feedback, so it excludes --zip")
    print(written(folder, opened, anonymous=anonymous, similarity=similarity))
    if to is None:
        return
    from grader.feedback.terminal import safe
    from grader.lms.returned import write_zip

    system = RETURNED[to]
    assert system.returned is not None
    with existing_gradebook(folder, opened.identity, meanwhile=True) as book:
        for line in write_zip(book, opened, system, system.returned).lines():
            print(safe(line))


# --- export --------------------------------------------------------------------------------------


TO = {system.name: system.grades for system in SYSTEMS if system.grades is not None}
FILLED = [system for system in SYSTEMS if isinstance(system.grades, Table) and system.grades.into]
NAMELESS = [name for name, grades in TO.items() if isinstance(grades, Table) and grades.nameless]
RESULTS = "; ".join(
    f"for {name}, a {grades.file} for each student"
    for name, grades in TO.items()
    if isinstance(grades, ResultFiles)
)

TargetOption = Annotated[Target, typer.Option("--to", help=f"A table; or, {RESULTS}.")]
IntoOption = Annotated[
    Path | None,
    typer.Option("--into", metavar="FILE", help="Fill in a CSV that the system exported."),
]
ColumnOption = Annotated[
    str | None,
    typer.Option("--column", metavar="TITLE", help="The column for the totals, if it is unclear."),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help="The file or folder to write (default: in DIR, named after --to); - writes a table to "
        "standard output.",
    ),
]
OverwriteOption = Annotated[
    list[str] | None,
    typer.Option(
        "--overwrite",
        metavar="NAME",
        help="Replace this student's grade in the other system, although somebody changed it; may "
        "be repeated.",
    ),
]
OverwriteAllOption = Annotated[
    bool, typer.Option("--overwrite-all", help="Replace all grades that somebody changed.")
]
NamelessOption = Annotated[
    bool,
    typer.Option(
        "--anonymous",
        help=f"With {listed(NAMELESS, 'or')}: pseudonyms, and no data of the roster.",
    ),
]

HELP = f"""Write the grades as another system reads them.

With --into, copies a CSV that {listed([system.title for system in FILLED], "or")} exported, and
fills in one column. If somebody changed a grade there since the last export, that grade stays: a
line shows both grades, and --overwrite replaces it. Grades include corrections.

A graded submission exports its points, and stubs that were left as they were export 0. The statuses
absent, empty, unreadable, conflict and grader_error export no grade, rather than a zero, and are
listed with the reason. So do excused students: Canvas gets EX. Penalties for lateness are included
if the assignment says late_by = "us"; otherwise the other system applies its own policy.
"""


@app.command(
    rich_help_panel=INSTRUCTORS,
    help=HELP,
    epilog="Example: grader export grades/ --to canvas --into canvas.csv --out upload.csv",
)
def export(
    folder: GradesArgument,
    to: TargetOption,
    into: IntoOption = None,
    column: ColumnOption = None,
    out: FileOption = None,
    overwrite: OverwriteOption = None,
    overwrite_all: OverwriteAllOption = False,
    anonymous: NamelessOption = False,
    assignment: AssignmentOption = None,
    course: CourseOption = None,
) -> None:
    """Write the grades as another system reads them; the help is `HELP`."""
    from grader.feedback.terminal import safe
    from grader.grades.exported import Past
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_student
    from grader.grades.privacy import anonymous as nameless
    from grader.grades.privacy import pseudonyms_in
    from grader.grades.remarks import remarks

    opened = instructors_course(course)
    if anonymous and to not in NAMELESS:
        raise CallError(
            f"{to} needs the students' names: --anonymous is for {listed(NAMELESS, 'and')}"
        )
    fillable = [system.name for system in FILLED]
    if to not in fillable and (into is not None or column is not None):
        raise CallError(f"--into and --column are for {listed(fillable, 'and')}")
    if into is None and (overwrite or overwrite_all):
        raise CallError("--overwrite and --overwrite-all are for grades in the file of --into")
    with existing_gradebook(folder, opened.identity) as book:
        what = exported_part(opened, book, assignment)
        rows = book.rows()
        if anonymous:
            rows = nameless(rows, pseudonyms_in(rows, book.salt))
        chosen = frozenset(find_student(rows, name).student for name in overwrite or ())
        past = Past(book.exported(to), chosen, overwrite_all)
        given = totals(rows, what, column, past)
        grades = TO[to]
        if isinstance(grades, ResultFiles):
            if out == STANDARD:
                raise CallError(f"{to} gets a folder of files: --out - is for tables")
            written_to = f"{write_results(out or folder / to, rows, what, opened, grades)}\n"
            notes: tuple[str, ...] = ()
        else:
            if into is None:
                filled = grades.fresh(given)
            else:
                assert grades.into is not None
                filled = grades.into(given, into)
            written_to = _put(filled.text.encode(), out or folder / grades.file, into)
            notes = filled.notes
            if filled.push is not None:
                book.remember_export(to, filled.push.column, filled.push.written)
        policy = book.policy
    about = remarks(given.rows, policy)
    for line in (*notes, *unjudged(given.rows), *about, *not_exported(rows, given.rows)):
        print(safe(line), file=sys.stderr)
    print(written_to, end="")


def not_exported(rows: Sequence[Row], exported: Sequence[Row]) -> Iterator[str]:
    """A line about points that belong to the whole gradebook, if only a part is exported."""
    lost = [
        row.student
        for row, part in zip(rows, exported, strict=True)
        if _beyond(row) - _beyond(part)
    ]
    if lost:
        yield (
            "points of whole units, questions, the total or lateness are not in this part: "
            f"{some_of(lost)}"
        )


def _beyond(row: Row) -> set[str]:
    """The parts of a row with points, apart from exercises."""
    return {line.part for line in row.lines if line.points and line.part not in row.points}


def _put(table: bytes, path: Path, into: Path | None) -> str:
    """Write a table, and return a line with the file's name; "" if it went to standard output."""
    if path == STANDARD:
        sys.stdout.buffer.write(table)
        sys.stdout.flush()
        return ""
    if into is not None and path.resolve() == into.resolve():
        raise CallError(f"this would overwrite {path}: name another file with --out")
    try:
        write_whole(path, table)
    except OSError as error:
        raise CallError(f"{path} cannot be written: {error.strerror}") from None
    return f"{path}\n"


def exported_part(course: Course, book: Gradebook, assignment: str | None) -> Part:
    """The part of a gradebook to export: an assignment of `course.toml`, or all of it.

    Raises `CallError` if the gradebook lacks some of the assignment.
    """
    name = assignment or book.assignment
    if not name:
        return Part(course.file.title, book.exercises)
    wanted = course.assignment(name)
    exercises = course.select(wanted.exercises)
    whole = name == book.assignment
    if not whole and (wanted.late_by == "us" or wanted.manual):
        raise CallError(
            f"{book.folder} was not graded as {name!r}, which has its own "
            f"{'penalties' if wanted.late_by == 'us' else 'questions'}: grade with --assignment "
            f"{name} into a folder of its own"
        )
    if not {*exercises} <= {*book.exercises}:
        raise CallError(f"{book.folder} lacks grades for some exercises of {name!r}")
    return Part(wanted.heading, exercises, wanted)
