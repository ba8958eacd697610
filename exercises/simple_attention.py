"""Unit 3, simple_attention: attention without weights to train.

Every token looks at all tokens, itself included, and becomes a mix of them, in which similar tokens
have larger shares. There are three steps: *scores* (dot products), *weights* (softmax) and
*context* (weighted sum). Nothing is learned yet, nothing is scaled, nothing is masked. From this
unit on you may call torch.softmax. `inputs` has the shape (tokens, d_in), with one row for each
token. Tokens are counted from zero.
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

        scores[j] = Σₖ inputs[query_index, k] · inputs[j, k]

    Score j is the dot product of two rows: multiply them number by number, and add up. The query
    gets a score with itself, like any other token.

    Why: a dot product is large when two vectors point the same way, so it is a cheap answer to
    "How similar is token j to the query?"

    Takes:
        inputs: (tokens, d_in), a row for each token.
        query_index: int from 0 to tokens - 1, the row of the query; the second token has index 1.

    Returns:
        (tokens): the scores, one for each token.

    Rules:
        dtype: float64 in, float64 out, in full precision.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens, the query included.

    Example: "Your journey starts with one step", with three numbers for each word. The query is
    "journey".

    >>> inputs = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64],
    ...                        [0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]])
    >>> attention_scores_for_query(inputs, 1)
    tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def attention_scores_loop(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Score every token against every token, one dot product at a time.

        scores[i, j] = Σₖ inputs[i, k] · inputs[j, k]

    Row i belongs to token i as a query, column j to token j as a key. Write two loops with a dot
    product inside; any other way is accepted as well.

    Why: once you have written the two loops yourself, the single product of the next exercise
    is no longer a magic formula.

    Takes:
        inputs: (tokens, d_in), a row for each token.

    Returns:
        (tokens, tokens): the scores, a row for each query.

    Rules:
        dtype: float64 in, float64 out, in full precision. Torch makes a new table in float32
            unless you pass a dtype.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens; a number taken out with `.item()` has no
            gradient.

    Example: token 2 is the sum of the other two, so it is similar to both.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attention_scores_loop(inputs)
    tensor([[1., 0., 1.],
            [0., 1., 1.],
            [1., 1., 2.]])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def attention_scores(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Score every token against every token with one matrix product.

        scores[i, j] = Σₖ inputs[i, k] · inputs[j, k]

    These are the scores of `attention_scores_loop`, without a loop. If your result has the shape
    (d_in, d_in), you compared channels, not tokens.

    Why: a matrix product *is* a table of dot products: of the rows of the left matrix with the
    columns of the right matrix. Your tokens are rows. What must happen to them on the right side?

    Takes:
        inputs: (tokens, d_in), a row for each token.

    Returns:
        (tokens, tokens): the scores, a row for each query.

    Rules:
        dtype: float64 in, float64 out, in full precision.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens, as queries and as keys.
        loops: The number of tensor operations does not grow with the number of tokens; each element
            that leaves torch through .item(), .tolist(), .numpy() or float() counts as one
            operation.

    Example: two tokens with three numbers each give four scores.

    >>> inputs = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    >>> attention_scores(inputs)
    tensor([[ 5.,  3.],
            [ 3., 10.]])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def attention_weights(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Turn the scores of all tokens into weights: a softmax over the keys for each query.

        scores[i, j]  = inputs[i] · inputs[j]
        weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])

    Each row sums to one. The scores are not divided by √d_in yet: that comes in unit 4.

    Why: row i says how much of each token goes into the new token i. The scores are symmetric here:
    scores[i, j] = scores[j, i]. The weights are not symmetric, because each row is divided by its
    own sum. So a softmax along the wrong axis gives wrong weights, although their shape is right.

    Takes:
        inputs: (tokens, d_in), a row for each token. All scores lie between -80 and 80.

    Returns:
        (tokens, tokens): the weights, a row for each query.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens, as queries and as keys.

    Example: each row belongs to one query. Token 2 gives most of its attention to itself.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attention_weights(inputs)
    tensor([[0.4223, 0.1554, 0.4223],
            [0.1554, 0.4223, 0.4223],
            [0.2119, 0.2119, 0.5761]])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def context_vector(
    inputs: Float[Tensor, "tokens d_in"], query_index: int
) -> Float[Tensor, " d_in"]:
    """Mix all tokens into the context vector of one query, by its attention weights.

        context = Σⱼ weights[query_index, j] · inputs[j]

    The weights are those of `attention_weights`: a softmax of plain dot products, not scaled.

    Why: attention exists to compute this vector. It replaces the vector of the query, and collects
    the information in the sequence that is relevant to the query.

    Takes:
        inputs: (tokens, d_in), a row for each token. All scores lie between -80 and 80.
        query_index: int from 0 to tokens - 1, the row of the query; the second token has index 1.

    Returns:
        (d_in): the context vector of the query.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens, through the weights and through the weighted
            sum.

    Example: the context of "journey" in "Your journey starts with one step".

    >>> inputs = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64],
    ...                        [0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]])
    >>> context_vector(inputs, 1)
    tensor([0.4419, 0.6515, 0.5683])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def simple_self_attention(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens d_in"]:
    """Compute the context vectors of all tokens at once.

        weights    = softmax(inputs · inputsᵀ)     each row sums to one
        context[i] = Σⱼ weights[i, j] · inputs[j]

    Row i is the `context_vector` of token i. Nothing is scaled and nothing is masked: a token
    looks in both directions.

    Why: self-attention consists of scores, weights and weighted sums, and each of these steps is
    one line of matrix operations. The next units add projections, a scale, a mask and heads, but no
    new idea of this size.

    Takes:
        inputs: (tokens, d_in), a row for each token. All scores lie between -80 and 80.

    Returns:
        (tokens, d_in): the context vectors, a row for each token.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `inputs` stays as it was.
        gradients: Gradients flow back to all tokens, through the weights and through the weighted
            sum.

    Example: every row of the result is a weighted mean of the three tokens.

    >>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> simple_self_attention(inputs)
    tensor([[0.8446, 0.5777],
            [0.5777, 0.8446],
            [0.7881, 0.7881]])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.3.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError
