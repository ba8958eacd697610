"""The exercises that an answer stands on: which of them to mend before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grader import wire
from grader.feedback import sentences
from grader.grading.desk import Desk, Seat
from grader.records.grade import BASES, UNWELL, TestResult


def at_fault(
    desk: Desk,
    seat: Seat,
    name: str,
    results: Sequence[TestResult],
    ends: Mapping[str, Sequence[TestResult]],
    solved: Collection[str] = (),
) -> list[TestResult]:
    """What a student reads first of a wrong answer: which exercises below it are not right.

    Only those that the answer uses, and that do not themselves use another such one; `ends` has
    the tests of each exercise that was tried, and `solved` are those that were right before. It
    costs and earns nothing.
    """
    if not any(result.status in UNWELL for result in results):
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
    """Why no other exercise can stand on one; None where nothing speaks against it.

    Its hidden tests say nothing here: a student could not see why.
    """
    if there in ("stub", "missing"):
        return there
    return "failing" if any(end.status in UNWELL and not end.hidden for end in ends) else None
