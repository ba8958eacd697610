"""Unit 3, simple_attention: attention without weights to train.

Every token looks at all tokens, itself included, and takes home a mix of them: more from those
that resemble it. Three steps: *scores* (dot products), *weights* (softmax), *context* (weighted
sum). Nothing is learned yet, nothing is scaled, nothing is masked. From this unit on you may
call torch.softmax. `inputs` is (tokens, d_in): a row per token, counted from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def attention_scores_for_query(
    inputs: Float[Tensor, "tokens d_in"], query_index: int
) -> Float[Tensor, " tokens"]:
    """Score every token against one chosen token, the query.

    Score j is the dot product of token `query_index` with token j: multiply the two rows number
    by number and add up. Why: a dot product is large when two vectors point the same way, so it
    is a cheap answer to "how much has token j to do with the query?".

    Takes inputs of shape (tokens, d_in) and a row number that counts from zero (the second
    token is number 1); returns the scores, shape (tokens,), the query's score with itself among
    them. Row numbers outside 0 … tokens - 1 are not tested.

    Keep the dtype, leave `inputs` unchanged, and let gradients flow.

    Example: "Your journey starts with one step", three numbers a word; "journey" asks.

    >>> inputs = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64],
    ...                        [0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]])
    >>> attention_scores_for_query(inputs, 1)
    tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    """
    raise NotImplementedError


def attention_scores_loop(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Score every token against every token, one dot product at a time.

    Entry (i, j) is the dot product of token i, who asks, with token j, who answers. Why: once
    you have written the two loops yourself, the single product of the next exercise stops being
    a magic formula.

    Takes inputs of shape (tokens, d_in); returns scores of shape (tokens, tokens), a row for
    each query.

    Two loops and a dot product inside are what we expect; nobody will stop you from doing it
    differently. Keep the dtype (a table that you fill yourself starts out in torch's default
    dtype unless you say otherwise), leave `inputs` unchanged, and let gradients flow: numbers
    pulled out with `.item()` have forgotten where they came from.

    Example: token 2 is the sum of the other two, so it agrees with both.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attention_scores_loop(inputs)
    tensor([[1., 0., 1.],
            [0., 1., 1.],
            [1., 1., 2.]])
    """
    raise NotImplementedError


def attention_scores(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Score every token against every token with one matrix product.

    The same table as in `attention_scores_loop`, without a loop. Why: a matrix product *is* a
    table of dot products, rows of the left matrix with columns of the right one. Your tokens
    are rows; what has to happen to them on the right-hand side?

    Takes inputs of shape (tokens, d_in); returns scores of shape (tokens, tokens). If you get
    (d_in, d_in), you compared channels, not tokens.

    Keep the dtype, leave `inputs` unchanged, and let gradients flow.

    Example: two tokens with three numbers each give four scores.

    >>> inputs = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    >>> attention_scores(inputs)
    tensor([[ 5.,  3.],
            [ 3., 10.]])
    """
    raise NotImplementedError


def attention_weights(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Turn the scores of all tokens into weights.

    Compute the table of scores, then apply a softmax to each query's scores over all the keys,
    so that every row sums to one. Why: row i now says which share of each token goes into
    the new token i. Scores are symmetric here (i likes j as j likes i); weights are not, since
    every query divides by a total of its own. So the axis matters, though the shape is square.

    Takes inputs of shape (tokens, d_in); returns weights of shape (tokens, tokens).

    No division by the square root of d_in yet: that comes in unit 4. torch.softmax is allowed,
    and so is your own. Keep the dtype, leave `inputs` unchanged, and let gradients flow.

    Example: read it by rows. Token 2 keeps most for itself.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attention_weights(inputs)
    tensor([[0.4223, 0.1554, 0.4223],
            [0.1554, 0.4223, 0.4223],
            [0.2119, 0.2119, 0.5761]])
    """
    raise NotImplementedError


def context_vector(
    inputs: Float[Tensor, "tokens d_in"], query_index: int
) -> Float[Tensor, " d_in"]:
    """Blend all tokens into the context vector of one query.

    Take the query's attention weights, multiply every token by its weight, and add the results
    up. Why: this vector is what attention is for. It stands where the query stood, but now it
    carries what the query found interesting in the whole sequence.

    Takes inputs of shape (tokens, d_in) and the query's row number, from zero; returns its
    context vector, shape (d_in,). Row numbers outside 0 … tokens - 1 are not tested.

    The weights are those of `attention_weights`: softmax of plain dot products, no scaling.
    Keep the dtype, leave `inputs` unchanged, and let gradients flow.

    Example: the context of "journey" in "Your journey starts with one step".

    >>> inputs = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64],
    ...                        [0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]])
    >>> context_vector(inputs, 1)
    tensor([0.4419, 0.6515, 0.5683])
    """
    raise NotImplementedError


def simple_self_attention(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens d_in"]:
    """Compute the context vectors of all tokens at once.

    Row i of the answer is the context vector of token i. Why: scores, weights, weighted sum,
    each of them one line over whole matrices, is all of self-attention. The units that follow
    add things to it (projections, a scale, a mask, heads), but never another idea of this size.

    Takes inputs of shape (tokens, d_in); returns context vectors of the same shape.

    No scaling, no mask: a token may look in both directions. Keep the dtype, leave `inputs`
    unchanged, and let gradients flow.

    Example: every new token is a weighted mean of the old ones, so it lies between them.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> simple_self_attention(inputs)
    tensor([[0.8446, 0.5777],
            [0.5777, 0.8446],
            [0.7881, 0.7881]])
    """
    raise NotImplementedError
