"""Checks that an exercise's tests test all rules of the exercise's statement, and no other rules.

A test quotes the rules that it tests. A known mistake declares the rules that it breaks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from grader.course.collection import Test
from grader.course.statements import FORBIDDEN, RETURNS, Statement
from grader.grading.ladder import WITHOUT_RULES
from grader.mistakes import Variant
from grader.records.grade import ExerciseResult
from grader.records.rows import some_of


@dataclass(frozen=True)
class Tried:
    """A mistake, its grade, and the hidden tests that would catch it without public checks."""

    variant: Variant
    result: ExerciseResult
    catchers: Collection[str]

    def fails(self, test: Test) -> bool:
        """Whether a test catches the mistake."""
        if test.hidden:
            return test.name in self.catchers
        return any(
            t.name == test.name and not t.hidden and t.status not in WITHOUT_RULES
            for t in self.result.tests
        )

    def failed_cases(self, tests: Sequence[Test]) -> Iterator[tuple[Test, Collection[str]]]:
        """The tests that fail for the mistake, each with the rules that its failed case checks.

        A result of another shape or dtype breaks only `RETURNS`.
        """
        results = {(one.name, one.hidden): one for one in self.result.tests}
        for test in tests:
            result = results.get((test.name, test.hidden))
            if result is None or result.status in WITHOUT_RULES:
                continue
            failed = (case for case in test.cases if case.words == (result.case or ""))
            case = next(failed, test.cases[0])  # an answer that hides operations fails no case
            yield test, {*case.rules} | ({*result.rules} & {RETURNS})


def doubts(
    stated: Statement, tests: Sequence[Test], tried: Sequence[Tried], heart: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Each rule's key, with a text of its faults; the text is empty for a rule in order.

    For each rule, the library needs a mistake that breaks only this rule, and a hidden test must
    quote the rule. Each test that quotes a rule must catch a mistake that breaks the rule. A
    mistake that breaks a single rule may fail only tests that quote this rule or `RETURNS`; a
    mistake that breaks only `RETURNS` may fail any test. A mistake that breaks a rule in `heart`
    may keep at most half of the points.
    """
    for key in stated.keys:
        found = [*_doubts(key, tests, tried)]
        if key in heart and (kept := [*_keeping_more_than_half(key, tried)]):
            found.append(
                f"it is at the heart, and {some_of(kept, 2)} keeps more than half of the points "
                "(let a hidden test that quotes it catch this)"
            )
        yield key, "; ".join(found)


def _doubts(key: str, tests: Sequence[Test], tried: Sequence[Tried]) -> Iterator[str]:
    quoting = [test for test in tests if key in test.rules]
    breaking = [one for one in tried if key in one.variant.breaks]
    alone = [one for one in breaking if len(one.variant.breaks) == 1]
    # The engine itself checks these two rules in every test.
    if key not in (FORBIDDEN, RETURNS) and not any(test.hidden for test in quoting):
        yield f'no hidden test quotes it (add rules=("{key}",) to the test that checks it)'
    if not alone:
        yield f'no mistake breaks it alone (declare one with breaks=("{key}",))'
    for test in quoting:
        if not any(one.fails(test) for one in breaking):
            side = "hidden" if test.hidden else "public"
            yield (
                f"the {side} {test.name} quotes it, but catches no mistake that breaks it "
                f'(declare one with breaks=("{key}",), or do not quote it)'
            )
    if key == RETURNS:
        return
    for one in alone:
        strange = [
            f"{test.name} ({', '.join(sorted(rules))})"
            for test, rules in one.failed_cases(tests)
            if not {key, RETURNS} & {*rules}
        ]
        if strange:
            yield (
                f"{one.variant.slug} breaks it alone, but fails {some_of(strange, 2)} "
                "(quote the rule in this test, or add the test's rule to the mistake's breaks=)"
            )


def _keeping_more_than_half(key: str, tried: Sequence[Tried]) -> Iterator[str]:
    for one in tried:
        if key in one.variant.breaks and 2 * one.result.points > one.result.max:
            yield one.variant.slug
