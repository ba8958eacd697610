"""The tolerances that a test may name, with the reason for each width.

A number agrees if |theirs - ours| <= atol + rtol * |ours|. A tolerance covers the differences of
right answers on any processor, and little more. `grader audit` measures the error of every known
answer, and reports errors between a third of the tolerance and three times the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """The largest difference allowed between two numbers: `rtol` times ours, plus `atol`."""

    rtol: float
    atol: float

    def holds(self, theirs: Tensor, ours: Tensor) -> bool:
        """Whether two tensors of the same shape agree in all elements; NaN equals NaN."""
        return torch.allclose(theirs, ours, self.rtol, self.atol, equal_nan=True)

    def __mul__(self, times: float) -> Tolerance:
        """This tolerance, widened by a factor."""
        return Tolerance(times * self.rtol, times * self.atol)


# The default: the tolerances of `torch.testing.assert_close`, by dtype. Those for 16 bits are
# wider, since a sum of a few terms loses a digit there.
ROUNDING = {
    torch.float64: Tolerance(1e-7, 1e-7), torch.float32: Tolerance(1.3e-6, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3), torch.bfloat16: Tolerance(1e-2, 1e-3),
}  # fmt: skip

# For several products in a row, or angles of many radians: right answers compute them in different
# orders, and differ by up to 2e-5 in float32.
REORDERED = Tolerance(1e-5, 6e-5)

# For numbers that a statement prints with four decimals: printing alone errs by up to 5e-5.
PRINTED = Tolerance(0.0, 3e-4)

# For scores of hundreds: near 1000, float32 has steps of 6e-5, and exp turns them into relative
# errors of the weights.
LARGE_SCORES = Tolerance(1e-3, 1e-3)

# For rows around 1000 that differ by about 1: a mean errs by a step of float32, which is 6e-5
# there. The variance as mean of squares minus square of the mean errs by ten times this tolerance.
LARGE_ROWS = Tolerance(0.0, 1e-2)

# For GELU: the tanh approximation, used in many books, differs from the exact GELU by up to 4.7e-4.
# Other curves, like x · sigmoid(1.702 x), differ by 2e-2.
ROUGHLY_GELU = Tolerance(0.0, 1.6e-3)

# For slopes, measured as a quotient of small differences: the division amplifies the rounding of
# float64, and a GELU by tanh differs by 2e-3. A result that passes through float32 has slope zero,
# or far too large a slope.
SLOPES = Tolerance(0.0, 1e-2)

# For gradients, which pass through the formula twice.
GRADIENTS = Tolerance(1e-4, 1e-5)

# For recognising two computations as the same: a submission's mistake, a weight's role, an argument
# that was recorded on another machine. No points depend on it.
RECOGNISED = Tolerance(1e-4, 1e-5)

# For an output whose allowed inputs have not changed. A different order of sums on some processors
# moves it by up to 6e-6; leaks from the future or from another row move it by 3e-2 or more.
UNMOVED = Tolerance(1e-4, 1e-4)

# For digits that float64 has and float32, which rounds to 6e-8, lacks. The first leaves room for an
# epsilon of 1e-8 in a sum, which some answers add; the second is for exercises without such a sum.
DIGITS = Tolerance(2e-8, 2e-8)
ALL_DIGITS = Tolerance(3e-9, 3e-9)


def furthest_share(p: float, count: int) -> float:
    """The largest plausible distance from `p` of the share dropped, of `count` entries.

    Each entry is dropped with probability `p`. The limit is 6.3 standard deviations, plus an entry
    for the steps of the share: chance exceeds it less than once in a billion times.
    """
    return 6.3 * math.sqrt(p * (1 - p) / count) + 1 / count
