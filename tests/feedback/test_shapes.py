"""Torch's errors about sizes, in a sentence of ours: whose sizes, and what they mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from grader.course.course import Course
from grader.feedback.shapes import explained
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.intake import Submission
from grader.wire import SourceText

ONE, OTHER = torch.ones(3, 4), torch.ones(3, 6)
BATCH = torch.ones(2, 3, 4)

ERRORS: dict[str, tuple[Callable[[], object], str]] = {
    "a product of matrices": (lambda: ONE @ OTHER, "4 is not 3"),
    "a layer": (lambda: torch.nn.Linear(6, 4)(ONE), "4 is not 6"),
    "a product of batches": (lambda: BATCH @ BATCH, "4 is not 3"),
    "a matrix and a vector": (lambda: ONE @ torch.ones(3), "4 is not 3"),
    "two vectors": (lambda: torch.ones(3) @ torch.ones(4), "3 is not 4"),
    "a sum": (lambda: ONE + OTHER, "or one of them 1, and 4 is not 6"),
    "expand": (lambda: ONE.expand(5, 4), "3 is neither 1 nor 5"),
    "view": (lambda: ONE.view(3, 5), "the sizes (3, 5) do not multiply to 12"),
    "reshape": (lambda: ONE.reshape(2, -1, 5), "the sizes (2, -1, 5) do not multiply to 12"),
    "an axis": (lambda: ONE.sum(2), "there is no axis 2: the axes are 0 to 1"),
    "a transposed axis": (lambda: ONE.transpose(-3, 0), "there is no axis -3"),
    "cat": (lambda: torch.cat([ONE, OTHER]), "joined along axis 0"),
    "max with dim": (lambda: ONE - ONE.max(dim=-1), "you want its .values"),  # type: ignore[operator]
    "max with dim, called": (lambda: ONE.max(dim=-1).exp(), "you want its .values"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize(("fails", "sentence"), ERRORS.values(), ids=ERRORS.keys())
def test_what_torch_says_of_sizes_is_explained(fails: Callable[[], object], sentence: str) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError, AttributeError)) as raised:
        fails()
    told = explained(str(raised.value), {}, {})
    assert told is not None
    assert sentence in f"{told[0].lower()}{told[1:]}"
    assert told.endswith(".")


@pytest.mark.parametrize(
    ("operands", "gap"),
    [({"x": (3, 4)}, (4, 3)), ({"x": (3, 4), "total": (3,)}, (4, 3)), ({"x": (2, 5, 4)}, (4, 5))],
)
def test_a_sum_over_an_axis_reads_of_keepdim(
    operands: dict[str, tuple[int, ...]], gap: tuple[int, int]
) -> None:
    text = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton"
    assert "keepdim=True keeps its axis" in str(explained(text.format(*gap), operands, {}))
    assert "keepdim=True keeps its axis" in str(explained(text.format(*gap[::-1]), operands, {}))


@pytest.mark.parametrize(
    ("operands", "gap"),
    [
        ({"x": (3, 4), "y": (3, 6)}, (4, 6)),
        ({"x": (5, 7), "positions": (9, 7)}, (5, 9)),
        ({}, (4, 3)),
    ],
)
def test_sizes_that_no_sum_explains_read_nothing_of_keepdim(
    operands: dict[str, tuple[int, ...]], gap: tuple[int, int]
) -> None:
    text = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton"
    assert "keepdim" not in str(explained(text.format(*gap), operands, {}))


def test_other_errors_are_left_as_they_are() -> None:
    assert explained("division by zero", {"x": (3, 4)}, {"tokens": 3}) is None


def test_each_size_is_told_with_what_it_means() -> None:
    with pytest.raises(RuntimeError) as raised:
        ONE @ OTHER
    told = explained(
        str(raised.value), {"q": (3, 4), "b": (6,)}, {"tokens": 3, "d_in": 4, "d_k": 4, "d_out": 5}
    )
    assert str(told).endswith("Here q is (3, 4) and b is (6,) (tokens = 3, d_in or d_k = 4).")


def told_of(desk: Desk, text: str, exercise: str) -> str:
    grade = grade_submission(desk, Submission("ada", (SourceText("ada.py", (text,)),)))
    tests = next(one.tests for one in grade.exercises if one.name == exercise)
    return next(test.message for test in tests if test.message)


def test_a_verdict_names_what_the_line_used(desk: Desk, tiny: Course) -> None:
    text = (
        "import torch\n"
        "def center(x):\n"
        "    means = torch.zeros(x.shape[-1] + 1)\n"
        "    other = 3\n"
        "    return (x + other) - means\n"
    )
    told = told_of(desk, text, "center").splitlines()
    assert told[1] == "  return (x + other) - means"
    assert "Here x is (" in told[2]
    assert "and means is (" in told[2]
    assert "other" not in told[2]


def test_a_layer_is_told_by_its_weight(desk: Desk) -> None:
    text = (
        "from torch import nn\n"
        "class Projection(nn.Module):\n"
        "    def __init__(self, d_in, d_out, bias=False):\n"
        "        super().__init__()\n"
        "        self.linear = nn.Linear(d_in + 1, d_out)\n"
        "    def forward(self, x):\n"
        "        return self.linear(\n"
        "            x\n"
        "        )\n"
    )
    told = told_of(desk, text, "Projection")
    assert "Here self.linear.weight is (" in told
    assert " and x is (" in told
    assert "d_in = " in told


def test_a_submission_cannot_make_it_say_much(desk: Desk) -> None:
    names = [f"{'n' * 90}{number}" for number in range(9)]
    text = (
        "import torch\n"
        "def center(x):\n"
        + "".join(f"    {name} = torch.zeros({number + 2})\n" for number, name in enumerate(names))
        + f"    return ({' + '.join(names)})\n"
    )
    assert len(told_of(desk, text, "center")) < 2_000
