"""HTML pages from a gradebook: feedback for each student, and a report on the class.

`feedback` makes a student's page, `overview` makes the report, and `viva` makes the page of an oral
exam. They use `rendering`, which fills the templates. `answers` finds the student's lines to quote.
`similarity` finds submissions that are alike. Pages need the libraries of the extra ``instructor``.
If they are missing, `require_templates` says how to install them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.course import Course
from grader.course.file import Assignment
from grader.grades.gradebook import FEEDBACK, REPORT, Gradebook, feedback_names
from grader.grades.marks import SHEET, marks_csv
from grader.grades.privacy import anonymous, pseudonyms_in
from grader.records.faults import unwritten
from grader.records.files import drafted, write_whole
from grader.records.rows import Row
from grader.report.rendering import require_templates
from grader.report.similarity import Resemblance, similar
from grader.wire import SourceText

if TYPE_CHECKING:
    from grader.questions.exam import Exam

__all__ = [
    "ANONYMOUS",
    "FEEDBACK",
    "REPORT",
    "feedback_names",
    "require_templates",
    "write_anonymous",
    "write_exams",
    "write_pages",
]
ANONYMOUS = "report-anonymous.html"
OURS = b"<!doctype html>\n<!-- %s by attention-grader -->"  # how each page begins


def write_pages(
    book: Gradebook,
    course: Course,
    advance: Callable[[], object] = lambda: None,
    *,
    similarity: bool = True,
) -> None:
    """Write a feedback page for each graded student, and the report, into the gradebook's folder.

    Feedback pages of students who are no longer in the gradebook are removed. `advance` is called
    after each page. Raises `CallError` if the extra ``instructor`` is not installed, or if a file
    cannot be written.
    """
    require_templates()
    from grader.report.feedback import feedback_page
    from grader.report.overview import report_page

    rows, assignment, policy = book.rows(), _assignment(book, course), book.policy
    pages = feedback_names(rows)
    folder = book.folder / FEEDBACK
    with drafted(folder) as draft:
        for row in rows:
            if row.student in pages:
                sources = _sources(book, row)
                text = feedback_page(row, course, assignment, policy, sources)
                if _differs(folder / pages[row.student], text):
                    (draft / pages[row.student]).write_text(text, "utf-8")
                advance()
    _remove_others(book.folder / FEEDBACK, pages.values(), b"feedback")
    pairs = _pairs(book, rows, course) if similarity else None
    _write(
        book.folder / REPORT,
        report_page(
            rows,
            book.exercises,
            course,
            assignment,
            pages=pages,
            pairs=pairs,
            folder=f"{book.folder.name}/" if book.folder.name else ".",
            policy=policy,
        ),
    )
    advance()


def write_anonymous(
    book: Gradebook,
    course: Course,
    advance: Callable[[], object] = lambda: None,
    *,
    similarity: bool = True,
) -> None:
    """Write a second report, with pseudonyms for students.

    Raises `CallError` as `write_pages` does.
    """
    require_templates()
    from grader.report.overview import report_page

    rows = book.rows()
    names = pseudonyms_in(rows, book.salt)
    pairs = _pairs(book, rows, course) if similarity else None
    if pairs is not None:  # without `passages`: files and comments may contain names of students
        pairs = [
            replace(
                pair,
                one=names[pair.one],
                others=tuple(names[o] for o in pair.others),
                passages=None,
            )
            for pair in pairs
        ]
    text = report_page(
        anonymous(rows, names),
        book.exercises,
        course,
        _assignment(book, course),
        pages={},
        pairs=pairs,
        policy=book.policy,
    )
    _write(book.folder / ANONYMOUS, text)
    advance()


def write_exams(
    book: Gradebook,
    course: Course,
    exams: Iterable[Exam],
    to: Path,
    exercises: Sequence[str],
    sheet: tuple[str, int] | None = None,
    *,
    nameless: bool = False,
) -> None:
    """Write a page for each oral exam on some exercises into a folder, as soon as it is found.

    For a whole class, the `sheet` for marks comes last: for which part of the grade, and for how
    many questions. Pages of students who have no exam any more are then removed. If the class is
    `nameless`, students have pseudonyms. Raises `CallError` as `write_pages` does.
    """
    require_templates()
    from grader.report.viva import alike_in, exam_page

    rows, assignment = book.rows(), _assignment(book, course)
    shown = own = {row.student: row for row in rows}  # by student
    if nameless:
        names = pseudonyms_in(rows, book.salt)
        hidden = {row.student: row for row in anonymous(rows, names)}
        shown = {student: hidden[names[student]] for student in own}
    stems = feedback_names([*shown.values()])
    pages: dict[str, str] = {}
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    for exam in exams:
        row = shown[exam.student]
        sources = _sources(book, own[exam.student])
        pages[row.student] = stems[row.student]
        text = exam_page(row, exam, exercises, course, assignment, sources, nameless=nameless)
        _write(to / stems[row.student], text)
    if sheet is None:
        return
    alike = {
        shown[student].student: [shown[other].student for other in others]
        for student, others in alike_in(rows, _pairs(book, rows, course)).items()
    }
    listed = sorted(shown.values(), key=lambda row: row.student)
    _write(to / SHEET, marks_csv(listed, pages, alike, *sheet))
    _remove_others(to, pages.values(), b"viva")


def _assignment(book: Gradebook, course: Course) -> Assignment | None:
    """The assignment that the gradebook names, if the course still has it."""
    return next((one for one in course.file.assignment if one.name == book.assignment), None)


def _sources(book: Gradebook, row: Row) -> Sequence[SourceText]:
    """The text of the submission that counts for a student; empty if it is not kept."""
    submission = book.submission(row.grade.submission) if row.grade is not None else None
    return submission.sources if submission is not None else ()


def _pairs(book: Gradebook, rows: Sequence[Row], course: Course) -> list[Resemblance]:
    graded = {row.grade.submission for row in rows if row.grade is not None}
    if len(graded) < 2:
        return []
    submissions = (one for one in book.submissions() if one.student in graded)
    return similar(submissions, [*course.stubs().values()])


def _differs(path: Path, text: str) -> bool:
    """Whether a file is missing or has another text; a page that stays keeps its time."""
    return not path.is_file() or path.read_bytes() != text.encode()


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise unwritten(path, error) from None


def _remove_others(folder: Path, kept: Collection[str], kind: bytes) -> None:
    """Remove the pages of a kind that the kit wrote, except those in `kept`."""
    begins = OURS % kind
    for path in folder.glob("*.html"):
        if path.name not in kept and path.is_file():
            with path.open("rb") as file:
                ours = file.read(len(begins)) == begins
            if ours:
                path.unlink()
