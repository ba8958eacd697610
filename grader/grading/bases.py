"""The exercises that an answer uses: which of them to correct first."""

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
    """A check, shown first in a wrong answer's verdict, that names the wrong exercises below it.

    It names only exercises that the answer uses, and of these the lowest: none that itself uses
    another wrong exercise. `ends` has the tests of each exercise that was tried; `solved` are the
    exercises that were right before. The check carries no points.
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
    named = {result.follows for result in results}  # with the mistake that was made there
    first = {base: why for base, why in unready.items() if base in lowest - named}
    if not first:
        return []
    title = sentences.bases_title(first)
    message = sentences.unready(name, first, seat.session.in_cells)
    return [TestResult(BASES, title, "failed", hidden=False, message=message)]


def _why_unready(there: wire.FoundStatus, ends: Sequence[TestResult]) -> sentences.Unready | None:
    """Why no other exercise can use this one; None if it may be right.

    Its hidden tests do not count: students could not see why.
    """
    if there in ("stub", "missing"):
        return there
    return "failing" if any(end.status in NOT_PASSED and not end.hidden for end in ends) else None
