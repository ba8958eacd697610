"""Comments, extensions and excuses, as an instructor enters them: one, or many in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from grader.course.course import Course
from grader.grades.corrections import part_named
from grader.grades.entries import Columns, entries
from grader.grades.gradebook import Gradebook
from grader.grades.lookup import find_student, is_meant
from grader.intake.names import escaped
from grader.records.decisions import LATE, Decision, standing
from grader.records.faults import CallError
from grader.records.lateness import RuleError, span_of
from grader.records.rows import Row, some_of
from grader.records.times import read_time, shown_time, written_time

NONE = "none"  # in a table of extensions: the extension is taken back
PARTS = {"part": "exercise", "question": "exercise", "unit": "exercise", "text": "comment"}
COMMENTS = Columns("comments", ("student", "comment"), ("exercise",), aliases=PARTS)
EXTENSIONS = Columns("extensions", ("student", "until"), ("assignment", "reason"))
EXCUSES = Columns("excused students", ("student",), ("assignment", "reason"))


# --- comments ------------------------------------------------------------------------------------


def comment_of(rows: Sequence[Row], course: Course, student: str, part: str, text: str) -> Decision:
    """A comment about a part of a student's grade, or about all (""); an empty text removes it."""
    row = find_student(rows, student)
    about = part_named(course, part) if part else ""
    if about == LATE:
        raise CallError("a comment is about an exercise, a unit, a question, total or everything")
    return Decision(row.student, "comment", about, text=text.strip(), removed=not text.strip())


def comments_from(data: bytes, file: str, rows: Sequence[Row], course: Course) -> list[Decision]:
    """The comments in a table with the columns `COMMENTS`."""
    return _once_each(
        data,
        file,
        COMMENTS,
        lambda cells: comment_of(
            rows, course, cells["student"], cells.get("exercise", ""), cells["comment"]
        ),
    )


# --- extensions and excuses ----------------------------------------------------------------------


def extension_of(
    rows: Sequence[Row],
    course: Course,
    book: Gradebook,
    student: str,
    until: str,
    reason: str,
    *,
    undo: bool = False,
) -> Decision:
    """A student's own due time: a time, or a span after the assignment's due time."""
    row = find_student(rows, student)
    if undo:
        return Decision(row.student, "extension", removed=True)
    if book.policy is None:
        raise CallError(
            f"{book.folder} has no due time: set `due` for an assignment in course.toml, and grade "
            "with --assignment"
        )
    moment = _time(until, course, book.policy.due)
    if moment <= book.policy.due:
        raise CallError(
            f"{until} is not after the due time, {shown_time(book.policy.due, course.zone)}"
        )
    return Decision(row.student, "extension", until=written_time(moment), text=reason.strip())


def extensions_from(
    data: bytes, file: str, rows: Sequence[Row], course: Course, book: Gradebook
) -> list[Decision]:
    """The extensions in a table with the columns `EXTENSIONS`, for the gradebook's assignment.

    A `NONE` in place of a time takes an extension back.
    """
    return _once_each(
        data,
        file,
        EXTENSIONS,
        lambda cells: (
            extension_of(
                rows,
                course,
                book,
                cells["student"],
                cells["until"],
                cells.get("reason", ""),
                undo=cells["until"] == NONE,
            )
            if _is_for(cells, course, book)
            else None
        ),
    )


def excuse_of(rows: Sequence[Row], student: str, reason: str, *, undo: bool = False) -> Decision:
    """The decision that a student's grade does not count."""
    row = find_student(rows, student)
    return Decision(row.student, "excused", text=reason.strip(), removed=undo)


def excuses_from(
    data: bytes, file: str, rows: Sequence[Row], course: Course, book: Gradebook
) -> list[Decision]:
    """The excuses in a table with the columns `EXCUSES`, for the gradebook's assignment."""
    return _once_each(
        data,
        file,
        EXCUSES,
        lambda cells: (
            excuse_of(rows, cells["student"], cells.get("reason", ""))
            if _is_for(cells, course, book)
            else None
        ),
    )


# --- submissions under a wrong name --------------------------------------------------------------


def assignment_of(
    rows: Sequence[Row], book: Gradebook, submission: str, student: str, *, undo: bool = False
) -> Decision:
    """The decision that a submission is a student's, whatever its name.

    `student` is on the list of students, or a name that the gradebook does not have yet. Raises
    `CallError` if the submission is a group's, or if the student has one of their own.
    """
    decided = standing(book.decisions())
    owners = [name for name, own in decided.items() if ("assigned", submission) in own]
    if undo:
        if not owners:
            raise CallError(f"the submission {submission!r} is assigned to nobody")
        return Decision(owners[0], "assigned", submission, removed=True)
    graded = {grade.submission for grade in book.grades()}
    if submission not in graded:
        raise CallError(
            f"there is no submission called {submission!r} in this gradebook; it has: "
            f"{some_of(sorted(map(escaped, graded)))}"
        )
    if owners:
        raise CallError(f"{submission!r} is assigned to {owners[0]}: take that back with --undo")
    stored = book.submission(submission)
    if stored is not None and len(stored.members) > 1:
        raise CallError(
            f"{submission!r} is the submission of a group ({', '.join(stored.members)}): correct "
            "the column group of the roster, and grade with it"
        )
    row = _student(rows, book, student)
    if row is not None and row.grade is not None and row.grade.submission == submission:
        raise CallError(f"{submission!r} is the submission of {row.student} already")
    if row is not None and (row.grade is not None or row.conflict is not None):
        has = row.conflict or "has a submission"
        raise CallError(
            f"{row.student} {has}: remove one of the two from the submissions, and grade with "
            "--replace"
        )
    return Decision(row.student if row is not None else student.strip(), "assigned", submission)


def _student(rows: Sequence[Row], book: Gradebook, text: str) -> Row | None:
    """The row that a text names; None if it is a new name in a gradebook without a roster."""
    new = text.strip() and not book.roster.people and not any(is_meant(row, text) for row in rows)
    return None if new else find_student(rows, text)


def _time(text: str, course: Course, due: datetime) -> datetime:
    """The time in a text: a time, or a span after `due`."""
    try:
        return due + timedelta(seconds=span_of(text))
    except RuleError:
        return read_time(text, course.zone)


def _is_for(cells: Mapping[str, str], course: Course, book: Gradebook) -> bool:
    """Whether a line is about the gradebook's assignment, and not about another."""
    named = cells.get("assignment", "")
    if not named or named == book.assignment:
        return True
    course.assignment(named)  # raises an error if there is no such assignment
    return False


def _once_each(
    data: bytes,
    file: str,
    columns: Columns,
    make: Callable[[Mapping[str, str]], Decision | None],
) -> list[Decision]:
    """The decisions in a table; raises `CallError` if two lines are about the same."""
    lines: dict[tuple[str, str], int] = {}

    def one(line: int, cells: Mapping[str, str]) -> Decision | None:
        made = make(cells)
        if made is not None:
            earlier = lines.setdefault((made.student, made.part), line)
            if earlier != line:
                raise CallError(f"line {earlier} is already about {made.student}")
        return made

    return [made for made in entries(data, file, columns, one) if made is not None]
