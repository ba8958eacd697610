"""Keeping students to themselves: pseudonyms for lists, and a student who is forgotten.

Forgetting removes every file that tells of a student.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from grader.grades.gradebook import (
    DATABASE,
    FEEDBACK,
    LINES,
    LOCK,
    REPORT,
    TABLE,
    Gradebook,
    feedback_names,
)
from grader.records.grade import ExerciseResult, Grade
from grader.records.rows import Adjustment, Person, Row

# --- pseudonyms ----------------------------------------------------------------------------------
#
# Names for those who shall not be named: the same in every list of one gradebook.


DIGITS = 6  # of a pseudonym; twice as many for two students that would share one


def pseudonyms(students: Iterable[str], salt: str) -> dict[str, str]:
    """Each student's pseudonym, ``student-7f3a2c``: nobody who lacks the salt can tell whose."""
    digests = {
        student: hashlib.blake2b(
            student.encode("utf-8", "surrogatepass"), key=salt.encode(), digest_size=16
        ).hexdigest()
        for student in students
    }
    taken = Counter(digest[:DIGITS] for digest in digests.values())
    return {
        student: f"student-{digest[: DIGITS if taken[digest[:DIGITS]] == 1 else 2 * DIGITS]}"
        for student, digest in digests.items()
    }


def pseudonyms_in(rows: Sequence[Row], salt: str) -> dict[str, str]:
    """Pseudonyms of all students in these rows and their submissions, as `anonymous` takes them."""
    submissions = {row.grade.submission for row in rows if row.grade is not None}
    return pseudonyms({row.student for row in rows} | submissions, salt)


def anonymous(rows: Sequence[Row], names: Mapping[str, str]) -> list[Row]:
    """The rows by other names, of students and of submissions, and without any text of theirs.

    Messages, notes and the reasons of corrections go, since the real name can stand in each.
    """
    return sorted((_anonymous(row, names) for row in rows), key=lambda row: row.student)


def _anonymous(row: Row, names: Mapping[str, str]) -> Row:
    return replace(
        row,
        student=names[row.student],
        grade=_without_words(row.grade, names) if row.grade is not None else None,
        person=Person(),
        adjustments=tuple(Adjustment(a.exercise, a.points, "") for a in row.adjustments),
        conflict=None if row.conflict is None else "",
    )


def _without_words(grade: Grade, names: Mapping[str, str]) -> Grade:
    return msgspec.structs.replace(
        grade,
        student=names[grade.student],
        submission=names[grade.submission],
        message=None,
        notes=(),
        exercises=tuple(map(_without_messages, grade.exercises)),
    )


def _without_messages(exercise: ExerciseResult) -> ExerciseResult:
    # How an answer behaves is told with a line of it, and so with the name of a file.
    tests = (msgspec.structs.replace(test, message=None, behaviour=()) for test in exercise.tests)
    return msgspec.structs.replace(exercise, tests=tuple(tests))


# --- forgetting ----------------------------------------------------------------------------------
#
# Removing a person: from a gradebook, and from the files beside it.


# Of a gradebook's folder: what is written again without a student, and what tells of none.
OURS = frozenset({DATABASE, LOCK, TABLE, LINES, FEEDBACK, REPORT})


@dataclass(frozen=True)
class Forgotten:
    """What was removed of a student, and what was not."""

    student: str
    removed: Mapping[str, int]  # rows by table
    pages: tuple[str, ...]
    # Of the student's group: they keep what all of them handed in, under the name it has.
    sharers: tuple[str, ...]
    others: tuple[str, ...]  # files beside the gradebook that nobody writes again


def forget_student(book: Gradebook, row: Row) -> Forgotten:
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
    others = sorted(path.name for path in book.folder.iterdir() if path.name not in OURS)
    names = tuple(page.name for page in pages)
    return Forgotten(row.student, removed, names, tuple(sharers), tuple(others))


def _pages(folder: Path, name: str | None) -> list[Path]:
    """A student's files in a folder."""
    if name is None or not folder.is_dir():
        return []
    return [page for page in folder.iterdir() if page.name == name and page.is_file()]
