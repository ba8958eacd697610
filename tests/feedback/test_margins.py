"""How near a comparison came to its tolerance, for whoever listens."""

from __future__ import annotations

import math

import pytest
import torch

from grader.course.tolerances import Tolerance
from grader.feedback.margins import listening, nearest, note_count
from grader.testing import assert_agrees, assert_rows_sum_to_one

ONES, TENTH = torch.ones(3), Tolerance(rtol=0.0, atol=0.1)


def test_a_margin_is_the_worst_difference_over_its_tolerance() -> None:
    with listening() as heard:
        assert_agrees(ONES + torch.tensor([0.0, 0.01, 0.02]), ONES, within=TENTH)
    (margin,) = heard
    assert margin.ratio == pytest.approx(0.2, rel=1e-3)
    assert not margin.doubtful


@pytest.mark.parametrize(
    ("off", "doubtful"), [(0.03, False), (0.04, True), (0.29, True), (0.31, False)]
)
def test_what_lies_between_a_third_and_three_times_a_tolerance_is_in_doubt(
    off: float, doubtful: bool
) -> None:
    with listening() as heard:
        try:
            assert_agrees(ONES + off, ONES, within=TENTH)
        except AssertionError:
            assert off > 0.1
    assert [margin.doubtful for margin in heard] == [doubtful]


@pytest.mark.parametrize(("count", "doubtful"), [(9, False), (10, False), (12, True), (15, False)])
def test_a_count_is_in_doubt_just_above_what_is_allowed(count: int, doubtful: bool) -> None:
    with listening() as heard:
        note_count(count, 10)
    assert [margin.doubtful for margin in heard] == [doubtful]


def test_nan_is_beyond_any_margin_and_equal_infinities_are_none() -> None:
    infinite = torch.tensor([math.inf, -math.inf, 1.0])
    with listening() as heard:
        assert_agrees(infinite, infinite)
        with pytest.raises(AssertionError):
            assert_agrees(torch.full((3,), math.nan), ONES)
    assert [margin.ratio for margin in heard] == [0.0, math.inf]


def test_the_nearest_is_the_one_in_doubt_or_else_the_one_closest_to_the_edge() -> None:
    with listening() as heard:
        for off in (0.001, 0.02):
            assert_agrees(ONES + off, ONES, within=TENTH)
    assert nearest(heard) == heard[1]
    with listening() as heard:
        note_count(12, 10)
        assert_agrees(ONES + 0.02, ONES, within=TENTH)
    assert nearest(heard) == heard[0]
    assert nearest([]) is None


def test_nobody_hears_what_comes_before_or_after() -> None:
    assert_rows_sum_to_one(torch.full((2, 2), 0.5))
    with listening() as heard:
        assert_rows_sum_to_one(torch.full((2, 2), 0.5))
    assert_agrees(ONES, ONES)
    assert len(heard) == 1
