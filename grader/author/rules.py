"""Proof that an exercise's tests look at the rules that its statement states, and at no others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from grader.course.collection import Test
from grader.course.statements import FORBIDDEN, RETURNS, Statement
from grader.mistakes import Variant
from grader.records.grade import FIRSTS, ExerciseResult
from grader.records.rows import some_of


@dataclass(frozen=True)
class Tried:
    """A mistake, what it got, and the hidden tests that would tell of it without public ones."""

    variant: Variant
    result: ExerciseResult
    tellers: Collection[str]

    def fails(self, test: Test) -> bool:
        """Whether a test tells of it."""
        if test.hidden:
            return test.name in self.tellers
        return any(t.name == test.name and not t.hidden and t.rules for t in self.result.tests)


def doubts(
    stated: Statement, tests: Sequence[Test], tried: Sequence[Tried], heart: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Each rule by its key, and what is not as it should be; or nothing of one that is proved.

    A mistake must break it alone; a hidden test must quote it; each test that quotes it must tell
    of a mistake that breaks it; and a mistake that breaks nothing else must fail no test that does
    not quote it. What has another shape or dtype may fail anywhere. Of a rule at the `heart`, no
    mistake that breaks it may keep more than half of the points.
    """
    named = [key for one in tried for key in one.variant.breaks]
    named += [key for test in tests for key in test.rules]
    for key in dict.fromkeys([*stated.keys, *named]):
        if key not in stated.keys:
            own = [one.variant.slug for one in tried if key in one.variant.breaks]
            own += [test.name for test in tests if key in test.rules]
            yield key, f"{some_of(own, 2)} is said to break it, and the statement has no such rule"
            continue
        found = [*_doubts(key, tests, tried)]
        if key in heart and (kept := [*_keeping_more_than_half(key, tried)]):
            found.append(
                f"it is at the heart, and {some_of(kept, 2)} keeps more than half of the points"
            )
        yield key, "; ".join(found)


def _doubts(key: str, tests: Sequence[Test], tried: Sequence[Tried]) -> Iterator[str]:
    quoting = [test for test in tests if key in test.rules]
    breaking = [one for one in tried if key in one.variant.breaks]
    alone = [one for one in breaking if len(one.variant.breaks) == 1]
    # The engine itself looks at these two, in every test.
    if key not in (FORBIDDEN, RETURNS) and not any(test.hidden for test in quoting):
        yield "no hidden test quotes it"
    if not alone:
        yield "no mistake breaks it alone"
    for test in quoting:
        if not any(one.fails(test) for one in breaking):
            side = "hidden" if test.hidden else "public"
            yield f"the {side} {test.name} quotes it, and tells of no mistake that breaks it"
    if key == RETURNS:
        return
    for one in alone:
        strange = [
            f"{test.name} ({', '.join(test.rules)})"
            for test in one.result.tests
            if test.name not in FIRSTS and test.rules and not {key, RETURNS} & {*test.rules}
        ]
        if strange:
            yield f"{one.variant.slug} breaks it alone, and fails {some_of(strange, 2)}"


def _keeping_more_than_half(key: str, tried: Sequence[Tried]) -> Iterator[str]:
    for one in tried:
        if key in one.variant.breaks and 2 * one.result.points > one.result.max:
            yield one.variant.slug
