"""What is judged by chance errs as seldom as it says."""

from __future__ import annotations

import math

import pytest

from grader.course.tolerances import furthest_share


def chance_of(count: int, dropped: int, p: float) -> float:
    """That just so many of `count` entries are dropped."""
    ways = math.lgamma(count + 1) - math.lgamma(dropped + 1) - math.lgamma(count - dropped + 1)
    return math.exp(ways + dropped * math.log(p) + (count - dropped) * math.log1p(-p))


# 16 sentences in which each token sees itself and those before it, as in the course's tests.
@pytest.mark.parametrize("tokens", [10, 16, 24])
@pytest.mark.parametrize("p", [0.2, 0.3, 0.4, 0.5])
def test_dropout_that_is_right_strays_too_far_less_than_once_in_a_billion(
    tokens: int, p: float
) -> None:
    count = 16 * tokens * (tokens + 1) // 2
    bound = furthest_share(p, count)
    outside = (n for n in range(count + 1) if abs(n / count - p) >= bound)
    assert sum(chance_of(count, n, p) for n in outside) < 1e-9
