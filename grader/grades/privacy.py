"""Protects students' privacy: pseudonyms in lists, and removal of a student from a gradebook."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from grader.grades.database import DATABASE, LOCK
from grader.grades.gradebook import FEEDBACK, LINES, REPORT, TABLE, Gradebook, feedback_names
from grader.grades.marks import SHEET, VIVA, leave_sheet
from grader.records.grade import ExerciseResult, Grade
from grader.records.rows import Adjustment, Person, Row

# --- pseudonyms ----------------------------------------------------------------------------------
#
# A student has the same pseudonym in all lists that are made from a gradebook.


DIGITS = 6  # digits of a pseudonym; twice as many if two students would get the same pseudonym


def pseudonyms(students: Iterable[str], salt: str) -> dict[str, str]:
    """A pseudonym like ``student-7f3a2c`` for each student; `salt` prevents guessing the names."""
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
    """Pseudonyms for the students in these rows and for their submissions; see `anonymous`."""
    submissions = {row.grade.submission for row in rows if row.grade is not None}
    return pseudonyms({row.student for row in rows} | submissions, salt)


def anonymous(rows: Sequence[Row], names: Mapping[str, str]) -> list[Row]:
    """The rows with pseudonyms for students and submissions.

    Messages, notes and the reasons of corrections are dropped, since each may contain a real name.
    """
    return sorted((_anonymous(row, names) for row in rows), key=lambda row: row.student)


def _anonymous(row: Row, names: Mapping[str, str]) -> Row:
    return replace(
        row,
        student=names[row.student],
        grade=_without_words(row.grade, names) if row.grade is not None else None,
        person=Person(),
        adjustments=tuple(Adjustment(a.part, a.points, "", a.sets) for a in row.adjustments),
        comments=(),
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
    # `behaviour` quotes a line of the answer with its file's name, which may be the student's name.
    tests = (msgspec.structs.replace(test, message=None, behaviour=()) for test in exercise.tests)
    return msgspec.structs.replace(exercise, tests=tuple(tests))


# --- forgetting a student ------------------------------------------------------------------------


# The kit's own files in a gradebook's folder: `forget_student` and its caller remove the student.
OURS = frozenset({DATABASE, LOCK, TABLE, LINES, FEEDBACK, REPORT, VIVA})


@dataclass(frozen=True)
class Forgotten:
    """The removed data of a student, and the places that may still name the student."""

    student: str
    removed: Mapping[str, int]  # the number of deleted rows, by table
    pages: tuple[str, ...]
    sharers: tuple[str, ...]  # students of the same group, who keep the submission and its name
    others: tuple[str, ...]  # files in the folder that are not `OURS`, and may name the student


def forget_student(book: Gradebook, row: Row) -> Forgotten:
    """Remove a student from the gradebook, its pages and the sheet of an oral exam.

    Others in the group keep the submission. The caller must write the table and the report again.
    """
    rows = book.rows()
    sharers = [
        other.student
        for other in rows
        if other.student != row.student and other.grade is not None and row.grade is not None
        if other.grade.submission == row.grade.submission
    ]
    removed = book.forget(row.student)
    name, viva = feedback_names(rows).get(row.student), book.folder / VIVA
    pages = [page for folder in (book.folder / FEEDBACK, viva) for page in _pages(folder, name)]
    for page in pages:
        page.unlink()
    others = [path.name for path in book.folder.iterdir() if path.name not in OURS]
    if not leave_sheet(viva / SHEET, row.student):
        others.append(f"{VIVA}/{SHEET}")
    names = tuple(page.relative_to(book.folder).as_posix() for page in pages)
    return Forgotten(row.student, removed, names, tuple(sharers), tuple(sorted(others)))


def _pages(folder: Path, name: str | None) -> list[Path]:
    """The files with this name in a folder: one page, or none."""
    if name is None or not folder.is_dir():
        return []
    return [page for page in folder.iterdir() if page.name == name and page.is_file()]
