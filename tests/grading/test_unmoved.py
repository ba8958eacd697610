"""What is said where a result moves and should not: the reason, and no other."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from grader.testing import assert_batch_rows_do_not_mix, assert_causal

X = torch.linspace(-3.0, 3.0, 24, dtype=torch.float64).reshape(2, 4, 3)


def running(x: Tensor) -> Tensor:
    return x.cumsum(-2)


def sees_ahead(x: Tensor) -> Tensor:
    return x + x.flip(-2)


def mixes(x: Tensor) -> Tensor:
    return x - x.mean(0)


def at_random(x: Tensor) -> Tensor:
    return running(x) + torch.rand_like(x)


def no_number(x: Tensor) -> Tensor:
    return running(x) * torch.nan


def test_what_moves_nowhere_passes() -> None:
    assert_causal(running, X)
    assert_batch_rows_do_not_mix(running, X)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (sees_ahead, "outputs of the first token changed when only later tokens did: they see"),
        (at_random, "called twice with the same input, your code gives two different results"),
        (no_number, "the result has NaN"),
    ],
)
def test_the_future_is_blamed_where_it_is_seen(
    answer: Callable[[Tensor], Tensor], told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_causal(answer, X)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (mixes, "the output of a batch row changed when only another row's input did"),
        (at_random, "called twice with the same input, your code gives two different results"),
        (no_number, "the result has NaN"),
    ],
)
def test_another_row_is_blamed_where_it_is_seen(
    answer: Callable[[Tensor], Tensor], told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_batch_rows_do_not_mix(answer, X)


def test_several_tokens_are_several() -> None:
    def sees_the_last(x: Tensor) -> Tensor:
        return torch.cat([x[:, :2], x[:, 2:3] + x[:, 3:], x[:, 3:]], dim=1)

    with pytest.raises(AssertionError, match="outputs of the first 3 tokens changed"):
        assert_causal(sees_the_last, X)
