"""Unit 3, simple_attention: scores, weights, context, with nothing to train."""

import torch
from jaxtyping import Float
from torch import Tensor


def attention_scores_for_query(
    inputs: Float[Tensor, "tokens d_in"], query_index: int
) -> Float[Tensor, " tokens"]:
    """Dot products of one token with all tokens, shape (tokens,)."""
    query = inputs[query_index]  # (d_in,)
    return inputs @ query  # (tokens, d_in) @ (d_in,) -> (tokens,)


def attention_scores_loop(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Dot products of all tokens with all tokens, one by one, shape (tokens, tokens).

    Stacked rather than written into an empty table: dtype, device and gradients come along.
    """
    rows = []
    for query in inputs:
        row = []
        for key in inputs:
            score = torch.dot(query, key)  # (d_in,) · (d_in,) -> a single number
            row.append(score)
        rows.append(torch.stack(row))  # (tokens,)
    return torch.stack(rows)  # (tokens, tokens)


def attention_scores(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Dot products of all tokens with all tokens in one matrix product, shape (tokens, tokens)."""
    return inputs @ inputs.T  # (tokens, d_in) @ (d_in, tokens) -> (tokens, tokens)


def attention_weights(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens tokens"]:
    """Softmax of the scores over the keys, shape (tokens, tokens): each row sums to one."""
    scores = attention_scores(inputs)  # (tokens, tokens): queries down, keys across
    return torch.softmax(scores, dim=-1)


def context_vector(
    inputs: Float[Tensor, "tokens d_in"], query_index: int
) -> Float[Tensor, " d_in"]:
    """Sum of all tokens, each times the weight that one query gives it, shape (d_in,)."""
    scores = attention_scores_for_query(inputs, query_index)  # (tokens,)
    weights = torch.softmax(scores, dim=-1)  # (tokens,)
    return weights @ inputs  # (tokens,) @ (tokens, d_in) -> (d_in,)


def simple_self_attention(
    inputs: Float[Tensor, "tokens d_in"],
) -> Float[Tensor, "tokens d_in"]:
    """Context vectors of all tokens, softmax(X Xᵀ) X, shape (tokens, d_in)."""
    weights = attention_weights(inputs)  # (tokens, tokens)
    return weights @ inputs  # (tokens, tokens) @ (tokens, d_in) -> (tokens, d_in)
