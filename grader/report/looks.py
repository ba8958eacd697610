"""The students whom an instructor should look at, the most urgent first, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.records.rows import ABSENT, CONFLICT, Row
from grader.report.similarity import Resemblance

# In this order; the text is the next step, or "" if there is none.
STEPS = {
    CONFLICT: "Keep one of the submissions, and grade again.",
    "grader_error": "The grader failed: run the same command again.",
    "unlisted": "Correct the roster; if the name is wrong: grader assign DIR SUBMISSION STUDENT",
    "unreadable": "Ask for the files again, and grade the class again with them.",
    "alike": "Read them side by side, under Similarity.",
    "stopped": "Read the answer: a test ran out of time or memory.",
    "limited": "If the correction is no longer meant, remove it with 0.",
    "noted": "",
    ABSENT: "",
}
RANK = {kind: rank for rank, kind in enumerate(STEPS)}
STOPPED = ("timeout", "memory")


@dataclass(frozen=True)
class Look:
    """A student to look at, with the reasons and the most urgent next step."""

    place: int  # the index of the student's row
    why: Sequence[str]
    step: str


def looks(rows: Sequence[Row], pairs: Sequence[Resemblance]) -> list[Look]:
    """The students to look at; those with equally urgent reasons are in the order of the rows."""
    alike: dict[str, list[str]] = {}
    for pair in pairs:
        for name in (pair.one, *pair.others):
            alike.setdefault(name, []).extend({pair.one, *pair.others} - {name})
    found: list[tuple[int, Look]] = []
    for place, row in enumerate(rows):
        reasons = [*_reasons(row, alike)]
        if reasons:
            first = min(reasons, key=lambda reason: RANK[reason[0]])[0]
            why = [text for _, text in sorted(reasons, key=lambda reason: RANK[reason[0]])]
            found.append((RANK[first], Look(place, list(filter(None, why)), STEPS[first])))
    return [look for _, look in sorted(found, key=lambda one: (one[0], one[1].place))]


def _reasons(row: Row, alike: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The kind of each reason, and a line about it; the status needs no line."""
    grade = row.grade
    if row.unlisted:
        yield "unlisted", "not on the roster, and not in the numbers of the class"
    if grade is None:
        if row.conflict:
            yield CONFLICT, f"not graded: {row.conflict}"
        elif row.conflict is not None:
            yield CONFLICT, "several submissions, of which only one can count"
        elif not row.excused:
            yield ABSENT, "no submission"
        return
    if grade.status != "graded":
        kind = "grader_error" if grade.status == "grader_error" else "unreadable"
        yield kind, grade.message or ""
    elif grade.message:
        yield "noted", grade.message
    if others := alike.get(grade.submission):
        yield "alike", f"very similar to {len(others)} other{'s' if len(others) > 1 else ''}"
    ended = [
        f"{exercise.name}/{test.name}"
        for exercise in grade.exercises
        for test in exercise.tests
        if test.status in STOPPED
    ]
    if ended:
        yield "stopped", f"stopped by the limit of time or memory: {', '.join(ended)}"
    for line in row.limits:
        yield "limited", line
    for note in grade.notes:
        yield "noted", note
