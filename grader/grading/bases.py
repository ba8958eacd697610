"""Finds the wrong exercises that a wrong answer uses, and names those to correct first.

The bases of an exercise are the other exercises that its answer uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grader import wire
from grader.feedback import sentences
from grader.grading.desk import Desk, Seat
from grader.records.grade import BASES, ENGINE_CHECKS, NOT_PASSED, TestResult


def at_fault(
    desk: Desk,
    seat: Seat,
    name: str,
    results: Sequence[TestResult],
    ends: Mapping[str, Sequence[TestResult]],
    solved: Collection[str] = (),
) -> list[TestResult]:
    """A failed check that names the wrong bases of a wrong answer; empty if there are none.

    If a wrong base uses another wrong base, only the other base is named. A helper that only has an
    exercise's name is no base. `ends` has the results of
    each graded exercise. `solved` are the exercises that were right in an earlier check. The failed
    check is shown first in the verdict, and carries no points.
    """
    if not any(result.status in NOT_PASSED for result in results):
        return []
    found = seat.calls.found
    used = found[name].bases
    unready: dict[str, sentences.Unready] = {}
    for base in desk.course.exercises:
        end = ends.get(base, ())
        if base not in used or (base in found and _is_helper(desk, found[base], end)):
            continue
        why = _why_unready(used[base], end)
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


def used_by(seat: Seat, name: str) -> list[str]:
    """The other exercises whose answers use the definition with this exercise's name."""
    return [other for other, found in seat.calls.found.items() if name in found.bases]


def _is_helper(desk: Desk, found: wire.Found, ends: Sequence[TestResult]) -> bool:
    """Whether a definition only has an exercise's name: a helper with arguments of its own.

    Its arguments do not fit the statement; or one of them has another name than in the statement,
    and none of its tests passes.
    """
    contract = desk.oracle.contracts.get(found.name)
    if contract is None or found.status != "found":
        return False
    if sentences.signature(found, contract):
        return True
    aliases = desk.course.file.aliases.arguments
    signatures = [(found.arguments, contract.call), (found.forward, contract.forward)]
    own = any(
        argument.name not in {name, *aliases.get(name, ())}
        for listed, wanted in signatures
        if listed is not None and wanted is not None
        for argument, name in zip(listed, [one.name for one in wanted.parameters], strict=False)
    )
    tests = [end for end in ends if end.name not in ENGINE_CHECKS]
    return own and bool(tests) and not any(end.status == "passed" for end in tests)


def _why_unready(there: wire.FoundStatus, ends: Sequence[TestResult]) -> sentences.Unready | None:
    """Why a base must be corrected first; None if the base may be right.

    Hidden tests of the base do not count, since students cannot see why they fail.
    """
    if there in ("stub", "missing"):
        return there
    return "failing" if any(end.status in NOT_PASSED and not end.hidden for end in ends) else None
