"""A verdict: an exercise's result in the form that every screen renders.

`verdict_of` makes a verdict. The terminal, plain lines, notebooks, pages, Gradescope, otter and
Classroom 50 render it. A screen chooses the fields to show; it never parses a message to learn
a fact. `WORDINGS` holds the words for each status of a test.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from grader.course.statements import BUILT_IN, UNCHECKED
from grader.records.grade import (
    ENGINE_CHECKS,
    EXISTS,
    CodeLocation,
    ExerciseResult,
    Picture,
    TestResult,
    TestStatus,
)

State = Literal["solved", "untouched", "unsolved"]

STATEMENT = "The statement"


@dataclass(frozen=True)
class Wording:
    """The words for a test's status in three lengths, with a sign and its colour."""

    sign: str
    color: str
    word: str  # goes before a title
    phrase: str  # goes after a title
    sentence: str


WORDINGS: Mapping[TestStatus, Wording] = {
    "passed": Wording("✓", "green", "Passed", "passed", "It passes."),
    "failed": Wording("✗", "red", "Wrong", "failed", "It is not right yet."),
    "error": Wording("✗", "red", "Error", "an exception", "Your code raised an exception."),
    "missing": Wording("·", "dim", "To do", "not written yet", "It is not written yet."),
    "timeout": Wording(
        "✗", "red", "Too slow", "took too long", "It took too long: does a loop never end?"
    ),
    "memory": Wording(
        "✗", "red", "Too much memory", "needs too much memory", "It took too much memory."
    ),
    "crashed": Wording(
        "✗", "red", "Crashed", "ended the process",
        "Your code ended its own process, or crashed it.",
    ),
    "skipped": Wording(
        "-", "dim", "Not tried", "not run", "Not tried, because something before it is wrong."
    ),
    "grader_error": Wording(
        "!", "magenta", "The grader itself failed", "the grader failed", "The grader itself failed."
    ),
}  # fmt: skip

# For each state of a verdict, the test status whose sign it uses, and its phrase.
STATES: Mapping[State, tuple[TestStatus, str]] = {
    "solved": ("passed", "solved"),
    "untouched": ("missing", "not written yet"),
    "unsolved": ("failed", "not yet right"),
}


@dataclass(frozen=True)
class Mistake:
    """A known mistake that gives the same wrong results as the student's answer, with a hint."""

    title: str
    hint: str
    follows: str | None  # the earlier exercise that has the mistake; None if this exercise has it

    @property
    def heading(self) -> str:
        """The mistake's title, after the earlier exercise in which the mistake was made, if any."""
        return f"Follows from {self.follows}: {self.title}" if self.follows else self.title


@dataclass(frozen=True)
class Finding:
    """The result of one test, ready to be shown."""

    name: str
    title: str
    status: TestStatus
    hidden: bool
    engines_own: bool  # a check by the engine itself, such as: the exercise is there
    points: float
    max: float
    case: str  # the test's parameters when it failed; empty if the test has no parameters
    reason: str  # why the test did not pass, or empty; may hold output of the student's code
    rules: Mapping[str, str]  # the rules of the exercise's statement that it quotes, by key
    # The case, the reason, the quoted rules, and the behaviour.
    message: str
    mistake: Mistake | None
    picture: Picture | None
    position: CodeLocation | None  # the student's line: see `TestResult.position`
    is_best_picture: bool  # whether to show this picture if only one is shown

    @property
    def wording(self) -> Wording:
        """The words for the test's status."""
        return WORDINGS[self.status]

    @property
    def named(self) -> tuple[str, ...]:
        """The mistake's heading and hint; empty if no mistake is named."""
        return (self.mistake.heading, self.mistake.hint) if self.mistake is not None else ()

    @property
    def quiet(self) -> bool:
        """Whether the test passed or was skipped; a student need not read this finding."""
        return self.status in ("passed", "skipped")

    @property
    def bare(self) -> bool:
        """Whether this finding says only that the exercise is not written yet.

        The check that the exercise is there reports this too, with a reason.
        """
        return self.status == "missing" and not self.reason


@dataclass(frozen=True)
class Verdict:
    """The result of one exercise, ready to be shown: a summary, and a finding for each test."""

    exercise: str
    unit: str
    points: float
    max: float
    state: State
    faulty: bool  # the grader itself failed, and the points are unknown
    solved_before: bool  # False if unknown
    unchecked: Mapping[str, str]  # rules that only hidden tests check, by key
    mistakes: tuple[Mistake, ...]  # without repetition, in the order of the tests
    findings: tuple[Finding, ...]

    @property
    def solved(self) -> bool:
        """Whether every test passed."""
        return self.state == "solved"

    @property
    def sign(self) -> str:
        """The sign for the exercise's state: ✓, ✗ or ·."""
        return WORDINGS[STATES[self.state][0]].sign

    @property
    def color(self) -> str:
        """The colour of the sign."""
        return WORDINGS[STATES[self.state][0]].color

    @property
    def phrase(self) -> str:
        """The exercise's state in words, such as "not yet right"."""
        return STATES[self.state][1]

    @property
    def left_unchecked(self) -> str:
        """The rules that only hidden tests check, as lines; empty if the exercise is not solved."""
        if not (self.solved and self.unchecked):
            return ""
        return "\n".join(
            [f"{UNCHECKED.capitalize()}:", *(f"  {k}: {s}" for k, s in self.unchecked.items())]
        )

    @property
    def lost(self) -> bool:
        """Whether the exercise was solved before, but is not solved now."""
        return self.solved_before and not self.solved

    @property
    def definition(self) -> CodeLocation | None:
        """The first line of the definition that counts."""
        return next((f.position for f in self.findings if f.name == EXISTS), None)

    @property
    def at_fault(self) -> CodeLocation | None:
        """The student's line that the first failed test blames; None if no test blames a line."""
        own = (f.position for f in self.wrong if f.name != EXISTS)
        return next(filter(None, own), None)

    @property
    def which_counts(self) -> str:
        """A message on the definition that counts; empty unless there are several definitions."""
        there = [f for f in self.findings if f.name == EXISTS and f.status == "passed"]
        return there[0].message if there else ""

    @property
    def mistake(self) -> Mistake | None:
        """The first known mistake, for screens that show a single mistake."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def worth_reading(self) -> tuple[Finding, ...]:
        """All findings except passed checks of the engine."""
        return tuple(f for f in self.findings if not f.engines_own or f.status != "passed")

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that a student has to read."""
        return tuple(f for f in self.findings if not f.quiet and not f.bare)


def verdict_of(result: ExerciseResult, solved_before: bool = False) -> Verdict:
    """The verdict on a result; `solved_before` says if the student solved the exercise earlier."""
    best = _best_picture(result)
    quoted_rules: set[str] = set()
    findings = []
    for test in result.tests:
        new = _rules_to_quote(test, quoted_rules)
        findings.append(_finding(test, new, test is best))
        quoted_rules |= {*new}
    return Verdict(
        result.name,
        result.unit,
        result.points,
        result.max,
        "solved" if result.solved else "untouched" if result.untouched else "unsolved",
        result.faulty,
        solved_before,
        result.unchecked,
        tuple(dict.fromkeys(f.mistake for f in findings if f.mistake is not None)),
        tuple(findings),
    )


def _rules_to_quote(test: TestResult, quoted: Collection[str]) -> Mapping[str, str]:
    """The rules to quote below a test, if earlier findings quote the rules `quoted`.

    Each rule is quoted once. A named mistake, and a check of the engine, are sure of their rules.
    Otherwise any of the test's rules may be broken. If one of them is quoted already, it may be the
    only one; else the test quotes its first rule, which is the subject of the test.
    """
    if test.follows:  # the mistake is in another exercise: this exercise's rules do not explain it
        return {}
    if test.mistake is None and test.name not in ENGINE_CHECKS:
        return {} if {*test.rules} & {*quoted} else dict(islice(test.rules.items(), 1))
    return {key: rule for key, rule in test.rules.items() if key not in quoted}


def quoted(key: str, sentence: str) -> str:
    """The line that quotes a rule of the statement, below a test that found the rule broken."""
    return f"{STATEMENT if key in BUILT_IN else f'The rule {key!r}'}: {sentence}"


def mistake_of(test: TestResult) -> Mistake | None:
    """The mistake that a test's result names."""
    if test.mistake is None:
        return None
    return Mistake(test.mistake, test.hint or "", test.follows)


def _finding(test: TestResult, rules: Mapping[str, str], best_picture: bool) -> Finding:
    message = (test.message_with_case, *(quoted(*rule) for rule in rules.items()), *test.behaviour)
    return Finding(
        test.name,
        test.title,
        test.status,
        test.hidden,
        test.name in ENGINE_CHECKS,
        test.points,
        test.max,
        test.case or "",
        test.message or "",
        rules,
        "\n".join(filter(None, message)),
        mistake_of(test),
        test.picture,
        test.position,
        best_picture,
    )


def _best_picture(result: ExerciseResult) -> TestResult | None:
    """The test whose picture has the most cells; the first of several."""
    drawn = [
        (len(test.picture.wrong) * len(test.picture.wrong[0]), test)
        for test in result.tests
        if test.picture is not None
    ]
    return max(drawn, key=lambda pair: pair[0])[1] if drawn else None
