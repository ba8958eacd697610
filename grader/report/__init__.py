"""Pages from a gradebook: each student's feedback, and the report on a class.

`similarity` turns submissions into pairs; `feedback` makes a student's page, `overview` the numbers
of a class and their page, by way of `rendering`, which knows the templates.
Needs the extra ``instructor``; without it, `require_templates` says how to get it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.course.file import Assignment
from grader.grades.gradebook import FEEDBACK, REPORT, Gradebook, feedback_names
from grader.grades.privacy import anonymous, pseudonyms_in
from grader.records.faults import unwritten
from grader.records.files import drafted, write_whole
from grader.records.rows import Row
from grader.report.rendering import require_templates
from grader.report.similarity import Resemblance, similar

__all__ = [
    "ANONYMOUS",
    "FEEDBACK",
    "REPORT",
    "feedback_names",
    "require_templates",
    "write_anonymous",
    "write_pages",
]
ANONYMOUS = "report-anonymous.html"
OURS = b"<!doctype html>\n<!-- feedback by attention-grader -->"  # how each page of it begins


def write_pages(
    book: Gradebook,
    course: Course,
    advance: Callable[[], object] = lambda: None,
    *,
    similarity: bool = True,
) -> None:
    """Write the feedback of everyone who has a grade, and the report, into the gradebook's folder.

    Pages that an earlier run wrote for students who are gone are removed. `advance` is called
    after each page of feedback, and after the report. Raises `CallError` where the extra is
    missing, or a file cannot be written.
    """
    require_templates()
    from grader.report.feedback import feedback_page
    from grader.report.overview import report_page

    rows, assignment = book.rows(), _assignment(book, course)
    pages = feedback_names(rows)
    with drafted(book.folder / FEEDBACK) as draft:
        for row in rows:
            if row.student in pages:
                (draft / pages[row.student]).write_text(
                    feedback_page(row, course, assignment), "utf-8"
                )
                advance()
    _remove_others(book.folder / FEEDBACK, pages.values())
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
    """Write the report with pseudonyms for students, beside the one with their names.

    Raises `CallError` as `write_pages` does.
    """
    require_templates()
    from grader.report.overview import report_page

    rows = book.rows()
    names = pseudonyms_in(rows, book.salt)
    pairs = _pairs(book, rows, course) if similarity else None
    if pairs is not None:  # files are named by students, too
        pairs = [
            replace(
                pair, one=names[pair.one], others=tuple(names[o] for o in pair.others), places=None
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
    )
    _write(book.folder / ANONYMOUS, text)
    advance()


def _assignment(book: Gradebook, course: Course) -> Assignment | None:
    """What was graded, if it was an assignment that the course still names."""
    return next((one for one in course.file.assignment if one.name == book.assignment), None)


def _pairs(book: Gradebook, rows: Sequence[Row], course: Course) -> list[Resemblance]:
    graded = {row.grade.submission for row in rows if row.grade is not None}
    if len(graded) < 2:
        return []
    submissions = (one for one in book.submissions() if one.student in graded)
    return similar(submissions, [*course.stubs().values()])


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise unwritten(path, error) from None


def _remove_others(folder: Path, kept: Collection[str]) -> None:
    """Remove pages of feedback that are ours, and of nobody in the gradebook."""
    for path in folder.glob("*.html"):
        if path.name not in kept and path.is_file():
            with path.open("rb") as file:
                ours = file.read(len(OURS)) == OURS
            if ours:
                path.unlink()
