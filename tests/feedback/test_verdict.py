"""A verdict is data: a new screen is made of it alone, as README.md of the room says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.feedback.verdict import WORDINGS, Verdict, verdict_of
from grader.records.grade import EXISTS, SIGNATURE, ExerciseResult, Picture, TestResult, TestStatus
from tests.support.places import ROOT, TINY

Screen = Callable[[Verdict], Iterator[str]]


@pytest.fixture(scope="module")
def chat_lines() -> Screen:
    """The screen that the README adds."""
    text = (ROOT / "grader" / "feedback" / "README.md").read_text("utf-8")
    screen, _ = re.findall(r"```python\n(.*?)```", text, re.S)
    namespace: dict[str, Screen] = {}
    exec(screen, namespace)
    return namespace["chat_lines"]


def found(status: TestStatus, **more: Any) -> TestResult:
    return TestResult(f"test_{status}", f"A test that ended so: {status}", status, **more)


def result(*tests: TestResult) -> ExerciseResult:
    own = TestResult(EXISTS, "It is there", "passed"), TestResult(SIGNATURE, "It fits", "passed")
    return ExerciseResult("center", "basics", 1.0, 2.0, (*own, *tests))


def test_a_new_screen_tells_what_is_wrong_first(chat_lines: Screen) -> None:
    row = Picture(((1.0, 0.0),), ((2.0, 0.0),), ((True, False),), rows=1, columns=2)
    wrong = found(
        "failed",
        message="expected 1, got 2\x1b[2J",
        mistake="Divides by n",
        hint="By what?",
        follows="mean",
        case="9",
        picture=row,
    )
    first, *rest = chat_lines(verdict_of(result(found("passed"), wrong, found("skipped"))))
    assert first == "✗ center: not yet right"
    assert rest[:3] == [
        "  Follows from mean: Divides by n",
        "  Wrong: A test that ended so: failed",
        "    [9] expected 1, got 2�[2J",
    ]
    assert "expected" in rest[3]
    assert "yours" in rest[3]


def test_a_new_screen_knows_what_is_solved_and_what_is_not_begun(chat_lines: Screen) -> None:
    assert [*chat_lines(verdict_of(result(found("passed"))))] == ["✓ center: solved"]
    there = TestResult(EXISTS, "It is there", "missing", message="still the stub")
    stub = ExerciseResult("center", "basics", 0, 2.0, (there, found("missing")))
    assert [*chat_lines(verdict_of(stub))] == [
        "· center: not written yet",
        "  To do: It is there",
        "    still the stub",
    ]


def test_a_screen_of_a_students_answers_is_a_few_lines(
    chat_lines: Screen, right: str, tmp_path: Path
) -> None:
    """The second block of the README: verdicts come from the public checks."""
    text = (ROOT / "grader" / "feedback" / "README.md").read_text("utf-8")
    (tmp_path / "basics.py").write_text(right.replace("x - x.mean()", "x + x.mean()"), "utf-8")
    namespace: dict[str, Any] = {"chat_lines": chat_lines}
    exec(re.findall(r"```python\n(.*?)```", text, re.S)[1], namespace)
    lines = [*namespace["chat"](TINY / "exercises", tmp_path, "center", "staircase")]
    assert lines[0] == "✗ center: not yet right"
    assert "✓ staircase: solved" in lines


def test_what_has_no_tests_is_not_solved() -> None:
    assert verdict_of(ExerciseResult("center", "basics", 0, 2.0)).state == "unsolved"


def test_a_fault_of_the_grader_is_no_verdict_on_a_student() -> None:
    assert verdict_of(result(found("passed"), found("grader_error"))).faulty
    assert not verdict_of(result(found("failed"))).faulty


@pytest.mark.parametrize("status", WORDINGS)
def test_each_way_to_end_has_words_of_three_lengths(status: TestStatus) -> None:
    wording = verdict_of(result(found(status))).findings[-1].wording
    assert 0 < len(wording.word) <= len(wording.sentence)
    assert wording.phrase
    assert wording.sign


def test_a_mistake_is_named_once_however_many_tests_it_fails() -> None:
    same = {"mistake": "Divides by n", "hint": "By what?"}
    verdict = verdict_of(result(found("failed", **same), found("error", **same)))
    assert [mistake.heading for mistake in verdict.mistakes] == ["Divides by n"]


def test_one_picture_is_the_best_and_it_is_the_largest() -> None:
    small, large = (Picture(((1.0,) * n,), ((2.0,) * n,), ((True,) * n,)) for n in (2, 5))
    verdict = verdict_of(result(*(found("failed", picture=p) for p in (small, large, large))))
    assert [finding.is_best_picture for finding in verdict.findings[2:]] == [False, True, False]


def test_what_was_solved_before_is_lost_only_where_it_is_wrong_now() -> None:
    assert verdict_of(result(found("failed")), solved_before=True).lost
    assert not verdict_of(result(found("passed")), solved_before=True).lost
    assert not verdict_of(result(found("failed"))).lost


# --- rules ---------------------------------------------------------------------------------------


def test_a_rule_stands_below_the_reason_and_is_quoted_once() -> None:
    dtype = {"dtype": "The weights keep the dtype."}
    first, second = (
        found("failed", message="got float32", case="large", rules=dtype),
        found("error", message="it raised", rules={"large": "±1000 will do."}),
    )
    told = [f.message for f in verdict_of(result(first, first, second)).wrong]
    assert told == [
        "[large] got float32\nThe rule 'dtype': The weights keep the dtype.",
        "[large] got float32",
        "it raised\nThe rule 'large': ±1000 will do.",
    ]


def quoted_below(*tests: TestResult) -> list[list[str]]:
    return [[*finding.rules] for finding in verdict_of(result(*tests)).wrong]


def rules(*keys: str) -> dict[str, str]:
    return {key: f"The sentence of {key}." for key in keys}


def test_one_unknown_cause_is_one_rule() -> None:
    several = rules("shorter", "computes", "causal")
    assert quoted_below(found("failed", rules=several)) == [["shorter"]]


def test_a_rule_that_is_quoted_already_may_explain_the_next_failure_too() -> None:
    first, second = rules("computes", "causal"), rules("shorter", "computes")
    tests = found("failed", rules=first), found("failed", rules=second)
    assert quoted_below(*tests) == [["computes"], []]
    assert quoted_below(*tests[::-1]) == [["shorter"], ["computes"]]


def test_a_named_mistake_is_sure_of_all_its_rules() -> None:
    named = {"mistake": "M", "hint": "H?", "rules": rules("computes", "causal")}
    assert quoted_below(found("failed", **named), found("error", **named)) == [
        ["computes", "causal"],
        [],
    ]


def test_what_every_statement_says_is_told_as_what_was_asked_for() -> None:
    rules = {"computes": "Subtract the mean.\n    x - x.mean()"}
    (told,) = verdict_of(result(found("failed", message="no", rules=rules))).wrong
    assert told.message == "no\nThe statement: Subtract the mean.\n    x - x.mean()"


def test_of_a_mistake_that_was_made_elsewhere_no_rule_is_told() -> None:
    wrong = found("failed", message="no", mistake="M", follows="mean", rules={"dtype": "Keep it."})
    (told,) = verdict_of(result(wrong)).wrong
    assert told.message == "no"


def test_what_only_grades_look_at_is_told_once_all_else_passed() -> None:
    left = {"large": "±1000 will do."}
    passed, failed = found("passed"), found("failed", message="no")

    def of(*tests: TestResult) -> str:
        return verdict_of(msgspec.structs.replace(result(*tests), unchecked=left)).left_unchecked

    assert of(passed) == "Graded, not checked here:\n  large: ±1000 will do."
    assert of(passed, failed) == ""
    assert verdict_of(result(passed)).left_unchecked == ""
