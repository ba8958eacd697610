"""What a test of float64 takes for float64: results that rise and curve by very small steps."""

import math
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from grader.course.tensors import Make
from grader.feedback import margins
from grader.testing import (
    assert_agrees_to_float64,
    assert_curves_in_float64,
    assert_rises_in_float64,
)

X = torch.linspace(-3.0, 3.0, 13, dtype=torch.float64)


def smooth(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def test_an_approximation_in_float64_passes() -> None:
    assert_rises_in_float64(lambda x: smooth(x) + 5e-4 * torch.sin(x), smooth, X)


@pytest.mark.parametrize(
    "through_float32",
    [
        lambda x: smooth(x.float()).double(),
        lambda x: smooth(x).float().double(),
        lambda x: x * torch.sigmoid(x.float()),
    ],
    ids=["what goes in", "what comes out", "one factor"],
)
def test_what_passes_through_float32_does_not(through_float32: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(AssertionError, match=r"float64 carries 16 digits.* such as an eps"):
        assert_rises_in_float64(through_float32, smooth, X)


def test_a_recording_takes_inputs_that_are_near_to_each_other_for_the_same() -> None:
    recorded: list[tuple[Tensor, Tensor]] = []

    def played_back(x: Tensor) -> Tensor:
        for at, result in recorded:
            if torch.allclose(at, x):
                return result
        recorded.append((x, smooth(x)))
        return recorded[-1][1]

    assert_rises_in_float64(smooth, played_back, X)


SMALL = torch.linspace(2e-4, 5e-4, 13, dtype=torch.float64)


def exact(x: Tensor) -> Tensor:
    return 4e8 * x * (1 + torch.erf(x / math.sqrt(2))) / 2


def by_tanh(x: Tensor) -> Tensor:
    return 4e8 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def test_a_gelu_in_float64_has_the_curvature_of_float64() -> None:
    assert_curves_in_float64(lambda x: 4e8 * x * torch.special.ndtr(x), exact, SMALL)


def test_a_gelu_by_tanh_has_it_too() -> None:
    assert_curves_in_float64(by_tanh, exact, SMALL)


@pytest.mark.parametrize(
    "through_float32",
    [
        lambda x: exact(x.float()).double(),
        lambda x: exact(x).float().double(),
        lambda x: 4e8 * x * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0)))) / 2,
    ],
    ids=["what goes in", "what comes out", "a constant"],
)
def test_a_gelu_through_float32_has_not(through_float32: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(AssertionError, match="float64 carries 16 digits"):
        assert_curves_in_float64(through_float32, exact, SMALL)


# --- numbers of order one ------------------------------------------------------------------------

ROWS = Make("float64", "mean", "tests").normal(rows=40, columns=50, dtype=torch.float64)


@pytest.mark.parametrize(
    ("theirs", "passes"),
    [
        (lambda x: x.sum() / x.numel(), True),
        (lambda x: x.mean(0).mean(), True),
        (lambda x: x.float().mean().double(), False),
        (lambda x: x.mean().float().double(), False),
        (lambda x: sum(x.flatten().tolist()[::-1]) / x.new_tensor(x.numel()), True),
    ],
    ids=["a sum", "means of means", "what goes in", "what comes out", "backwards"],
)
def test_a_mean_of_order_one_needs_no_magnifying(
    theirs: Callable[[Tensor], Tensor], passes: bool
) -> None:
    for x in (ROWS, ROWS + 1, ROWS[:2, :3], 0.1 * ROWS):
        expected = nullcontext() if passes else pytest.raises(AssertionError, match="16 digits")
        with margins.listening() as found, expected:
            assert_agrees_to_float64(theirs(x), x.mean())
        assert not any(margin.doubtful for margin in found)
