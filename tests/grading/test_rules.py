"""A test that fails says which rules it found broken; a missed heart costs half of the points."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, TestResult
from grader.wire import SourceText
from tests.support.places import TINY
from tests.support.statements import state_weigh

pytestmark = pytest.mark.usefixtures("one_warm_process")

UNCHANGED = "`scores` stays as it was."
COMPUTES = (
    "Turn each row of scores into weights.\n"
    "    weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])"
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """The tiny course, in which `weigh` states rules and its hidden tests quote them."""
    shutil.copytree(TINY, tmp_path / "tiny")
    course = state_weigh(load_course(tmp_path / "tiny" / "exercises"))
    graders = course.solutions / "graders" / "test_basics.py"
    text = graders.read_text("utf-8")
    for test, rule in (
        ('property("weigh")\ndef test_weigh_leaves', "unchanged"),
        ('stability("weigh")\ndef test_weigh_survives', "large"),
    ):
        assert test in text
        text = text.replace(test, test.replace('"weigh"', f'"weigh", rules=("{rule}",)'))
    graders.write_text(text, "utf-8")
    return course


@pytest.fixture
def graded(course: Course) -> Iterator[Callable[[str], ExerciseResult]]:
    """Grade an answer to `weigh`."""
    with ExitStack() as stack:
        desks: list[Desk] = []

        def grade(lines: str) -> ExerciseResult:
            fresh = load_course(course.folder)
            order = Order(fresh, "s", fresh.tests_of(), only=("weigh",), isolation="weak")
            desks.append(stack.enter_context(order.desk()))
            text = f"import torch\n\ndef weigh(scores):\n{lines}"
            sources = (SourceText("basics.py", (text,)),)
            (result,) = grade_submission(desks[-1], Submission("ada", sources)).exercises
            return result

        yield grade


def named(result: ExerciseResult, part: str) -> TestResult:
    return next(test for test in result.tests if part in test.name)


WEIGHTS = (
    "    e = (scores - scores.amax(dim=-1, keepdim=True)).exp()\n"
    "    weights = e / e.sum(dim=-1, keepdim=True)\n"
)
RIGHT = f"{WEIGHTS}    return weights\n"
IN_PLACE = f"{WEIGHTS}    with torch.no_grad():\n        scores.add_(1.0)\n    return weights\n"
COLUMNS = RIGHT.replace("e.sum(dim=-1", "e.sum(dim=0")
SUMMED = RIGHT.replace("return weights", "return weights.sum(dim=0)")
NAIVE = "    e = scores.exp()\n    return e / e.sum(dim=-1, keepdim=True)\n"


# --- what a test found broken --------------------------------------------------------------------


def test_a_failed_test_has_the_sentences_of_the_rules_that_it_quotes(
    graded: Callable[[str], ExerciseResult],
) -> None:
    result = graded(IN_PLACE)
    assert named(result, "leaves_the_scores").rules == {"unchanged": UNCHANGED}
    assert named(result, "agrees_with").rules == {}


def test_a_test_that_names_no_rule_asks_for_what_is_computed(
    graded: Callable[[str], ExerciseResult],
) -> None:
    result = graded(COLUMNS)
    assert named(result, "agrees_with").rules == {"computes": COMPUTES}


def test_another_shape_breaks_what_is_returned_whatever_the_test_quotes(
    graded: Callable[[str], ExerciseResult],
) -> None:
    result = graded(SUMMED)
    wrong = [test for test in result.tests if test.status == "failed"]
    assert wrong
    for test in wrong:
        assert test.rules == {"returns": "Returns (queries, keys): the weights."}


def test_what_passed_or_was_not_tried_has_broken_nothing(
    graded: Callable[[str], ExerciseResult],
) -> None:
    assert not any(test.rules for test in graded(RIGHT).tests)
    stub = graded("    raise NotImplementedError\n")
    assert {test.status for test in stub.tests} == {"missing"}
    assert not any(test.rules for test in stub.tests)


def several_rules(course: Course, test: str, *rules: str) -> None:
    """Let a hidden test of `weigh` quote these rules."""
    graders = course.solutions / "graders" / "test_basics.py"
    text = graders.read_text("utf-8")
    before = f'("weigh", points=5)\ndef {test}'
    assert before in text
    after = f'("weigh", points=5, rules={rules!r})\ndef {test}'
    graders.write_text(text.replace(before, after), "utf-8")


def test_a_named_mistake_leaves_only_the_rules_that_it_breaks(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    several_rules(course, "test_weigh_agrees_with_the_reference", "large", "computes")
    wrong = named(graded(COLUMNS), "agrees_with")
    assert wrong.mistake == "Each column sums to one"
    assert wrong.rules == {"computes": COMPUTES}


def test_without_a_name_every_rule_of_the_test_may_be_broken(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    several_rules(course, "test_weigh_agrees_with_the_reference", "large", "computes")
    wrong = named(graded("    return scores / 3\n"), "agrees_with")
    assert wrong.mistake is None
    assert [*wrong.rules] == ["large", "computes"]


# --- the heart -----------------------------------------------------------------------------------


def put_at_heart(course: Course, *rules: str) -> None:
    path = course.folder / "course.toml"
    text = path.read_text("utf-8")
    assert 'name = "weigh"' in text
    heart = f'name = "weigh"\nheart = {[*rules]!r}'.replace("'", '"')
    path.write_text(text.replace('name = "weigh"', heart), "utf-8")


def test_who_misses_the_heart_keeps_half_of_the_points_at_most(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    before = graded(NAIVE)
    assert before.points > before.max / 2
    put_at_heart(course, "large")
    result = graded(NAIVE)
    assert result.points == pytest.approx(result.max / 2, abs=1e-3)
    assert sum(test.points for test in result.tests) == pytest.approx(result.points)
    heart = named(result, "heart")
    assert (heart.status, heart.points) == ("failed", 0)
    assert heart.rules == {"large": "Scores may be as large as ±1000."}


def test_who_keeps_to_the_heart_loses_only_what_else_is_wrong(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    without = graded(IN_PLACE)
    put_at_heart(course, "large")
    assert graded(IN_PLACE).points == without.points
    assert graded(RIGHT).points == graded(RIGHT).max


def test_who_never_got_as_far_as_the_heart_has_not_shown_it(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    # A test of the lowest rungs keeps the heart's test from being run; what was earned is little.
    put_at_heart(course, "large")
    result = graded(COLUMNS)
    assert named(result, "survives").status == "skipped"
    assert result.points <= result.max / 2
    assert not [test for test in result.tests if test.name == "heart"]  # it cost nothing more


def test_a_heart_that_no_hidden_test_looks_at_is_refused(
    course: Course, graded: Callable[[str], ExerciseResult]
) -> None:
    put_at_heart(course, "dtype")
    why = r"course\.toml:\d+: heart: the statement of weigh has no rule called 'dtype'"
    with pytest.raises(CallError, match=why):
        graded(RIGHT)
