"""Names for those who shall not be named: the same in every list of one gradebook."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from grader.records.grade import ExerciseResult, Grade
from grader.records.rows import Adjustment, Person, Row

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
    )


def _without_words(grade: Grade, names: Mapping[str, str]) -> Grade:
    return msgspec.structs.replace(
        grade, student=names[grade.student], submission=names[grade.submission], message=None,
        notes=(), exercises=tuple(map(_without_messages, grade.exercises)),
    )  # fmt: skip


def _without_messages(exercise: ExerciseResult) -> ExerciseResult:
    tests = (msgspec.structs.replace(test, message=None) for test in exercise.tests)
    return msgspec.structs.replace(exercise, tests=tuple(tests))
