"""The tolerances that a test may use, with the reason for each width.

A student's number agrees with the reference's if |theirs - ours| <= atol + rtol * |ours|. A
tolerance covers the differences between right answers on any processor, and little more. `grader
audit` measures the error of every known answer, and reports errors between a third of the tolerance
and three times the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """The largest difference allowed: `rtol` times the reference's number, plus `atol`."""

    rtol: float
    atol: float

    def holds(self, theirs: Tensor, ours: Tensor) -> bool:
        """Whether two tensors of the same shape agree in all elements; NaN equals NaN."""
        return torch.allclose(theirs, ours, self.rtol, self.atol, equal_nan=True)

    def __mul__(self, times: float) -> Tolerance:
        """This tolerance, widened by a factor."""
        return Tolerance(times * self.rtol, times * self.atol)


# The default tolerances by dtype. They equal those of `torch.testing.assert_close`, except that
# those for 16-bit numbers are wider, since a sum of a few such numbers loses a digit.
ROUNDING = {
    torch.float64: Tolerance(1e-7, 1e-7), torch.float32: Tolerance(1.3e-6, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3), torch.bfloat16: Tolerance(1e-2, 1e-3),
}  # fmt: skip

# For several matrix products in a row, or angles of many radians: right answers use different
# orders of computation, and differ by up to 2e-5 in float32.
REORDERED = Tolerance(1e-5, 6e-5)

# For numbers that a statement gives with four decimals: rounding alone changes them by up to 5e-5.
PRINTED = Tolerance(0.0, 3e-4)

# For scores of several hundred: near 1000, neighbouring numbers of float32 differ by 6e-5, and exp
# turns such an error of a score into a relative error of the weights.
LARGE_SCORES = Tolerance(1e-3, 1e-3)

# For rows of numbers near 1000 that differ by about 1: the error of a mean is a step of float32,
# which is 6e-5 there. If the variance is computed as the mean of squares minus the square of the
# mean, its error is ten times this tolerance.
LARGE_ROWS = Tolerance(0.0, 1e-2)

# For GELU: the tanh approximation, used in many books, differs from the exact GELU by up to 4.7e-4.
# Other curves, like x · sigmoid(1.702 x), differ by 2e-2.
ROUGHLY_GELU = Tolerance(0.0, 1.6e-3)

# For slopes, measured as a quotient of small differences. The division amplifies the rounding of
# float64, and the slope of the tanh approximation of GELU differs by 2e-3 from the exact slope. If
# a result was rounded to float32, the measured slope is zero or far too large.
SLOPES = Tolerance(0.0, 1e-2)

# For gradients: rounding errors of both the forward and the backward pass add up.
GRADIENTS = Tolerance(1e-4, 1e-5)

# To decide whether two values are the same. They may be the results of a submission and of a known
# mistake, the results with two sets of weights, or an argument and its recording from another
# machine. No points depend on this tolerance.
RECOGNISED = Tolerance(1e-4, 1e-5)

# For an output that must stay the same after a change of inputs on which it must not depend.
# A different order of sums on some processors changes it by up to 6e-6. A leak from the future or
# from another row changes it by 3e-2 or more.
UNMOVED = Tolerance(1e-4, 1e-4)

# To detect that a float64 result passed through float32. Right answers to an ordinary formula
# differ by less than 1e-13. A number that was rounded to float32 differs by up to 6e-8, and the
# mean of many such numbers by 1e-9.
FLOAT64 = Tolerance(1e-11, 1e-11)

# The same where right answers have fewer digits: it tolerates an epsilon of 1e-8 that some answers
# add to a sum. Float32 exceeds it only if the test magnifies its error: by inputs that nearly
# cancel, or by a factor on both results.
DIGITS = Tolerance(2e-8, 2e-8)

# The same for an error of up to 1e-9; magnify the error of float32 here, too.
ALL_DIGITS = Tolerance(3e-9, 3e-9)


def furthest_share(p: float, count: int) -> float:
    """The largest plausible difference between `p` and the share of entries that dropout drops.

    Each of `count` entries is dropped with probability `p`. The limit is 6.3 standard deviations,
    plus 1 / `count`, the smallest step of the share. A right answer exceeds the limit less than
    once in a billion times.
    """
    return 6.3 * math.sqrt(p * (1 - p) / count) + 1 / count
