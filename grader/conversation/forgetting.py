"""Removing a person: from a gradebook, and from the files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.gradebook import DATABASE, LINES, LOCK, TABLE, Gradebook
from grader.records.rows import Row
from grader.report import FEEDBACK, REPORT, feedback_names

REWRITTEN = frozenset({DATABASE, LOCK, TABLE, LINES, FEEDBACK, REPORT})


@dataclass(frozen=True)
class Forgotten:
    """What was removed of a student, and what was not."""

    student: str
    removed: Mapping[str, int]  # rows by table
    pages: tuple[str, ...]
    # Of the student's group: they keep what all of them handed in, under the name it has.
    sharers: tuple[str, ...]
    others: tuple[str, ...]  # files beside the gradebook that nobody writes again


def forget(book: Gradebook, row: Row) -> Forgotten:
    """Remove a student from the gradebook and from its pages; who shares the submission keeps it.

    What is written from the gradebook as a whole has to be written again.
    """
    rows = book.rows()
    sharers = [
        other.student
        for other in rows
        if other.student != row.student and other.grade is not None and row.grade is not None
        if other.grade.submission == row.grade.submission
    ]
    removed = book.forget(row.student)
    pages = _pages(book.folder / FEEDBACK, feedback_names(rows).get(row.student))
    for page in pages:
        page.unlink()
    others = sorted(path.name for path in book.folder.iterdir() if path.name not in REWRITTEN)
    names = tuple(page.name for page in pages)
    return Forgotten(row.student, removed, names, tuple(sharers), tuple(others))


def _pages(folder: Path, name: str | None) -> list[Path]:
    """A student's files in a folder."""
    if name is None or not folder.is_dir():
        return []
    return [page for page in folder.iterdir() if page.name == name and page.is_file()]
