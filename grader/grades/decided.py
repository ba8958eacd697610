"""What the standing decisions about a student mean for the student's row."""

from __future__ import annotations

from datetime import datetime

from grader.records.decisions import Decision, Standing
from grader.records.grade import Grade
from grader.records.lateness import Lateness, Policy, lateness
from grader.records.rows import Adjustment, Comment


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


def late_by(policy: Policy | None, grade: Grade | None, decisions: Standing) -> Lateness | None:
    """How late a student's submission is, extensions included; None if it is in time."""
    if grade is None or policy is None:
        return None
    extension = decisions.get(("extension", ""))
    extended = moment_of(extension.until) if extension is not None else None
    submitted = moment_of(grade.submitted) if grade.submitted else None
    return lateness(policy, submitted, grade.late, extended)


def moment_of(text: str) -> datetime:
    """The time in a text that `Decision.until` or `Grade.submitted` holds."""
    return datetime.fromisoformat(text)
