"""Unit 10, efficient: the same answer with less.

Attention compares every token with every other, and long texts make that expensive: twice the
tokens, four times the scores. Here you find out how far care alone gets you. A softmax that never
needs all scores at once leads to attention that never stores the matrix of weights; its gradients
follow by hand; and the last exercise changes the formula, so that the matrix is not needed at all.

Masks in this kit are boolean and True where a query may NOT look, just as `masked_fill` wants
them. `F.scaled_dot_product_attention` means the opposite by True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def softmax_online(scores: Float[Tensor, "... n"], block_size: int) -> Float[Tensor, "... n"]:
    """Compute a softmax over the last dimension while looking at a few scores at a time.

    The answer is the softmax that you know. But the scores are read in blocks of `block_size`,
    from left to right, and of what went by you keep two numbers for each row: the largest score so
    far, and the sum of exp(score - largest so far). When a block brings a larger score, the sum
    still belongs to the old one: bring it to the new one before you add to it. At the end, each
    score knows the true maximum and the true sum.

    Why: a chip has little fast memory, and a row of scores may not fit. This trick is the heart of
    the next exercise.

    `scores` is (..., n) with any leading dimensions, even none, and n ≥ 1; the weights have its
    shape and dtype, and every row sums to one. `block_size` is at least 1. It need not divide n,
    and it may be larger than n.

    Fine print: no maximum and no sum may run over more than `block_size` scores at once (the last
    step, exp of each score, may see them all: it adds nothing up). Loops are welcome. Scores are
    finite and can be as large as ±1000, whole rows of them, and the largest may come last. Torch's
    softmax, log_softmax, softmin and logsumexp are off limits. `scores` stays as it was; gradients
    are not asked for.

    Five scores, two at a time. The first block has the maximum 3 and the sum exp(-2) + 1 = 1.1353.
    The second has a larger one, 5: the old sum shrinks to 1.1353 · exp(3 - 5) = 0.1537 before
    exp(-3) + 1 joins it. The last score, 4, adds exp(-1), which makes 1.5713:

    >>> softmax_online(torch.tensor([1.0, 3.0, 2.0, 5.0, 4.0]), 2)
    tensor([0.0117, 0.0861, 0.0317, 0.6364, 0.2341])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3.
    They read one score at a time there; you read a block.
    """
    raise NotImplementedError


def flash_attention(
    queries: Float[Tensor, "batch heads tokens head_dim"],
    keys: Float[Tensor, "batch heads tokens head_dim"],
    values: Float[Tensor, "batch heads tokens head_dim"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "batch heads tokens head_dim"]:
    """Compute attention without ever storing all weights: a block of keys at a time.

    The answer is softmax(QKᵀ/√d)V, as in `scaled_dot_product_attention`, with d = head_dim. But
    keys and values are taken in blocks of `block_size` tokens. For each query you keep the largest
    score so far, the sum of exponentials so far, and the mix of values so far. When the maximum
    grows, sum and mix are both brought to the new one, as in `softmax_online`. If `causal`, a query
    sees no key that comes after it.

    Why: for 4096 tokens the weights of one head alone are 16 million numbers. A block of 512 keys
    needs an eighth of that, and nothing is approximated.

    `queries`, `keys` and `values` are (batch, heads, tokens, head_dim), and so is the answer.
    `block_size` is at least 1. It need not divide the tokens, and it may be larger than their
    number.

    Fine print. At a fixed block size no tensor may grow faster than the tokens do: not the scores,
    and not a mask either. No maximum, sum or softmax runs over more than `block_size` keys at once.
    Loops over blocks are welcome, of keys and of queries; a loop over single queries is too slow
    for the largest test. Scores may be as large as ±200, and all of a query's scores may be very
    negative. Torch's softmax is welcome, ready-made attention functions are not. Inputs stay as
    they were; gradients are not asked for.

    Every query gives the three keys scores of 0, ln 2 and ln 3, so that their weights are 1/6, 2/6
    and 3/6; the values make them visible. The first block holds two keys, the second is cut short:

    >>> queries = torch.tensor([2.0, 0.0, 0.0, 0.0]).repeat(1, 1, 3, 1)
    >>> keys = torch.zeros(1, 1, 3, 4)
    >>> keys[..., 0] = torch.tensor([1.0, 2.0, 3.0]).log()
    >>> values = torch.eye(3, 4).reshape(1, 1, 3, 4)
    >>> flash_attention(queries, keys, values, 2)
    tensor([[[[0.1667, 0.3333, 0.5000, 0.0000],
              [0.1667, 0.3333, 0.5000, 0.0000],
              [0.1667, 0.3333, 0.5000, 0.0000]]]])
    >>> flash_attention(queries, keys, values, 2, True)
    tensor([[[[1.0000, 0.0000, 0.0000, 0.0000],
              [0.3333, 0.6667, 0.0000, 0.0000],
              [0.1667, 0.3333, 0.5000, 0.0000]]]])

    Source: Dao et al. 2022, "FlashAttention", section 3.1. Their Algorithm 1 has no √d and no
    mask, cuts the queries into blocks as well, and divides by the sum at every step; to divide once
    at the end comes from FlashAttention-2 (Dao 2023, section 3.1.1).
    """
    raise NotImplementedError


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
    """Work out by hand the gradients that autograd would find for attention.

    Somebody computed output = softmax(QKᵀ/√d)V, without a mask, and went on to a loss.
    `grad_output` says how that loss changes with each number of the output. Tell how it changes
    with each number of `queries`, of `keys` and of `values`.

    Go back through three steps, the last one first. The output is weights @ values: what arrives at
    the values, and what at the weights? The weights are a softmax: if one weight of a row grows,
    the others must shrink, so each weight's gradient counts only as far as it differs from an
    average over its row. The scores are QKᵀ/√d: what arrives at the queries, and what at the keys?

    Why: this is what `.backward()` does for you. Whoever writes a fast attention writes this part,
    too, because autograd would need the whole matrix of weights kept from the forward pass.

    All four tensors are (batch, tokens, d). Return a tuple of three, in the order grad_queries,
    grad_keys, grad_values, each (batch, tokens, d), in the dtype of the inputs.

    Fine print: autograd is off limits in any form, and so are ready-made attention functions;
    torch's softmax is welcome. Whole matrices, please: the number of operations must not grow with
    the tokens. The work may be sixteen times that of the forward pass, whose two products take
    2 · batch · tokens² · d multiply-adds: by the chain rule you need about four times, and trying
    out each number takes hundreds. Inputs stay as they were; gradients of these gradients are not
    asked for.

    The queries are zero, so each token gives both keys the weight 1/2, and the output is the mean
    of the values. A gradient of 1 arrives at the first feature of the first output, and half of it
    goes to each value. That output would grow if its query leaned towards the first key, which has
    the larger value. And the keys could be anything, because queries of zero do not notice them:

    >>> queries = torch.zeros(1, 2, 4)
    >>> keys = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]])
    >>> values = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]])
    >>> grad_output = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]])
    >>> grad_queries, grad_keys, grad_values = attention_backward(
    ...     queries, keys, values, grad_output
    ... )
    >>> grad_queries
    tensor([[[0.5000, 0.0000, 0.0000, 0.0000],
             [0.0000, 0.0000, 0.0000, 0.0000]]])
    >>> grad_keys
    tensor([[[0., 0., 0., 0.],
             [0., 0., 0., 0.]]])
    >>> grad_values
    tensor([[[0.5000, 0.0000, 0.0000, 0.0000],
             [0.5000, 0.0000, 0.0000, 0.0000]]])

    Source: Dao et al. 2022, "FlashAttention", appendix B.2. The derivation there has no √d: find
    out where it belongs.
    """
    raise NotImplementedError


def linear_attention(
    queries: Float[Tensor, "batch tokens d_k"],
    keys: Float[Tensor, "batch tokens d_k"],
    values: Float[Tensor, "batch tokens d_v"],
) -> Float[Tensor, "batch tokens d_v"]:
    """Mix the values with weights that need no matrix of weights.

    Softmax attention weighs a key by exp(q · k / √d). Take φ(q) · φ(k) instead, where φ, applied to
    each number, is elu(x) + 1: that is x + 1 for positive x and exp(x) for the others, so never
    negative. A query's weights are these products divided by their sum over all keys; there is no
    √d, and no mask. Then change the order: (φ(Q)φ(K)ᵀ)V is φ(Q)(φ(K)ᵀV), and the bracket on the
    right does not grow with the tokens.

    Why: the cost is now linear. Twice the tokens take twice the work, not four times. The price is
    that these are other weights than the softmax's: a model has to be trained with them.

    `queries` and `keys` are (batch, tokens, d_k), `values` is (batch, tokens, d_v); the answer is
    (batch, tokens, d_v), in their dtype. Each query's weights sum to one, so you need the sum as
    well: find one that costs no more than the rest.

    Fine print: memory and work must grow no faster than the tokens. `F.elu` is welcome, ready-made
    attention functions are not. Inputs stay as they were, and gradients flow to all three.

    φ makes 1 of 0, 2 of 1, and 3 of 2. The first query (0, 0) becomes (1, 1), and its products with
    the keys' (1, 2) and (3, 1) are 3 and 4: weights of 3/7 and 4/7. The third column shows that
    weights sum to one:

    >>> queries = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
    >>> keys = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
    >>> values = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
    >>> linear_attention(queries, keys, values)
    tensor([[[0.4286, 0.5714, 1.0000],
             [0.3636, 0.6364, 1.0000]]])

    Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2, with the φ of its
    section 3.2.1. How it becomes causal, and a recurrent network, is told in their sections 3.3
    and 3.4.
    """
    raise NotImplementedError
