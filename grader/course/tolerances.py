"""How near is near enough: every tolerance that a test may name, and why it is as wide as it is.

A number agrees if |theirs - ours| <= atol + rtol * |ours|. A tolerance is wide enough for what
right answers differ by on any processor, and no wider: `grader audit` measures how near every
known answer comes to it, and finds fault with one between a third of it and three times it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """What rounding may put between two numbers: relative to ours, and in any case."""

    rtol: float
    atol: float

    def holds(self, theirs: Tensor, ours: Tensor) -> bool:
        """Whether it holds for all elements of two tensors of one shape; NaN is like NaN."""
        return torch.allclose(theirs, ours, self.rtol, self.atol, equal_nan=True)

    def __mul__(self, times: float) -> Tolerance:
        """As wide as this one, so many times."""
        return Tolerance(times * self.rtol, times * self.atol)


# What a test asks for that names none: the tolerances of `torch.testing.assert_close`, by dtype.
# Sixteen bits get more, as a sum of a few terms loses a digit there.
ROUNDING = {
    torch.float64: Tolerance(1e-7, 1e-7), torch.float32: Tolerance(1.3e-6, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3), torch.bfloat16: Tolerance(1e-2, 1e-3),
}  # fmt: skip

# Several products in a row, or angles of many radians: right answers compute them in another
# order, and differ by up to 2e-5 in float32.
REORDERED = Tolerance(1e-5, 6e-5)

# Numbers that a statement prints with four decimals: those alone are off by up to 5e-5.
PRINTED = Tolerance(0.0, 3e-4)

# Scores of hundreds: near 1000 a step of float32 is 6e-5, and exp makes it a part of the weight.
LARGE_SCORES = Tolerance(1e-3, 1e-3)

# Rows around 1000 that differ by about 1: a mean is off by a step of float32, which is 6e-5 there.
# What subtracts the square of the mean from the mean of squares is off by ten times this much.
LARGE_ROWS = Tolerance(0.0, 1e-2)

# A GELU by tanh, which many books have for the exact one, is off by up to 4.7e-4. Another curve,
# like x · sigmoid(1.702 x), is off by 2e-2.
ROUGHLY_GELU = Tolerance(0.0, 1.6e-3)

# How a result rises along with its input: noise of float64 is made larger by the division, and a
# GELU by tanh is off by 2e-3. What passes through float32 does not rise at all, or by far too much.
SLOPES = Tolerance(0.0, 1e-2)

# Gradients go through the formula twice.
GRADIENTS = Tolerance(1e-4, 1e-5)

# Two computations are one and the same: the mistake that a submission makes, the weight that plays
# a role, the argument that was recorded elsewhere. Nothing is graded by it.
RECOGNISED = Tolerance(1e-4, 1e-5)

# How far an output may move when nothing changed that it may depend on. Rounding moves it by up
# to 6e-6, by how a processor adds up; a future that leaks, or a neighbour, by 3e-2 or more.
UNMOVED = Tolerance(1e-4, 1e-4)

# Digits that float64 has and float32, which rounds to 6e-8, has not. There is room for 1e-8 added
# to a sum, as some do to be on the safe side; where nobody has a reason to, there is less.
DIGITS = Tolerance(2e-8, 2e-8)
ALL_DIGITS = Tolerance(3e-9, 3e-9)


def furthest_share(p: float, count: int) -> float:
    """How far from `p` the share may be of `count` entries that are each dropped with chance `p`.

    Chance alone strays further less than once in a billion times: 6.3 standard deviations, and one
    entry more, since a share comes in steps.
    """
    return 6.3 * math.sqrt(p * (1 - p) / count) + 1 / count
