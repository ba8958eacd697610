"""Unit 1, averaging: the mean of the past.

Before attention decides *how much* each token should listen to the others, let every token
listen equally to itself and to everything before it. You will write that mean four ways, and
the last one is attention with the interesting part left blank. Tensors are
(batch, time, channels): some sequences, their tokens in order, the numbers of one token.
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
    """Average every token with all the tokens before it, the slow and obvious way.

    At time t the answer holds the mean of tokens 0, 1, …, t of the same sequence, channel by
    channel. Token t itself counts; whatever comes later does not. Why: this is the plainest way
    for a token to collect news from its past, and the yardstick for the three faster versions.

    Takes x of shape (batch, time, channels); returns the same shape.

    Loops are welcome here. Sequences of a batch never mix. Keep the dtype of x, leave x itself
    unchanged, and let gradients flow back to it.

    Example: one sequence of three tokens, two channels each.

    >>> x = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
    >>> running_mean_loop(x)
    tensor([[[2.0000, 7.0000],
             [4.0000, 5.5000],
             [4.6667, 5.3333]]])
    """
    raise NotImplementedError


def prefix_sum_matrix(time: int) -> Float[Tensor, "time time"]:
    """Build the square matrix whose product with a sequence sums up its past.

    Row t says which tokens take part in sum number t: a one for token t and for every token
    before it, a zero for every later one. Why: a loop over the past becomes one matrix product,
    and the triangle of zeros is what will later keep a model from reading the future.

    Takes the number of tokens; returns a (time, time) matrix of torch's default dtype (floating
    point, not bool or int: it is about to be multiplied with real numbers).

    Example: row 2 of the product is the sum of all three rows.

    >>> prefix_sum_matrix(3)
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    >>> prefix_sum_matrix(3) @ torch.tensor([[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]])
    tensor([[ 2.,  7.],
            [ 8., 11.],
            [14., 16.]])
    """
    raise NotImplementedError


def running_mean_matrix(time: int) -> Float[Tensor, "time time"]:
    """Turn the matrix of sums into a matrix of means.

    Same triangle as in `prefix_sum_matrix`, but every row shares out a total of exactly one:
    row t gives the weight 1 / (t + 1) to each of the t + 1 tokens it may see, and nothing to
    the rest. Why: rows that sum to one are what attention calls *weights*. Here all visible
    tokens weigh the same; from unit 3 on the data decides.

    Takes the number of tokens; returns a (time, time) matrix of torch's default dtype. You may
    call your own `prefix_sum_matrix`.

    Example: each row sums to one (each column does not).

    >>> running_mean_matrix(3)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.3333, 0.3333, 0.3333]])
    """
    raise NotImplementedError


def running_mean_matmul(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Compute all the running means with a single matrix product.

    The answer is that of `running_mean_loop`, without the loop. Why: one product does for every
    token and every sequence at once what the loop did step by step, and a graphics card is
    built for exactly that. All of attention is written this way.

    Takes x of shape (batch, time, channels); returns the same shape.

    The number of torch operations must stay the same however long the sequence is: no Python
    loop over time. (A cumulative sum keeps that promise too, and is accepted.) Two tensors only
    multiply when their dtypes agree, and x may be float64: keep the dtype of x. Leave x
    unchanged, and let gradients flow back to it.

    Example: one sequence of three tokens, two channels each, the numbers you know already.

    >>> x = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
    >>> running_mean_matmul(x)
    tensor([[[2.0000, 7.0000],
             [4.0000, 5.5000],
             [4.6667, 5.3333]]])
    """
    raise NotImplementedError


def running_mean_softmax(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Compute the running means once more, with weights that come out of a softmax.

    Start from a (time, time) matrix of scores, all zero: no token prefers any other. Put -inf
    wherever a row would look at a later token, that is, above the diagonal. A softmax over each
    row turns the scores into weights, and the weights average x. Why: replace the zeros by
    scores that depend on the tokens, and this is causal attention.

    Takes x of shape (batch, time, channels); returns the same shape.

    A softmax has to do the work (torch's, or your own out of `exp`). It must act on the matrix
    with the -inf in it: exp(0) is 1, so a zero does *not* hide a token, and exp(-inf) is 0, so
    -inf does. Keep the dtype of x, leave x unchanged, and let gradients flow back to it.

    Example: the first token can only listen to itself; the last one hears all four.

    >>> x = torch.tensor([[[8.0], [0.0], [1.0], [5.0]]])
    >>> running_mean_softmax(x)
    tensor([[[8.0000],
             [4.0000],
             [3.0000],
             [3.5000]]])
    """
    raise NotImplementedError
