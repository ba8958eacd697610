"""Finds the wrong exercises that a wrong answer uses, and names those to correct first.

The bases of an exercise are the other exercises that its answer uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grader import wire
from grader.feedback import sentences
from grader.grading.desk import Desk, Seat
from grader.records.grade import BASES, NOT_PASSED, TestResult


def at_fault(
    desk: Desk,
    seat: Seat,
    name: str,
    results: Sequence[TestResult],
    ends: Mapping[str, Sequence[TestResult]],
    solved: Collection[str] = (),
) -> list[TestResult]:
    """A failed check that names the wrong bases of a wrong answer; empty if there are none.

    If a wrong base uses another wrong base, only the other base is named. `ends` has the results of
    each graded exercise. `solved` are the exercises that were right in an earlier check. The failed
    check is shown first in the verdict, and carries no points.
    """
    if not any(result.status in NOT_PASSED for result in results):
        return []
    found = seat.calls.found
    used = found[name].bases
    unready: dict[str, sentences.Unready] = {}
    for base in desk.course.exercises:
        why = _why_unready(used[base], ends.get(base, ())) if base in used else None
        if why is not None:
            unready[base] = "stub again" if why == "stub" and base in solved else why
    on_others = {base for base in unready if base in found and found[base].bases.keys() & unready}
    lowest = unready.keys() - on_others or unready.keys()
    named = {result.follows for result in results}  # bases that the verdict's mistake names already
    first = {base: why for base, why in unready.items() if base in lowest - named}
    if not first:
        return []
    title = sentences.bases_title(first)
    message = sentences.unready(name, first, seat.session.in_cells)
    return [TestResult(BASES, title, "failed", hidden=False, message=message)]


def _why_unready(there: wire.FoundStatus, ends: Sequence[TestResult]) -> sentences.Unready | None:
    """Why a base must be corrected first; None if the base may be right.

    Hidden tests of the base do not count, since students cannot see why they fail.
    """
    if there in ("stub", "missing"):
        return there
    return "failing" if any(end.status in NOT_PASSED and not end.hidden for end in ends) else None
