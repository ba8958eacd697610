"""Where no known mistake fits, an answer is told how it behaves otherwise than a right one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import ExerciseResult
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support.places import TINY
from tests.support.seats import real_order


def result_of(desk: Desk, text: str, exercise: str) -> ExerciseResult:
    graded = grade_submission(desk, Submission("ada", (SourceText("ada.py", (text,)),)))
    return next(result for result in graded.exercises if result.name == exercise)


def behaviour(result: ExerciseResult) -> tuple[str, ...]:
    """The sentences, without the name of the check that showed it."""
    told = (said for test in result.tests for said in test.behaviour)
    named = "^In the check “.*?”(?: \\[.*?\\])?: (.)"
    return tuple(re.sub(named, lambda found: found[1].upper(), said) for said in told)


ODD = {
    "return x * 1.7 - x.mean()": (
        "If you add 1.5 to all of `x`, the result should stay as it is; yours does not.",
    ),
    "return x.detach() * 1.7 - 1.7 * x.mean().detach()": (
        "No gradient reaches `x`: what cuts the result off from it?",
    ),
    "return 1.7 * x - 1.7 * x.mean().detach() + 0 * x.mean()": (
        "The gradient that reaches `x` is not the slope of your own result: is a part of the "
        "computation cut off, as by `.detach()`, `.data` or `torch.no_grad()`?",
    ),
    "return 1.3 * (x - x[0])": (
        "When `x` changes at position 0 of `tokens`, your result at position 0 of `tokens` stays "
        "as it is; it should change.",
    ),
    "return x + torch.rand(len(x))": (
        "Called twice with the same input, your code gives two different results.",
    ),
}


@pytest.mark.parametrize(
    ("body", "told"), ODD.items(), ids=["added", "detached", "half detached", "first", "rand"]
)
def test_what_the_answer_does_is_told_where_it_has_no_name(
    desk: Desk, body: str, told: tuple[str, ...]
) -> None:
    result = result_of(desk, f"import torch\ndef center(x):\n    {body}\n", "center")
    assert behaviour(result)[: len(told)] == told
    assert result.points == 0


def test_a_known_mistake_is_told_by_its_name_alone(desk: Desk) -> None:
    result = result_of(desk, "def center(x):\n    return x + x.mean()\n", "center")
    assert {t.mistake for t in result.tests if t.status == "failed"} == {"The mean is added"}
    assert behaviour(result) == ()


def test_where_an_exception_came_instead_of_a_result_nothing_is_said_of_results(desk: Desk) -> None:
    """It raises for the sizes of some tests, and gives something for others."""
    text = "def center(x):\n    y = x{} if len(x) != 3 else x\n    return y.reshape(-1) * 1.7\n"
    result = result_of(desk, text.format(".view(-1, 2)"), "center")
    first = next(test for test in result.tests if test.status != "passed")
    assert (first.status, behaviour(result)) == ("error", ())
    assert behaviour(result_of(desk, text.format(".view(-1)"), "center"))


TWO = "[1.5, -2.0]"
SPREAD = "(x - x.mean()) / x.std(correction=0){}"


def test_what_is_so_for_one_input_alone_is_no_fact(warm: Warm, tmp_path: Path) -> None:
    """Two numbers with the deviation one are 1 and -1: neither seems to depend on the other."""
    copy = shutil.copytree(TINY, tmp_path / "tiny")
    for path, old, new in (
        (copy / "solutions" / "basics.py", "x - x.mean()", SPREAD.format("")),
        (copy / "solutions" / "mistakes" / "basics.py", "x - middle", SPREAD.format("")),
        (copy / "exercises" / "checks" / "test_basics.py", "[1.0, 2.0, 6.0]", TWO),
        (copy / "exercises" / "checks" / "test_basics.py", "[-2.0, -1.0, 3.0]", "[1.0, -1.0]"),
    ):
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
    course = load_course(copy / "exercises")
    order = Order(course, "a seed", course.checks_of(["center"]), ("center",), isolation="weak")
    answer = f"def center(x):\n    return {SPREAD.format('.clamp(min=2.0)')}\n"
    with sharing(warm), order.desk() as desk:
        said = behaviour(result_of(desk, answer, "center"))
    assert said
    assert not [one for one in said if "position" in one]


def test_a_right_answer_is_told_nothing(desk: Desk, right: str) -> None:
    assert behaviour(result_of(desk, right, "center")) == ()


@pytest.mark.parametrize("values", ['w.to("meta")', "w[:, :0]", "w[:0]", "w.sum()", "w.long()"])
def test_a_result_without_values_is_graded_all_the_same(warm: Warm, values: str) -> None:
    order = real_order("v1_weights_from_v2")
    text = (
        "def v1_weights_from_v2(state):\n"
        f"    return {{n.removesuffix('.weight'): {values} for n, w in state.items()}}\n"
    )
    with sharing(warm), order.desk() as desk:
        assert result_of(desk, text, "v1_weights_from_v2").points == 0


RANDOM = """
import torch
from torch import nn
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.drop = nn.Dropout(0.2)
    def forward(self, x):
        scores = self.q(x) @ self.k(x).T / self.k(x).shape[-1] ** 0.5
        return self.drop(scores.softmax(-1)) @ self.v(x)
"""


def test_a_module_that_is_random_in_training_is_told_so(warm: Warm) -> None:
    order = real_order("SelfAttention_v2")
    with sharing(warm), order.desk() as desk:
        result = result_of(desk, RANDOM, "SelfAttention_v2")
    assert "In training mode, two calls" in behaviour(result)[0]


STEEP = "return torch.sin(100 * x) * 1.7"
REMEMBERS = RANDOM.replace("nn.Dropout(0.2)", "nn.BatchNorm1d(d_out, affine=False, momentum=0.5)")


def test_a_gradient_that_is_right_is_not_blamed(desk: Desk, warm: Warm) -> None:
    """Of a result too steep to be measured, and of a module that remembers what it saw."""
    steep = f"import torch\ndef center(x):\n    {STEEP}\n"
    said = [*behaviour(result_of(desk, steep, "center"))]
    with sharing(warm), real_order("SelfAttention_v2").desk() as other:
        said += behaviour(result_of(other, REMEMBERS, "SelfAttention_v2"))
    assert said
    assert not any("slope" in sentence for sentence in said)


def test_what_is_told_comes_from_a_process_that_has_met_no_hidden_test(desk: Desk) -> None:
    """It could put the inputs of hidden tests into what it does, bit by bit."""
    text = (
        "import torch\nmet = []\ndef center(x):\n    met.append(len(x))\n"
        "    if len(met) > 1 and met[0] != met[1]:\n        return x + torch.rand(len(x))\n"
        "    return 1.7 * (x - x.mean())\n"
    )
    # Other tests pass other sizes; those who ask how it behaves pass one.
    assert not any("two different" in said for said in behaviour(result_of(desk, text, "center")))


MIXED = """
from torch import nn
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT
        return 1.3 * (scores / 2.1).softmax(-1).tril(1) @ self.W_value(x)
"""


def test_a_module_that_sees_the_future_is_told_so_whatever_else_is_wrong(warm: Warm) -> None:
    order = real_order("CausalAttention")
    with sharing(warm), order.desk() as desk:
        result = result_of(desk, MIXED, "CausalAttention")
    assert behaviour(result)[0] == (
        "It sees the future: when `x` changes at position 1 of `num_tokens` only, your result "
        "changes at position 0."
    )


NO_MASK = "def scaled_dot_product_attention(q, k, v, mask=None):\n    {}\n"
BLIND = "return ((q @ k.mT) / k.shape[-1] ** 0.5).softmax(-1) @ v * {}"


def told_by_check(result: ExerciseResult) -> dict[str, tuple[str, ...]]:
    return {test.title: test.behaviour for test in result.tests if test.behaviour}


def test_what_a_masked_call_shows_stands_under_a_check_with_a_mask(warm: Warm) -> None:
    """The checks without a mask fail too, and come first."""
    with sharing(warm), real_order("scaled_dot_product_attention").desk() as desk:
        text = NO_MASK.format(BLIND.format("1.3"))
        told = told_by_check(result_of(desk, text, "scaled_dot_product_attention"))
        sees = [title for title, lines in told.items() if any("mask" in line for line in lines)]
        assert sees == ["A batch gives the same numbers as the reference, with a mask and without"]


def test_where_that_check_passed_the_sentence_names_it(desk: Desk) -> None:
    text = "def center(x):\n    return x - x.mean() if len(x) < 4 else x - x[0]\n"
    (lines,) = told_by_check(result_of(desk, text, "center")).values()
    assert lines[0].startswith("In the check “")


def test_rows_of_a_batch_are_called_so(warm: Warm) -> None:
    text = (
        "def scaled_scores(queries, keys):\n"
        "    return (queries - queries.mean(0)) @ keys.mT / 1.7\n"
    )
    with sharing(warm), real_order("scaled_scores").desk() as desk:
        said = behaviour(result_of(desk, text, "scaled_scores"))
    assert said
    assert not any("`batch`" in line for line in said)


THROWN_AWAY = (
    "ada.py line 4: `mul` gives a new tensor and does not change the old tensor, but this line "
    "discards the new tensor: give it a name, as in `x = …`"
)
NEGATED = "import torch\ndef center(x):\n    y = x - x.mean()\n    {}\n    return {}\n"


@pytest.mark.parametrize("line", ["y.mul(-1)", "torch.mul(y, -1)"])
def test_a_result_that_is_thrown_away_is_told_with_its_line(desk: Desk, line: str) -> None:
    graded = result_of(desk, NEGATED.format(line, "y + 1.7 * x.mean()"), "center")
    assert behaviour(graded)[0] == THROWN_AWAY


def test_a_mistake_with_a_name_is_told_what_it_throws_away_as_well(desk: Desk) -> None:
    graded = result_of(desk, NEGATED.format("y.mul(-1)", "x + x.mean()"), "center")
    assert {t.mistake for t in graded.tests if t.status == "failed"} == {"The mean is added"}
    assert behaviour(graded) == (THROWN_AWAY,)


@pytest.mark.parametrize(
    "line",
    [
        "y.mul_(1.7)",
        "torch.mul(y, 1.7, out=y)",
        "y = y.mul(1.7)",
        "seen = set(); seen.add(1.7)",
        "import re; re.sub('a', 'b', 'c')",
        "center.view = print; center.view(y)",
        "try:\n        y.view(-1)\n    except RuntimeError:\n        y = y.contiguous()",
    ],
)
def test_what_changes_its_tensor_or_is_kept_is_not_told(desk: Desk, line: str) -> None:
    graded = result_of(desk, NEGATED.format(line, "1.7 * y"), "center")
    assert graded.points == 0
    assert not any("a new tensor" in said for said in behaviour(graded))


def test_a_right_answer_may_throw_away_what_it_likes(desk: Desk) -> None:
    graded = result_of(desk, NEGATED.format("y.mul(-1)", "y"), "center")
    assert (graded.points, behaviour(graded)) == (graded.max, ())


def test_only_what_is_one_axis_before_and_after_is_called_the_future(warm: Warm) -> None:
    """Scores of hidden keys that are set to zero leak, and not from a later sentence."""
    text = (
        "def masked_softmax(scores, mask):\n"
        "    return scores.masked_fill(mask, 0.0).softmax(-1) * 1.3\n"
    )
    with sharing(warm), real_order("masked_softmax").desk() as desk:
        said = behaviour(result_of(desk, text, "masked_softmax"))
    assert said
    assert not any("sees the future" in sentence for sentence in said)
