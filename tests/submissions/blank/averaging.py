"""Unit 1, averaging: the mean of the past.

Attention decides how much each token takes from every other token. This unit begins without such
a decision: every token takes an equal share of itself and of each token before it. You compute
this mean in three ways: with a loop, with one matrix product, and with a softmax. The softmax is
causal attention in which all scores are equal.

A tensor of tokens has the shape (batch, time, channels): a batch of sequences, the tokens of each
sequence in order of time, and the numbers of each token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def running_mean_loop(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Average each token with all tokens before it in the same sequence.

        out[b, t] = (x[b, 0] + x[b, 1] + … + x[b, t]) / (t + 1)

    Each channel has a mean of its own. Token t is part of its own mean; later tokens are not. A
    Python loop over time is welcome here.

    Why: this is the simplest way for a token to collect information from its past. The faster
    versions that follow must give the same numbers.

    Takes:
        x: (batch, time, channels), with at least one token.

    Returns:
        (batch, time, channels): the means.

    Rules:
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.

    Example: one sequence of three tokens with two channels each. The first token has nothing
    before it, so it is its own mean.

    >>> x = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
    >>> running_mean_loop(x)
    tensor([[[2.0000, 7.0000],
             [4.0000, 5.5000],
             [4.6667, 5.3333]]])

    Source: Andrej Karpathy 2023, "Let's build GPT: from scratch, in code, spelled out",
    version 1: averaging past context with for loops,
    https://www.youtube.com/watch?v=kCc8FmEb1nY.
    """
    raise NotImplementedError


def prefix_sum_matrix(time: int) -> Float[Tensor, "time time"]:
    """Build the square matrix whose product with a sequence gives the sums of its past.

        matrix[t, s] = 1   where s ≤ t
        matrix[t, s] = 0   where s > t

    Row t picks the tokens that are added up at time t: token t and every token before it. A matrix
    of ones alone would give every token the sum of the whole sequence.

    Why: a loop over the past becomes one matrix product. The triangle of zeros will later keep a
    model from reading the future.

    Takes:
        time: int, the number of tokens, at least 1.

    Returns:
        (time, time): the matrix in float32, the dtype of the tokens that it multiplies.

    Rules:
        sizes: The matrix is right for any number of tokens, from one to hundreds.

    Example: the product of the matrix with three tokens. Row 2 of the product is the sum of all
    three rows.

    >>> prefix_sum_matrix(3)
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    >>> prefix_sum_matrix(3) @ torch.tensor([[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]])
    tensor([[ 2.,  7.],
            [ 8., 11.],
            [14., 16.]])

    Source: Andrej Karpathy 2023, "Let's build GPT: from scratch, in code, spelled out",
    the matrix product as a weighted sum,
    https://www.youtube.com/watch?v=kCc8FmEb1nY.
    """
    raise NotImplementedError


def running_mean_matrix(time: int) -> Float[Tensor, "time time"]:
    """Turn the matrix of sums into a matrix of means, whose rows sum to one.

        weights[t, s] = 1 / (t + 1)   where s ≤ t
        weights[t, s] = 0             where s > t

    This is the triangle of `prefix_sum_matrix`, each row divided by its own number of ones. You may
    call your `prefix_sum_matrix`.

    Why: attention calls the numbers of such a row *weights*. Here all visible tokens have the same
    weight. From unit 3 on, the weights depend on the tokens.

    Takes:
        time: int, the number of tokens, at least 1.

    Returns:
        (time, time): the weights in float32.

    Rules:
        sizes: The weights are right for any number of tokens, from one to hundreds.

    Example: each row sums to one. The columns do not.

    >>> running_mean_matrix(3)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.3333, 0.3333, 0.3333]])

    Source: Andrej Karpathy 2023, "Let's build GPT: from scratch, in code, spelled out",
    the matrix product as a weighted sum,
    https://www.youtube.com/watch?v=kCc8FmEb1nY.
    """
    raise NotImplementedError


def running_mean_matmul(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Compute all running means at once, with one matrix product.

        out[b] = weights · x[b]   with weights[t, s] = 1 / (t + 1) where s ≤ t, else 0

    The means are those of `running_mean_loop`. A cumulative sum over time is accepted as well.

    Why: one product computes all tokens of all sequences at once, where the loop takes a step for
    each token. Graphics cards are built for matrix products, and attention consists of them.

    Takes:
        x: (batch, time, channels), with at least one token.

    Returns:
        (batch, time, channels): the means.

    Rules:
        dtype: float64 in, float64 out, with sums taken in float64; the weights may be those of
            your `running_mean_matrix`, which are rounded to float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.
        loops: A longer sequence takes no more tensor operations than a short one; each number
            that leaves torch through .item(), .tolist(), .numpy() or float() counts as one
            operation.

    Example: the sequence of `running_mean_loop`, with the same means.

    >>> x = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
    >>> running_mean_matmul(x)
    tensor([[[2.0000, 7.0000],
             [4.0000, 5.5000],
             [4.6667, 5.3333]]])

    Source: Andrej Karpathy 2023, "Let's build GPT: from scratch, in code, spelled out",
    version 2: using matrix multiply,
    https://www.youtube.com/watch?v=kCc8FmEb1nY.
    """
    raise NotImplementedError


def running_mean_softmax(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Compute the running means once more, with weights that come out of a softmax.

        scores[t, s] = 0    where s ≤ t
        scores[t, s] = −∞   where s > t
        out[b] = softmax(scores) · x[b]   with the softmax over each row of the scores

    Put the -inf in before the softmax. exp(0) is 1, so a score of zero does *not* hide a token.
    exp(-inf) is 0, so a score of -inf does.

    Why: scores of zero mean that no token prefers any other. With scores that depend on the tokens
    instead, this computation is causal attention.

    Takes:
        x: (batch, time, channels), with at least one token.

    Returns:
        (batch, time, channels): the means.

    Rules:
        softmax: The weights come out of a softmax, either torch's or your own made with exp.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.

    Example: one sequence of four tokens with one channel. The first token sees only itself; the
    last token sees all four.

    >>> x = torch.tensor([[[8.0], [0.0], [1.0], [5.0]]])
    >>> running_mean_softmax(x)
    tensor([[[8.0000],
             [4.0000],
             [3.0000],
             [3.5000]]])

    Source: Andrej Karpathy 2023, "Let's build GPT: from scratch, in code, spelled out",
    version 3: adding softmax,
    https://www.youtube.com/watch?v=kCc8FmEb1nY; for the -inf, Vaswani et al. 2017,
    "Attention Is All You Need", section 3.2.3, https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError
