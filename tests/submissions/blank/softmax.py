"""Unit 2, softmax: scores into weights.

Scores say how well tokens match: any numbers, negative ones too. Weights say how to share out
attention: never negative, and one in total. Softmax is the bridge. You build it here piece by
piece, so in this unit torch's own softmax, log_softmax and softmin (functions and nn classes)
are off limits, and logsumexp too, except in `softmax_stable`. Using one costs the exercise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def normalize_by_sum(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Share out a total of one in proportion to the scores.

    Each score becomes its fraction of the sum of all scores. Why: it is the simplest way to get
    weights that sum to one, and seeing where it breaks (what would a negative score do? or two
    scores that cancel out?) is the reason why softmax exists.

    Takes scores of shape (tokens,), all of them positive; returns weights of the same shape.
    Zero or negative scores are not tested.

    Keep the dtype, leave `scores` unchanged, and let gradients flow: build a new tensor. No
    softmax or logsumexp of torch anywhere.

    Example: the scores sum to 8, so the largest gets half of everything.

    >>> normalize_by_sum(torch.tensor([1.0, 3.0, 4.0]))
    tensor([0.1250, 0.3750, 0.5000])
    """
    raise NotImplementedError


def softmax_naive(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Turn any scores into weights, straight from the definition of softmax.

    Weight i is exp(scores[i]) divided by the sum of exp(scores[j]) over all j. Why: exp makes
    every score positive and keeps their order, so a larger score always earns a larger weight,
    and dividing by the sum makes the total one.

    Takes scores of shape (tokens,), negative ones included; returns weights of the same shape.

    Torch's softmax, log_softmax, softmin and logsumexp are forbidden: this is the exercise to
    write it yourself. In float32 exp overflows beyond about 88. That is expected here, and not
    tested; `softmax_stable` cures it. Keep the dtype, leave `scores` unchanged, and let
    gradients flow.

    Example: equal scores get equal weights, and a negative score still gets a positive one.

    >>> softmax_naive(torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5]))
    tensor([0.1925, 0.1426, 0.2351, 0.1426, 0.2872])
    """
    raise NotImplementedError


def softmax_rows(
    scores: Float[Tensor, "queries keys"],
) -> Float[Tensor, "queries keys"]:
    """Apply softmax to each row of a matrix of scores.

    Row i holds the scores that query i gives to every key, and becomes query i's own
    distribution: positive weights that sum to one along the row. Rows do not touch each other.
    Why: in attention each query shares out its own attention over the keys. The classic slip
    is to sum over the wrong axis, which a square matrix does not complain about.

    Takes scores of shape (queries, keys), often not square; returns weights of the same shape.

    Torch's softmax, log_softmax, softmin and logsumexp are forbidden. Scores stay small enough
    for a plain exp; overflow is not tested. Keep the dtype, leave `scores` unchanged, and let
    gradients flow.

    Example: two queries, three keys. The first query has no preference, the second one has.

    >>> softmax_rows(torch.tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]))
    tensor([[0.3333, 0.3333, 0.3333],
            [0.0900, 0.2447, 0.6652]])
    """
    raise NotImplementedError


def softmax_stable(scores: Float[Tensor, " ..."], dim: int = -1) -> Float[Tensor, " ..."]:
    """Write a softmax that survives scores of any size, along any dimension.

    Same mathematics as before, but exp must never overflow: a score of 1000 gives a weight, not
    a NaN. The way out: adding one number to *all* scores of a slice leaves their softmax as it
    was, because it cancels between the numerator and the sum. So choose a number that helps.
    Why: trained models do produce large scores, and masks put -inf among them on purpose.

    Takes scores of any shape, and the dimension `dim` (negative counts from the end) along
    which the weights sum to one; returns the same shape. Every slice along `dim` is its own
    distribution, and may be hundreds away from its neighbours.

    Scores of ±1000 and entries of -inf (weight exactly zero) are tested; every slice has at
    least one finite score. Torch's softmax, log_softmax and softmin are forbidden; logsumexp is
    allowed in this one exercise. Keep the dtype, leave `scores` unchanged, let gradients flow.

    Example: over the rows, then over the columns of the same matrix.

    >>> scores = torch.tensor([[1000.0, 1001.0], [-1000.0, float("-inf")]])
    >>> softmax_stable(scores)
    tensor([[0.2689, 0.7311],
            [1.0000, 0.0000]])
    >>> softmax_stable(scores, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    raise NotImplementedError
