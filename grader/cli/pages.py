"""What `grader grade` and `grader report` both do: write pages, and tell how far that is."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader.course.course import Course
from grader.records.rows import counted


def written(
    folder: Path,
    course: Course,
    *,
    anonymous: bool = False,
    similarity: bool = True,
    quiet: bool = False,
) -> str:
    """Write the pages of a gradebook, and tell how far that is meanwhile; where they are."""
    from grader import report
    from grader.feedback import terminal
    from grader.grades.gradebook import existing_gradebook

    with existing_gradebook(folder, course.name, meanwhile=True) as book:
        pages = 0 if anonymous else sum(1 for _ in book.grades())
        write = report.write_anonymous if anonymous else report.write_pages
        doing = "writing pages"
        console = Console(stderr=True, quiet=quiet)
        with terminal.progress(console, doing, pages + 1, first=doing) as advance:
            write(book, course, advance, similarity=similarity)
    if anonymous:
        return f"the report: {folder / report.ANONYMOUS}"
    students = f"{counted(pages, 'page')} for students in {folder / report.FEEDBACK}"
    return f"the report: {folder / report.REPORT}, and {students}"
