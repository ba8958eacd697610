"""`grader viva`: an oral exam on a student's own submission."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    CourseOption,
    GradesArgument,
    JobsOption,
    app,
    instructors_course,
)
from grader.cli.decisions import StudentArgument
from grader.cli.grade import ClusterOption, IsolationOption, OnlyOption
from grader.course.course import Course
from grader.feedback.terminal import safe
from grader.grades.corrections import part_named
from grader.records.decisions import TOTAL
from grader.records.faults import CallError
from grader.records.rows import counted, some_of

if TYPE_CHECKING:
    from grader.grades.gradebook import Gradebook
    from grader.questions.exam import Exam
    from grader.records.rows import Row

NAMELESS = "-anonymous"  # the end of the name of a folder with pseudonyms
OWN_PART = "viva"  # a question of this name in course.toml gets the marks


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader viva grades/ ada\n\n"
    "Example: grader viva grades/ --all --jobs 4\n\n"
    "Example: grader viva grades/ --all --cluster tls://scheduler:8786\n\n"
    "Example: grader viva grades/ --all --only causal_attention --count 4\n\n"
    "Example: grader adjust grades/ --from grades/viva/marks.csv",
)
def viva(
    folder: GradesArgument,
    student: StudentArgument = "",
    everyone: Annotated[
        bool, typer.Option("--all", help="A page for each student, and a sheet for marks.")
    ] = False,
    count: Annotated[
        int, typer.Option("--count", metavar="N", min=1, max=20, help="Questions for a student.")
    ] = 6,
    only: OnlyOption = None,
    part: Annotated[
        str,
        typer.Option(
            "--part",
            metavar="PART",
            help=f"The part of the grade that the marks are for (default: the question {OWN_PART} "
            "of course.toml, or else total).",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder for pages (default: viva in DIR)."),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help=f"Pseudonyms, and lines without comments, in a folder viva{NAMELESS}.",
        ),
    ] = False,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    isolation: IsolationOption = "strong",
    course: CourseOption = None,
) -> None:
    """Prepare an oral exam of ten minutes: questions on a student's own submission.

    A page for the examiner has the student's lines, the questions, each reply with what was run to
    know it, and what to ask next. Questions are about solved exercises only. The same submission
    gets the same questions each time, and other students get others, even for the same text.

    With --all, a sheet, marks.csv, has a line for each student: tick the questions, and write a
    mark and a reason, which the student will read. `grader adjust DIR --from` reads the sheet, and
    leaves out students without a mark. For marks of their own, course.toml needs a question:
    [[manual]] name = "viva", points = 6, before the grading, and `manual = ["viva"]` in an
    assignment; the mark then sets its points. Without it, marks are added to the total. The sheet
    names students with similar submissions.

    Keep the pages to yourself. `grader forget` removes a student from the folder viva in DIR.
    """
    from grader.feedback import terminal
    from grader.grades.gradebook import existing_gradebook
    from grader.grades.lookup import find_student
    from grader.grades.marks import SHEET, VIVA, refuse_marked
    from grader.questions.exam import candidate_of
    from grader.report import require_templates, write_exams
    from grader.run.exams import hold_exams

    require_templates()
    if bool(student) == everyone:
        raise CallError("name a student; or --all, for the whole class")
    if cluster and jobs:
        raise CallError("--cluster excludes --jobs: the cluster's workers find the questions")
    opened = instructors_course(course, "viva")
    to = out or folder / (VIVA + NAMELESS * anonymous)
    with existing_gradebook(folder, opened.identity, meanwhile=True) as book:
        rows = book.rows() if everyone else [find_student(book.rows(), student)]
        exercises = _exercises(opened, book, only or [])
        sheet = (_part(opened, rows, part), count) if everyone else None
        if everyone:
            refuse_marked(to / SHEET)
        elif rows[0].grade is None:
            raise CallError(f"{rows[0].student} {rows[0].ungraded}: there is nothing to ask about")
        candidates = [
            candidate_of(row, book.submission(row.grade.submission), exercises)
            for row in rows
            if row.grade is not None
        ]
        stderr = Console(stderr=True, highlight=False)
        found: list[Exam] = []

        def follow(exams: Iterable[Exam]) -> Iterator[Exam]:
            for exam in exams:
                found.append(exam)
                yield exam
                advance()

        try:
            with (
                terminal.progress(stderr, "asking", len(candidates)) as advance,
                closing(
                    hold_exams(opened, candidates, count, (folder,), jobs, cluster, isolation)
                ) as exams,
            ):
                write_exams(book, opened, follow(exams), to, exercises, sheet, nameless=anonymous)
        except KeyboardInterrupt:
            print(f"grader: stopped; {counted(len(found), 'page')} in {to}", file=sys.stderr)
            raise typer.Exit(130) from None
    for line in _lines(found, count, to, len(rows)):
        print(safe(line))


def _exercises(course: Course, book: Gradebook, only: Sequence[str]) -> tuple[str, ...]:
    """The graded exercises to ask about; raises `CallError` if none of `only` was graded."""
    chosen = {*course.select(only)}
    found = tuple(name for name in book.exercises if name in chosen)
    if not found:
        raise CallError(f"{' and '.join(only)} was not graded in this gradebook")
    return found


def _part(course: Course, rows: Sequence[Row], part: str) -> str:
    """The part of the grade that gets the marks; raises `CallError` if there is no such part."""
    known = {name for row in rows for name in row.parts}
    if not part:
        return OWN_PART if OWN_PART in known else TOTAL
    if part_named(course, part) not in known:
        raise CallError(f"{part} was not graded in this gradebook")
    return part


def _lines(exams: Sequence[Exam], count: int, to: Path, rows: int) -> Iterator[str]:
    """What was written, and the students who have fewer questions."""
    yield f"{counted(len(exams), 'page')} in {to}"
    fewer = sorted(exam.student for exam in exams if 0 < len(exam.questions) < count)
    none = sorted(exam.student for exam in exams if not exam.questions)
    if fewer:
        yield f"fewer than {counted(count, 'question')}: {some_of(fewer)}"
    if none:
        yield f"nothing to ask about: {some_of(none)}"
    if absent := rows - len(exams):
        yield f"no page: {counted(absent, 'student')} without a graded submission"
