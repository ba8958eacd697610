"""Unit 2, softmax: scores into weights.

Scores say how well tokens match. They may be any numbers, negative ones too. Weights say how much
attention each token gets. They are never negative, and they sum to one. Softmax turns scores into
weights.

You build softmax here step by step. So torch's own softmax, log_softmax, softmin and attention
functions (and the classes of torch.nn for them) are off limits in the whole unit. logsumexp is off
limits in all exercises except `softmax_stable`. An answer that uses a forbidden function gets no
points for that exercise.

In a rule, full precision means all digits that the dtype has. There is one exception, in this unit
and in all others: you may add 1e-8 to a sum of exponentials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def normalize_by_sum(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Turn positive scores into weights, each score's fraction of the total.

        weights[i] = scores[i] / Σⱼ scores[j]

    Why: this is the simplest way to get weights that sum to one. But a negative score can get a
    negative weight, and scores that sum to zero get no weights. Softmax solves both problems.

    Takes:
        scores: (tokens,), all between 0.001 and 1000. Zero and negative scores are not tested.

    Returns:
        (tokens,): the weights.

    Rules:
        forbidden: Torch's softmax, log_softmax, softmin, logsumexp and attention functions are
            off limits.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `scores` stays as it was.
        gradients: Gradients flow back to the scores, also through the total.

    Example: the scores sum to 8, so the score of 4 gets half of the total weight.

    >>> normalize_by_sum(torch.tensor([1.0, 3.0, 4.0]))
    tensor([0.1250, 0.3750, 0.5000])

    Source: Sebastian Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def softmax_naive(scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Turn any scores into weights, straight from the definition of softmax.

        weights[i] = exp(scores[i]) / Σⱼ exp(scores[j])

    Why: exp makes all scores positive and keeps their order, so a larger score always gets a larger
    weight. After the division by their sum, the weights sum to one.

    Takes:
        scores: (tokens,), all between -80 and 80. Above 88, exp overflows in float32; such scores
            are not tested here, and `softmax_stable` handles them.

    Returns:
        (tokens,): the weights.

    Rules:
        forbidden: Torch's softmax, log_softmax, softmin, logsumexp and attention functions are
            off limits; exp is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `scores` stays as it was.
        gradients: Gradients flow back to the scores, for scores between -10 and 10. They also flow
            through the divisor, because the sum depends on the scores.

    Example: the two equal scores get equal weights, and negative scores get positive weights.

    >>> softmax_naive(torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5]))
    tensor([0.1925, 0.1426, 0.2351, 0.1426, 0.2872])

    Source: Sebastian Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def softmax_rows(
    scores: Float[Tensor, "queries keys"],
) -> Float[Tensor, "queries keys"]:
    """Apply softmax to each row of a matrix of scores.

        weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])

    Row i holds the scores that query i gives to every key. The weights of a row are positive and
    sum to one. No row depends on another.

    Why: in attention, each query distributes its own attention over the keys. A common mistake is
    to sum over the wrong axis. For a square matrix, this mistake raises no error.

    Takes:
        scores: (queries, keys), often not square; all scores between -80 and 80. Overflow is
            not tested.

    Returns:
        (queries, keys): the weights.

    Rules:
        forbidden: Torch's softmax, log_softmax, softmin, logsumexp and attention functions are
            off limits; exp is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `scores` stays as it was.
        gradients: Gradients flow back to the scores, for scores between -10 and 10. They also flow
            through the divisors, because the sums depend on the scores.

    Example: two queries and three keys. The first query gives all keys the same score, the second
    query gives them different scores.

    >>> softmax_rows(torch.tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]))
    tensor([[0.3333, 0.3333, 0.3333],
            [0.0900, 0.2447, 0.6652]])

    Source: Sebastian Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def softmax_stable(scores: Float[Tensor, " ..."], dim: int = -1) -> Float[Tensor, " ..."]:
    """Compute a softmax along any dimension, without overflow for large scores.

        weights[i] = exp(scores[i]) / Σⱼ exp(scores[j])   for each slice along dim
                   = exp(scores[i] + c) / Σⱼ exp(scores[j] + c)   for every number c

    A number c that is added to *all* scores of a slice cancels out of the fraction. For each slice,
    choose a c with which exp never overflows.

    Why: trained models produce large scores, and masks put -inf among them on purpose. A score of
    1000 must give a weight, not NaN.

    Takes:
        scores: (...), at least one dimension. Entries may be -inf, but every slice along dim has
            at least one finite score. NaN and +inf are not tested.
        dim: int, the dimension along which the weights sum to one; negative numbers count from
            the end.

    Returns:
        (...): the weights, in the shape of the scores.

    Rules:
        large: Scores may be as large as ±1000, and the scores of one slice may be hundreds larger
            than the scores of the next.
        infinite: A score of -inf gets a weight of exactly zero.
        forbidden: Torch's softmax, log_softmax, softmin and attention functions are off limits;
            logsumexp is allowed here.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `scores` stays as it was.
        gradients: Gradients flow back to the scores; a finite score gets a finite gradient, even if
            its slice contains -inf.

    Example: first each row of a matrix becomes a distribution, then each column.

    >>> scores = torch.tensor([[1000.0, 1001.0], [-1000.0, float("-inf")]])
    >>> softmax_stable(scores)
    tensor([[0.2689, 0.7311],
            [1.0000, 0.0000]])
    >>> softmax_stable(scores, 0)
    tensor([[1., 1.],
            [0., 0.]])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 2,
    https://arxiv.org/abs/1805.02867.
    """
    raise NotImplementedError
