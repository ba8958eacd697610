"""What an instructor types when students have seen their grades: why, corrected, changed, gone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
from grader.course.course import Course
from grader.records.faults import CallError

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook

STUDENT_HELP = "As in the gradebook; or an id, e-mail or name."
StudentArgument = Annotated[str, typer.Argument(metavar="STUDENT", help=STUDENT_HELP)]
STDIN = "-"  # in place of a file


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
            help="A test's name or title, EXERCISE/TEST, or an exercise: what first cost points.",
        ),
    ],
    isolation: Annotated[
        Literal["strong", "weak"],
        typer.Option("--isolation", help="As for grade: with weak, run it in any case."),
    ] = "strong",
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one test of a grading again, and show what went in, what came out and from which lines.

    For your eyes: of a hidden test everything is shown.
    """
    import msgspec

    from grader.cli import told
    from grader.feedback import terminal
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_graded
    from grader.grading.order import Order

    opened = instructors_course(course, "explain")
    with existing_gradebook(folder, opened.name, meanwhile=True) as book:
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
        from grader.inspection import explaining

        explanation = explaining.explain_test(desk, graded)
    if as_json:
        print(msgspec.json.encode(explanation).decode())
    else:
        console = Console(highlight=False)
        console.print(terminal.course_line(opened), soft_wrap=True, markup=False)
        told.explanation(explanation, str(folder), console)


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog='Example: grader adjust grades/ ada causal_mask +1 --reason "typo in the statement"\n\n'
    "Example: grader adjust grades/ --from corrections.csv",
    context_settings={"ignore_unknown_options": True},  # -0.5 is a number
)
def adjust(
    folder: GradesArgument,
    student: Annotated[
        str, typer.Argument(metavar="STUDENT", help=STUDENT_HELP, show_default=False)
    ] = "",
    exercise: Annotated[
        str,
        typer.Argument(metavar="EXERCISE", help="Where points change.", show_default=False),
    ] = "",
    points: Annotated[
        str,
        typer.Argument(
            metavar="±N",
            help="How many: +1, -0.5; 0 takes a correction back.",
            show_default=False,
        ),
    ] = "",
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; the student will read it.")
    ] = "",
    file: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FILE.csv",
            help="Many corrections: a table with the columns student, exercise, points and reason; "
            "- reads standard input.",
        ),
    ] = "",
    course: CourseOption = None,
) -> None:
    """Correct a student's points in one exercise; the computed grade stays as it was.

    A second correction of the exercise replaces the first. All of them outlive a regrading. Of a
    table, all lines are checked before any is written.
    """
    from grader.cli import told
    from grader.grades.corrections import correction, corrections_from
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_student

    if file and (student or exercise or points or reason):
        raise CallError(
            "--from reads students, exercises, points and reasons from its table: give no others"
        )
    if not file and not points:
        raise CallError("name a student, an exercise and points; or a table with --from FILE.csv")
    opened = instructors_course(course)
    if not file:
        chosen = opened.one(exercise, "name one exercise of it")
    with existing_gradebook(folder, opened.name) as book:
        rows = book.rows()
        corrections = (
            corrections_from(_table(file), _called(file), rows, opened)
            if file
            else [correction(find_student(rows, student), chosen, points, reason)]
        )
        book.adjust_all((one.before.student, one.adjustment) for one in corrections)
        _write(book, opened)
    told.show_corrections(corrections, Console(highlight=False))


def _table(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise CallError(f"{file}: {error.strerror}") from None


def _called(file: str) -> str:
    return "standard input" if file == STDIN else file


@app.command(rich_help_panel=INSTRUCTORS, epilog="Example: grader forget grades/ ada")
def forget(
    folder: GradesArgument,
    student: StudentArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    course: CourseOption = None,
) -> None:
    """Remove a student from a gradebook, with everything that is kept of them."""
    from grader.cli import told
    from grader.grades.gradebook import alone, existing_gradebook
    from grader.grades.lookup import find_student
    from grader.grades.privacy import forget_student as remove

    opened = instructors_course(course)
    # A grading at work would bring back who is forgotten.
    with existing_gradebook(folder, opened.name) as book, alone(folder):
        row = find_student(book.rows(), student)
        if not yes:
            typer.confirm(told.question(row), abort=True)
        forgotten = remove(book, row)
        _write(book, opened)
    told.forgotten(forgotten, Console(highlight=False))


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader diff grades-monday/ grades-friday/",
)
def diff(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="[OLD] NEW",
            help="Two gradebooks; or one, and its grades before the last regrading.",
        ),
    ],
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Pseudonyms for names, and no messages.")
    ] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show whose grade changed between two gradings, and why."""
    import msgspec

    from grader.cli import told
    from grader.grades.changes import compared

    if len(folders) > 2:
        raise CallError(f"name one gradebook or two, not {len(folders)}")
    opened = instructors_course(course)
    found = compared(opened, folders[-1], folders[0] if len(folders) == 2 else None, anonymous)
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        told.show_changes(found, Console(highlight=False))


def _write(book: Gradebook, course: Course) -> None:
    """All that is written from a gradebook, again: its pages too, where there are any."""
    from grader.grades.privacy import REPORT
    from grader.report import write_pages

    book.write_files()
    if (book.folder / REPORT).is_file():
        write_pages(book, course)
