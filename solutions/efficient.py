"""References of unit 10, efficient: the same answer with less memory, work or bookkeeping.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def online_step(
    maximum: Float[Tensor, " ..."], total: Float[Tensor, " ..."], block: Float[Tensor, "... n"]
) -> tuple[Float[Tensor, " ..."], Float[Tensor, " ..."]]:
    """Add a block of scores to a running maximum and a running sum, (...) and (...).

    A step of Algorithm 3 of Milakov and Gimelshein 2018, with a block where they take a score.
    """
    new_max = torch.maximum(maximum, block.amax(dim=-1))  # (...)

    rescale = torch.exp(maximum - new_max)  # 1 where the maximum stays, 0 at the start
    block_sum = torch.exp(block - new_max[..., None]).sum(dim=-1)  # (...)
    return new_max, total * rescale + block_sum


def softmax_online(scores: Float[Tensor, "... n"], block_size: int) -> Float[Tensor, "... n"]:
    """Softmax over the last dimension that looks at block_size scores at a time, (..., n) to same.

    The steps of `online_step`, written out. A maximum and a sum are kept while the blocks go by.
    Whenever the maximum grows, what was summed up so far is brought down to the new one: Milakov
    and Gimelshein 2018, section 3, with a block where they take a single score.
    """
    running_max = torch.full_like(scores[..., :1], -torch.inf)  # (..., 1)
    running_sum = torch.zeros_like(running_max)  # (..., 1)

    for block in torch.split(scores, block_size, dim=-1):
        block_max = block.amax(dim=-1, keepdim=True)  # (..., 1)
        new_max = torch.maximum(running_max, block_max)

        rescale = torch.exp(running_max - new_max)  # 1 where the maximum stays, 0 at the start
        block_sum = torch.exp(block - new_max).sum(dim=-1, keepdim=True)
        running_sum = running_sum * rescale + block_sum
        running_max = new_max

    return torch.exp(scores - running_max) / running_sum


def merge_states(
    first: tuple[
        Float[Tensor, "... queries"], Float[Tensor, "... queries"], Float[Tensor, "... queries d"]
    ],
    second: tuple[
        Float[Tensor, "... queries"], Float[Tensor, "... queries"], Float[Tensor, "... queries d"]
    ],
) -> tuple[
    Float[Tensor, "... queries"], Float[Tensor, "... queries"], Float[Tensor, "... queries d"]
]:
    """The state (maximum, total, mix) of two sets of keys together, out of a state for each.

    Milakov and Gimelshein 2018, section 3.1, with a mix of values beside the total.
    """
    first_max, first_total, first_mix = first
    second_max, second_total, second_mix = second
    new_max = torch.maximum(first_max, second_max)  # (..., queries)

    # Where both are empty, -inf - -inf would be NaN. Any finite number makes exp(-inf) = 0 of it.
    shift = new_max.masked_fill(new_max == -torch.inf, 0.0)
    first_factor = torch.exp(first_max - shift)  # (..., queries), 0 where a state is empty
    second_factor = torch.exp(second_max - shift)

    total = first_total * first_factor + second_total * second_factor
    mix = first_mix * first_factor[..., None] + second_mix * second_factor[..., None]
    return new_max, total, mix


def flash_attention(
    queries: Float[Tensor, "batch heads tokens head_dim"],
    keys: Float[Tensor, "batch heads tokens head_dim"],
    values: Float[Tensor, "batch heads tokens head_dim"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "batch heads tokens head_dim"]:
    """softmax(QKᵀ/√d)V, a block of keys at a time: no tokens × tokens matrix is ever stored.

    The bookkeeping of `softmax_online`, and the mix of values is brought down together with the
    sum: Dao et al. 2022, section 3.1, with one division at the end (Dao 2023, section 3.1.1).
    """
    _batch, _heads, tokens, head_dim = queries.shape
    positions = torch.arange(tokens, device=queries.device)

    running_max = torch.full_like(queries[..., :1], -torch.inf)  # (batch, heads, tokens, 1)
    running_sum = torch.zeros_like(running_max)  # (batch, heads, tokens, 1)
    context = torch.zeros_like(values)  # (batch, heads, tokens, head_dim), not yet divided

    for start in range(0, tokens, block_size):
        end = start + block_size  # beyond the last token in the last block: slices do not mind
        key_block = keys[:, :, start:end]  # (batch, heads, block, head_dim)
        value_block = values[:, :, start:end]  # (batch, heads, block, head_dim)

        scores = queries @ key_block.transpose(-2, -1) / head_dim**0.5
        # scores: (batch, heads, tokens, block)
        if causal:
            future = positions[start:end] > positions[:, None]  # (tokens, block)
            scores = scores.masked_fill(future, -torch.inf)

        block_max = scores.amax(dim=-1, keepdim=True)
        # The first block holds a visible key for every query, so this is never -inf.
        new_max = torch.maximum(running_max, block_max)

        rescale = torch.exp(running_max - new_max)  # 1 where the maximum stays, 0 at the start
        positive = torch.exp(scores - new_max)  # (batch, heads, tokens, block)
        running_sum = running_sum * rescale + positive.sum(dim=-1, keepdim=True)
        context = context * rescale + positive @ value_block
        running_max = new_max

    return context / running_sum


def softmax_backward(
    weights: Float[Tensor, "... n"], grad_weights: Float[Tensor, "... n"]
) -> Float[Tensor, "... n"]:
    """The gradient for the scores of a softmax, out of the one for its weights: (..., n) to same.

    A weight that grows takes from all others of its row: Dao et al. 2022, appendix B.2.
    """
    average = (weights * grad_weights).sum(dim=-1, keepdim=True)  # (..., 1)
    return weights * (grad_weights - average)


def attention_backward(
    queries: Float[Tensor, "batch tokens d"],
    keys: Float[Tensor, "batch tokens d"],
    values: Float[Tensor, "batch tokens d"],
    grad_output: Float[Tensor, "batch tokens d"],
) -> tuple[
    Float[Tensor, "batch tokens d"],
    Float[Tensor, "batch tokens d"],
    Float[Tensor, "batch tokens d"],
]:
    """Gradients of softmax(QKᵀ/√d)V for queries, keys and values: three times (batch, tokens, d).

    The forward steps once more, and then the chain rule from the last of them to the first:
    Dao et al. 2022, appendix B.2.
    """
    d = queries.shape[-1]

    # Forward: scores, weights; the output itself is not needed.
    scores = queries @ keys.transpose(-2, -1) / d**0.5  # (batch, tokens, tokens)
    weights = torch.softmax(scores, dim=-1)  # (batch, tokens, tokens)

    # output = weights @ values
    grad_values = weights.transpose(-2, -1) @ grad_output  # (batch, tokens, d)
    grad_weights = grad_output @ values.transpose(-2, -1)  # (batch, tokens, tokens)

    # weights = softmax(scores): a weight that grows takes from all others of its row.
    average = (weights * grad_weights).sum(dim=-1, keepdim=True)  # (batch, tokens, 1)
    grad_scores = weights * (grad_weights - average)  # (batch, tokens, tokens)

    # scores = queries @ keysᵀ / √d
    grad_products = grad_scores / d**0.5  # (batch, tokens, tokens)
    grad_queries = grad_products @ keys  # (batch, tokens, d)
    grad_keys = grad_products.transpose(-2, -1) @ queries  # (batch, tokens, d)

    return grad_queries, grad_keys, grad_values


def linear_attention(
    queries: Float[Tensor, "batch tokens d_k"],
    keys: Float[Tensor, "batch tokens d_k"],
    values: Float[Tensor, "batch tokens d_v"],
) -> Float[Tensor, "batch tokens d_v"]:
    """Attention whose weights are φ(q)·φ(k) over their sum, φ = elu + 1: (batch, tokens, d_v).

    Keys meet values first, so that no tokens × tokens matrix is needed: Katharopoulos et al. 2020,
    section 3.2.
    """
    query_features = torch.nn.functional.elu(queries) + 1.0  # (batch, tokens, d_k), positive
    key_features = torch.nn.functional.elu(keys) + 1.0  # (batch, tokens, d_k), positive

    summary = key_features.transpose(-2, -1) @ values  # (batch, d_k, d_v), however many tokens
    key_sum = key_features.sum(dim=-2, keepdim=True)  # (batch, 1, d_k)

    mixed = query_features @ summary  # (batch, tokens, d_v)
    totals = query_features @ key_sum.transpose(-2, -1)  # (batch, tokens, 1)
    return mixed / totals
