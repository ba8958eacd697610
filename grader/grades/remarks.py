"""Lines for the instructor: late, excused and unmarked work of a class, and an untried torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.intake.names import shown
from grader.records.decisions import LATE
from grader.records.lateness import Policy
from grader.records.rows import Row, called, counted, some_of
from grader.records.torches import is_untried

LMS = "the learning platform subtracts points by its own rule"
UNTRIED = "graded with torch {}, with which this kit was never tried, so marks may differ: {}"
HOW = "`grader grade --times FILE` gives times, `grader adjust DIR STUDENT late -N` a penalty"


def remarks(rows: Sequence[Row], policy: Policy | None) -> Iterator[str]:
    """A line for each kind of remark that concerns somebody; excused students have no others."""
    untried: dict[str, list[Row]] = {}
    for row in rows:
        if row.grade is not None and is_untried(row.grade.torch) and not row.excused:
            untried.setdefault(row.grade.torch, []).append(row)
    for version, graded in untried.items():
        yield UNTRIED.format(version, _students(graded))
    excused = [row for row in rows if row.excused]
    if excused:
        yield f"excused, without a grade: {_names(excused)}"
    counting = [row for row in rows if row.judged]
    for question in dict.fromkeys(name for row in counting for name in row.unmarked):
        left = [row for row in counting if question in row.unmarked]
        yield f"{question} is not marked yet, and counts 0, for {_students(left)}"
    if policy is None:
        return
    late = [row for row in counting if row.lateness is not None]
    if policy.by == "lms":
        if late:
            yield f"late, without a penalty here ({LMS}): {_names(late)}"
        return
    losing = [row for row in counting if row.sum_of([LATE])]
    if losing:
        lost = -sum(row.sum_of([LATE]) for row in losing)
        yield f"late: {counted(lost, 'point')} subtracted from {_students(losing)}"
    unclear = [
        row
        for row in late
        if row.lateness is not None and row.lateness.seconds is None and not row.lateness.share
        if row.correction(LATE) is None
    ]
    if unclear:
        yield f"late at an unknown time, so nothing is subtracted from {_students(unclear)}: {HOW}"
    # Canvas marks who is late. Where a system marks nobody, nothing is known without a time.
    untimed = [
        row
        for row in counting
        if row.grade is not None and not row.grade.submitted and not row.grade.late
        if not row.person.canvas and row.correction(LATE) is None
    ]
    if untimed:
        yield (
            f"no time of submission is known, so nothing is subtracted from {_students(untimed)}: "
            f"{HOW}"
        )


def _students(rows: Sequence[Row]) -> str:
    return f"{counted(len(rows), 'student')} ({_names(rows)})"


def _names(rows: Sequence[Row]) -> str:
    return some_of([called(row.student, shown(row.person.name)) for row in rows])
