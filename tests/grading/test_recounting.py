"""An answer's assertions and prints cost no points; work that is hidden in them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from grader.course.course import Course
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import ExerciseResult
from grader.wire import SourceText
from tests.support.seats import real_order

Graded = Callable[[str], ExerciseResult]

pytestmark = pytest.mark.usefixtures("one_warm_process")


@pytest.fixture
def center(tiny: Course) -> Iterator[Graded]:
    """Grade an answer to `center`, whose number of operations must not grow with its input."""
    order = Order(tiny, "s", tiny.tests_of(), only=("center",), isolation="weak")
    with order.desk() as desk:
        yield lambda text: grade_submission(desk, submission("basics.py", text)).exercises[0]


def submission(file: str, text: str) -> Submission:
    return Submission("x", sources=(SourceText(file, (f"import torch\n{text}",)),))


CHECKS = {
    "an assertion for each number": "for number in left:\n        assert number.isfinite()",
    "printed numbers": "print(*(f'{number.item():.2f}' for number in left))",
    "a check that raises": (
        "if not all(number == number for number in left):\n        raise ValueError('NaN')"
    ),
    "a loop that prints": "for number in left:\n        print(number.item())",
    "a warning": "import warnings\n    warnings.warn(str(left.tolist()))",
    "a log": "import logging\n    logging.info('left: %s', left.tolist())",
    "a debugging switch": "if True:\n        print('left', left.tolist())",
    "a variable that only an assertion reads": (
        "largest = max(number.item() for number in left)\n    assert largest < 1e9, largest"
    ),
    "torch's own assertion": "torch.testing.assert_close(sum(left.tolist()), 0.0, atol=1, rtol=0)",
    "without gradients": "with torch.no_grad():\n        assert all(n.isfinite() for n in left)",
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_a_check_in_a_right_answer_costs_nothing(center: Graded, check: str) -> None:
    text = f"def center(x):\n    left = x - x.mean()\n    {check}\n    return left\n"
    result = center(text)
    assert result.points == result.max, [t.message for t in result.tests]


def test_a_check_in_a_helper_costs_nothing(center: Graded) -> None:
    result = center(
        "def finite(x):\n    for number in x:\n        assert number.isfinite()\n    return x\n"
        "def center(x):\n    return finite(x - x.mean())\n"
    )
    assert result.points == result.max


HIDDEN = {
    "in an assertion that keeps its result": (
        "kept = {}\n"
        "def center(x):\n"
        "    assert kept.update(a=torch.stack([n - x.mean() for n in x])) is None\n"
        "    return kept.pop('a')\n"
    ),
    "in an assertion that leaves its result for later calls": (
        "kept = {}\n"
        "def center(x):\n"
        "    key = tuple(x.shape)\n"
        "    assert kept.update({key: torch.stack([n - x.mean() for n in x])}) is None\n"
        "    return kept[key] if key in kept else x\n"
    ),
    "in what an assertion binds": (
        "def center(x):\n"
        "    assert (left := torch.stack([n - x.mean() for n in x])) is not None\n"
        "    return left\n"
    ),
    "in an assertion whose absence is noticed": (
        "def center(x):\n"
        "    seen = []\n"
        "    assert seen.append(1) is None\n"
        "    return torch.stack([n - x.mean() for n in x]) if seen else torch.zeros_like(x)\n"
    ),
    "in a loop that only prints as well": (
        "def center(x):\n"
        "    left = x.clone()\n"
        "    for n in range(len(x)):\n"
        "        print(n)\n"
        "        left[n] -= x.mean()\n"
        "    return left\n"
    ),
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN.keys())
def test_work_hidden_among_checks_is_counted(center: Graded, text: str) -> None:
    result = center(text)
    takes_no_loop = next(t for t in result.tests if t.name == "test_center_takes_no_loop")
    assert takes_no_loop.status == "failed"


ONLINE = """
def softmax_online(scores, block_size):
    m = torch.full_like(scores[..., :1], -torch.inf)
    z = torch.zeros_like(m)
    for b in scores.split(block_size, -1):
        new = torch.maximum(m, b.amax(-1, keepdim=True))
        z, m = z * torch.exp(m - new) + torch.exp(b - new).sum(-1, keepdim=True), new
    out = torch.exp(scores - m) / z
    {}
    return out
"""
LOOKED_AT = [
    "assert not torch.isnan(out).any()",
    "assert torch.isfinite(out).all(), out",
    "assert ((out.sum(-1) - 1).abs() < 1e-3).all()",
    "print(out.min().item(), out.max())",
    "if out.isnan().any():\n        raise ValueError('NaN')",
    "total = out.sum(-1)\n    assert torch.allclose(total, torch.ones_like(total), atol=1e-3)",
    "note = 'no_dispatch'",
]


def test_a_print_that_already_fails_the_smaller_input_costs_nothing() -> None:
    """All calls are made before a count can fail, so all results can be compared."""
    with real_order("linear_attention").desk() as desk:
        text = """
import torch.nn.functional as F

def linear_attention(queries, keys, values):
    print(keys.tolist())
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    return q @ (k.mT @ values) / (q @ k.sum(1)[..., None])
"""
        (result,) = grade_submission(desk, submission("efficient.py", text)).exercises
        assert result.points == result.max


def test_checks_of_whole_rows_cost_nothing_in_the_kits_own_course() -> None:
    with real_order("softmax_online").desk() as desk:
        for check in LOOKED_AT:
            answer = submission("efficient.py", ONLINE.format(check))
            (result,) = grade_submission(desk, answer).exercises
            assert result.points == result.max, check
