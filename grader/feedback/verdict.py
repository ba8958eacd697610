"""A verdict: one exercise's result as every screen tells it.

`verdict_of` makes it, once; the terminal, plain lines, notebooks, pages, Gradescope, otter and
GitHub Classroom render it. A screen chooses what it shows and how, and reads no meaning out of a
text. Words for how a test ended are in `WORDINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from grader.course.statements import BUILT_IN, UNCHECKED
from grader.records.grade import EXISTS, FIRSTS, ExerciseResult, Picture, TestResult, TestStatus

State = Literal["solved", "untouched", "unsolved"]

STATEMENT = "The statement"


@dataclass(frozen=True)
class Wording:
    """How a test ended: a sign and its colour, and words of three lengths."""

    sign: str
    color: str
    word: str  # before a title
    phrase: str  # behind a title
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

# A verdict reads like such a test, and is called so.
STATES: Mapping[State, tuple[TestStatus, str]] = {
    "solved": ("passed", "solved"),
    "untouched": ("missing", "not written yet"),
    "unsolved": ("failed", "not yet right"),
}


@dataclass(frozen=True)
class Mistake:
    """A known mistake that gives the same results, with a hint."""

    title: str
    hint: str
    follows: str | None  # the earlier exercise in which it was made, if not here

    @property
    def heading(self) -> str:
        """Its title, and where it was made."""
        return f"Follows from {self.follows}: {self.title}" if self.follows else self.title


@dataclass(frozen=True)
class Finding:
    """One test: what it asks for, how it ended, and what was seen."""

    name: str
    title: str
    status: TestStatus
    hidden: bool
    engines_own: bool  # no test of a course: that the exercise is there, can be called, …
    points: float
    max: float
    case: str  # the parameters that it did not pass with; empty where it has none
    reason: str  # why it did not pass, or empty; it may hold what a student's code printed
    rules: Mapping[str, str]  # of the statement: those that it found broken, by their keys
    message: str  # the reason, with the case that it is about and the rules that no other told yet
    mistake: Mistake | None
    picture: Picture | None
    is_best_picture: bool  # the picture to show where one is enough: it shows the most

    @property
    def wording(self) -> Wording:
        """How it ended, in words."""
        return WORDINGS[self.status]

    @property
    def named(self) -> tuple[str, ...]:
        """The mistake's heading and hint, where one is named."""
        return (self.mistake.heading, self.mistake.hint) if self.mistake is not None else ()

    @property
    def quiet(self) -> bool:
        """Whether it passed, or was not run: nobody has to read it."""
        return self.status in ("passed", "skipped")

    @property
    def bare(self) -> bool:
        """Whether nothing is written yet, and another finding says so."""
        return self.status == "missing" and not self.reason


@dataclass(frozen=True)
class Verdict:
    """One exercise: what to say first, and test by test."""

    exercise: str
    unit: str
    points: float
    max: float
    state: State
    faulty: bool  # the grader itself failed in it: its points are not known
    solved_before: bool  # as far as that is known
    unchecked: Mapping[str, str]  # rules that grades look at, and these checks do not
    mistakes: tuple[Mistake, ...]  # each once, the likeliest first
    findings: tuple[Finding, ...]

    @property
    def solved(self) -> bool:
        """Whether every test passed."""
        return self.state == "solved"

    @property
    def sign(self) -> str:
        """The sign of a test that ended so."""
        return WORDINGS[STATES[self.state][0]].sign

    @property
    def color(self) -> str:
        """The colour of that sign."""
        return WORDINGS[STATES[self.state][0]].color

    @property
    def phrase(self) -> str:
        """The state in words."""
        return STATES[self.state][1]

    @property
    def left_unchecked(self) -> str:
        """The rules that only grades look at, in lines, once all checks passed; or nothing."""
        if not (self.solved and self.unchecked):
            return ""
        return "\n".join(
            [f"{UNCHECKED.capitalize()}:", *(f"  {k}: {s}" for k, s in self.unchecked.items())]
        )

    @property
    def lost(self) -> bool:
        """Whether it was solved once, and is no longer."""
        return self.solved_before and not self.solved

    @property
    def which_counts(self) -> str:
        """In lines, which of several definitions counts as the answer; or nothing."""
        there = [one for one in self.findings if one.name == EXISTS and one.status == "passed"]
        return there[0].message if there else ""

    @property
    def mistake(self) -> Mistake | None:
        """The mistake to name where only one is named."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def worth_reading(self) -> tuple[Finding, ...]:
        """The findings without checks of the engine's own that passed."""
        return tuple(f for f in self.findings if not f.engines_own or f.status != "passed")

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that a student has to read."""
        return tuple(f for f in self.findings if not f.quiet and not f.bare)


def verdict_of(result: ExerciseResult, solved_before: bool = False) -> Verdict:
    """What there is to tell of a result; `solved_before` is what is known of this student."""
    best = _best_picture(result)
    told: set[str] = set()  # a rule is quoted once, where it is first broken
    findings = []
    for test in result.tests:
        new = {key: said for key, said in test.rules.items() if key not in told}
        # Where the mistake was made elsewhere, the rules of this exercise are beside the point.
        findings.append(_finding(test, {} if test.follows else new, test is best))
        told |= {*new}
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


def quoted(key: str, sentence: str) -> str:
    """A rule of the statement, as it stands beside a test that found it broken."""
    return f"{STATEMENT if key in BUILT_IN else f'The rule {key!r}'}: {sentence}"


def mistake_of(test: TestResult) -> Mistake | None:
    """The mistake that a test's result names."""
    if test.mistake is None:
        return None
    return Mistake(test.mistake, test.hint or "", test.follows)


def _finding(test: TestResult, rules: Mapping[str, str], best_picture: bool) -> Finding:
    return Finding(
        test.name,
        test.title,
        test.status,
        test.hidden,
        test.name in FIRSTS,
        test.points,
        test.max,
        test.case or "",
        test.message or "",
        test.rules,
        _joined(test.told, *(quoted(*rule) for rule in rules.items()), *test.behaviour),
        mistake_of(test),
        test.picture,
        best_picture,
    )


def _joined(*parts: str | None) -> str:
    return "\n".join(filter(None, parts))


def _best_picture(result: ExerciseResult) -> TestResult | None:
    """The first of the tests whose picture has the most cells."""
    drawn = [
        (len(test.picture.wrong) * len(test.picture.wrong[0]), test)
        for test in result.tests
        if test.picture is not None
    ]
    return max(drawn, key=lambda pair: pair[0])[1] if drawn else None
