"""Unit 2, softmax: from scores to weights that are positive and sum to one."""

import torch
from jaxtyping import Float
from torch import Tensor


def normalize_by_sum(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Divide positive scores by their sum, from (tokens,) to (tokens,)."""
    total = scores.sum(dim=-1)  # a single number
    return scores / total


def softmax_naive(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """exp(score) over the sum of all exp(score), from (tokens,) to (tokens,).

    The textbook formula; overflows where exp does (beyond 88 in float32).
    """
    positive = torch.exp(scores)
    total = positive.sum(dim=-1)  # a single number
    return positive / total


def softmax_rows(
    scores: Float[Tensor, "queries keys"],
) -> Float[Tensor, "queries keys"]:
    """Make each row of (queries, keys) a distribution over the keys."""
    positive = torch.exp(scores)
    totals = positive.sum(dim=-1, keepdim=True)  # (queries, 1), one total per query
    return positive / totals


def softmax_stable(scores: Float[Tensor, " ..."], dim: int = -1) -> Float[Tensor, " ..."]:
    """Softmax along `dim`, for any shape and scores of any size, -inf included.

    Shifting a whole slice changes nothing: exp(s - m) / sum exp(s - m) = exp(s) / sum exp(s).
    With m the slice's maximum, the largest exponential is exp(0) = 1 and no sum is zero.
    """
    largest = scores.amax(dim=dim, keepdim=True)  # size 1 along dim
    shifted = scores - largest  # at most 0; -inf stays -inf
    positive = torch.exp(shifted)  # between 0 and 1
    totals = positive.sum(dim=dim, keepdim=True)  # at least 1
    return positive / totals
