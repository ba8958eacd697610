"""The rows of a gradebook: computed grades, and what people decided about them.

Nothing is changed in what is stored: a decision that is taken back leaves no trace in a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from grader.intake import Roster
from grader.records.decisions import Decision, Standing, standing
from grader.records.grade import Grade
from grader.records.lateness import Lateness, Policy, lateness
from grader.records.rows import Adjustment, Comment, Person, Row

ASSIGNED = (
    "{0} has the submission {1!r} of their own, and {2!r} was assigned to them: take back one "
    "(grader assign DIR {2!r} --undo), or remove the other from the submissions"
)


def rows_of(
    grades: Mapping[str, Sequence[Grade]],
    people: Mapping[str, Person],
    conflicts: Mapping[str, str],
    roster: Roster,
    decided: Mapping[str, Standing],
    policy: Policy | None,
    questions: Mapping[str, float],
    due: Mapping[str, datetime | None] | None = None,
) -> list[Row]:
    """A row for each student who has a grade or is in `people`, ordered by name.

    `grades` has, for each student, the grade of the last submission, and then those of earlier
    ones, of which `policy` may choose one. The times in `due` replace students' extensions, and
    None stands for no extension.
    """
    graded = {student: own for student, own in grades.items() if student not in conflicts}
    moved = _moved(graded, decided)
    sources = {target: source for source, target in moved.items()}
    names = (graded.keys() | people.keys() | sources.keys()) - {
        source for source in moved if not roster.lists(people.get(source, Person()))
    }
    rows: list[Row] = []
    for student in sorted(names):
        source = sources.get(student)
        own = decided.get(student, {})
        found = [] if student in moved else list(graded.get(student, ()))
        conflict = conflicts.get(student)
        if source is not None:
            own = {**decided.get(source, {}), **own}
            if found and conflict is None:
                conflict = ASSIGNED.format(
                    student, found[0].submission, graded[source][0].submission
                )
            found = list(graded[source]) if conflict is None else []
        person = people.get(student, Person())
        row = Row(
            student,
            None,
            person,
            adjustments_in(own),
            conflict,
            bool(roster.people) and not roster.lists(person),
            questions,
            comments_in(own),
            excused=("excused", "") in own,
        )
        until = due[student] if due is not None and student in due else extended_until(own)
        candidates = [
            _with_lateness(replace(row, versions=len(found)), grade, policy, until)
            for grade in found
        ]
        rows.append(_counting(policy, candidates) if candidates else row)
    return rows


def _with_lateness(row: Row, grade: Grade, policy: Policy | None, until: datetime | None) -> Row:
    """The row with a grade; where the times are known, they decide whether it is late."""
    late = late_by(policy, grade, until)
    known = policy is not None and grade.submitted
    mark = late is not None if known else grade.late
    own = msgspec.structs.replace(grade, student=row.student, late=mark)
    return replace(row, grade=own, lateness=late)


def _moved(
    graded: Mapping[str, Sequence[Grade]], decided: Mapping[str, Standing]
) -> dict[str, str]:
    """The student to whom a submission was assigned, by the name that it would count for."""
    of = {own[0].submission: student for student, own in graded.items()}
    return {
        of[part]: student
        for student, own in decided.items()
        for kind, part in own
        if kind == "assigned" and part in of and of[part] != student
    }


def sources_of(student: str, grades: Iterable[Grade], decisions: Iterable[Decision]) -> list[str]:
    """The names under which submissions that were assigned to a student are stored."""
    own = standing(decisions).get(student, {})
    assigned = {part for kind, part in own if kind == "assigned"}
    return [grade.student for grade in grades if grade.submission in assigned]


# --- which of a student's submissions counts -----------------------------------------------------


def keeps_versions(policy: Policy | None) -> bool:
    """Whether submissions count that their students replaced."""
    return policy is not None and policy.counts != "last"


def _counting(policy: Policy | None, candidates: Sequence[Row]) -> Row:
    """The row of the submission that counts; the first candidate is the last submission.

    "last in time": the last that is not late, or else the last. "best": the one with the most
    points after penalties, and of equal ones the last.
    """
    last = candidates[0]
    if policy is None or policy.counts == "last" or len(candidates) == 1:
        return replace(last, versions=1)
    newest = sorted(candidates, key=_submitted, reverse=True)
    if policy.counts == "last in time":
        in_time = [row for row in newest if row.lateness is None]
        return in_time[0] if in_time else last
    known = [row for row in newest if row.has_points]
    return max(known, key=lambda row: row.earned_after) if known else last


def _submitted(row: Row) -> tuple[bool, str]:
    """A key that orders submissions by time; without a time, one that was not replaced is last."""
    assert row.grade is not None
    return row.grade.submitted == "", row.grade.submitted


# --- what decisions say --------------------------------------------------------------------------


def decision_of(student: str, adjustment: Adjustment) -> Decision:
    """The decision to give these points; adding zero removes an earlier correction."""
    return Decision(
        student,
        "points",
        adjustment.part,
        adjustment.points,
        adjustment.sets,
        text=adjustment.reason,
        removed=not adjustment.points and not adjustment.sets,
    )


def adjustments_in(decisions: Standing) -> tuple[Adjustment, ...]:
    """The points that a person gave, ordered by part."""
    return tuple(
        Adjustment(part, one.points, one.text, one.sets)
        for (kind, part), one in sorted(decisions.items())
        if kind == "points"
    )


def comments_in(decisions: Standing) -> tuple[Comment, ...]:
    """The comments, ordered by part; a comment about everything is first."""
    return tuple(
        Comment(part, one.text)
        for (kind, part), one in sorted(decisions.items())
        if kind == "comment"
    )


def late_by(policy: Policy | None, grade: Grade, extended: datetime | None) -> Lateness | None:
    """How late a student's submission is, with an extension or None; None if it is in time."""
    if policy is None:
        return None
    submitted = datetime.fromisoformat(grade.submitted) if grade.submitted else None
    return lateness(policy, submitted, grade.late, extended)


def extended_until(decisions: Standing) -> datetime | None:
    """The student's own due time; None without an extension."""
    extension = decisions.get(("extension", ""))
    return datetime.fromisoformat(extension.until) if extension is not None else None
