"""Unit 10, efficient: attention with less memory and less work.

Attention compares every token with every other token, so long texts are expensive: twice the tokens
have four times the scores. First you save memory without changing the result: a softmax that never
needs all scores at once leads to attention that never stores the matrix of weights. Then you
compute the gradients of attention by hand. The last exercise changes the formula of attention, and
so the result: no matrix of weights is needed any more.

This holds for all exercises of this unit. Arguments come by position, in the order of the
signature. You may use your own earlier answers. If a rule limits operations, work, memory or the
numbers read at once, use only tensor operations: work on Python numbers cannot be counted. What
your assertions and prints read does not count.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def online_step(
    maximum: Float[Tensor, " ..."], total: Float[Tensor, " ..."], block: Float[Tensor, "... n"]
) -> tuple[Float[Tensor, " ..."], Float[Tensor, " ..."]]:
    """Add a block of scores to a running maximum and a running sum.

        new   = max(maximum, largest score of the block)
        total = total · exp(maximum - new) + Σ exp(score - new)   over the block

    Two numbers describe the scores of a row so far: `maximum`, the largest score, and `total`, the
    sum of exp(score - maximum). If a block has a larger score, first convert the old total to the
    new maximum, and then add the block.

    Why: a softmax needs only these two numbers of its row. With this step, it can read a row of any
    length one block at a time. The next exercise does so.

    Takes:
        maximum: (...), the largest score so far, -inf if there was no score.
        total: (...), the sum of exp(score - maximum) so far, 0 if there was no score.
        block: (..., n), the next scores of each row, finite numbers, n ≥ 1.

    Returns:
        A pair (maximum, total): (...), (...), which include the block. The dimension of the scores
        is gone: it is not kept with size 1.

    Rules:
        empty: The first state, (-inf, 0), stands for no score at all.
        leading: There may be any number of leading dimensions, or none.
        large: Scores may be as large as ±1000, and a block may lie far above or below what came
            before it.
        forbidden: Torch's softmax, log_softmax, softmin and logsumexp are off limits, and so are
            ready-made attention functions.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `maximum`, `total` and `block` stay as they were.
        gradients: Gradients of maximum + log(total) flow back to `maximum`, `total` and `block`.

    Example: the scores 1 and 3, and then 2 and 5. After the first block the maximum is 3, and the
    total is exp(-2) + 1 = 1.1353. The second block has a larger score, 5: the old total becomes
    1.1353 · exp(3 - 5) = 0.1537, and exp(-3) + 1 is added. The last line computes the softmax of
    the four scores.

    >>> maximum, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    >>> maximum, total = online_step(maximum, total, torch.tensor([1.0, 3.0]))
    >>> maximum, total
    (tensor(3.), tensor(1.1353))
    >>> maximum, total = online_step(maximum, total, torch.tensor([2.0, 5.0]))
    >>> maximum, total
    (tensor(5.), tensor(1.2034))
    >>> torch.exp(torch.tensor([1.0, 3.0, 2.0, 5.0]) - maximum) / total
    tensor([0.0152, 0.1125, 0.0414, 0.8310])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3,
    https://arxiv.org/abs/1805.02867. Algorithm 3 there takes one score at a time, not a block.
    """
    raise NotImplementedError


def softmax_online(scores: Float[Tensor, "... n"], block_size: int) -> Float[Tensor, "... n"]:
    """Compute a softmax over the last dimension, and read only a block of scores at a time.

        mₖ = max(mₖ₋₁, largest score of block k)
        lₖ = lₖ₋₁ · exp(mₖ₋₁ - mₖ) + Σ exp(score - mₖ)   over block k
        weights = exp(scores - m) / l                    with m and l of the last block

    Read the scores in blocks of `block_size`, and update a running maximum m and a running sum l
    with each block, as `online_step` does. The last line of the formula may read all scores at
    once, because it computes no maximum and no sum.

    Why: a chip has little fast memory, and a row of scores may not fit into it. Reading a row from
    slow memory takes time, so maximum and sum should need only one reading. `flash_attention`
    builds on this.

    Takes:
        scores: (..., n), finite numbers, n ≥ 1.
        block_size: int, at least 1; it need not divide n, and it may be larger than n.

    Returns:
        (..., n): the weights; each row sums to one. Gradients are not tested.

    Rules:
        block: No maximum or sum runs over more than `block_size` scores at once. At most two
            numbers for each row and block may leave torch, through .item(), .tolist(), .numpy(),
            float() or `if`. An answer that breaks this rule gets at most half of the points.
        once: Maximum and sum come from one reading: take the exponentials of a block before the
            maximum of the next block. An answer that takes all maxima first, and then all sums,
            reads the scores twice and gets at most half of the points.
        leading: There may be any number of leading dimensions, or none.
        large: Scores may be as large as ±1000, even all scores of a row, and the largest score may
            come last.
        forbidden: Torch's softmax, log_softmax, softmin and logsumexp are off limits, and so are
            ready-made attention functions.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `scores` stays as it was.

    Example: five scores, two at a time. The first two blocks are those of the example of
    `online_step`: after them, the maximum is 5 and the sum 1.2034. The last score, 4, adds exp(-1),
    so the sum becomes 1.5713.

    >>> softmax_online(torch.tensor([1.0, 3.0, 2.0, 5.0, 4.0]), 2)
    tensor([0.0117, 0.0861, 0.0317, 0.6364, 0.2341])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3,
    https://arxiv.org/abs/1805.02867. Algorithm 3 there reads one score at a time.
    """
    raise NotImplementedError


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
    """Merge each query's states for two sets of keys into its state for both sets.

        new   = max(maximum₁, maximum₂)
        total = total₁ · exp(maximum₁ - new) + total₂ · exp(maximum₂ - new)
        mix   = mix₁ · exp(maximum₁ - new) + mix₂ · exp(maximum₂ - new)

    The state of a query has three parts, computed from the keys so far: `maximum`, the largest
    score; `total`, the sum of exp(score - maximum); and `mix`, the sum of
    exp(score - maximum) · value. Do not divide the mix by the total here. That is done only once,
    after all keys: then mix / total is attention over all keys. The order of the two states does
    not matter.

    Before its first key, a query has the empty state (-inf, 0, 0), with a mix of zeros.

    Why: keys can be read in blocks, one after another or all at the same time, and the states of
    the blocks can be merged in any order. `flash_attention` reads blocks in a loop; large models
    spread blocks over several machines. With a causal mask, some queries see no key of a block.

    Takes:
        first: (maximum, total, mix), the state for one set of keys:
            (..., queries), (..., queries), (..., queries, d).
        second: the state for another set of keys:
            (..., queries), (..., queries), (..., queries, d).

    Returns:
        A triple (maximum, total, mix), the state for both sets of keys:
        (..., queries), (..., queries), (..., queries, d).

    Rules:
        empty: Merging with an empty state, (-inf, 0, 0), changes nothing, and two empty states give
            an empty state, never NaN. Some queries may have an empty state while others have not.
            An answer that breaks this rule gets at most half of the points.
        leading: There may be any number of leading dimensions, or none.
        large: Maxima may be as large as ±1000, and far from one another.
        dtype: float64 in, float64 out, in full precision.
        unchanged: Both states stay as they were.
        gradients: Gradients of mix / total and of maximum + log(total) flow back to both states,
            if neither is empty.

    Example: one query. Its first state is for a key with score 0 and value (1, 0), its second state
    for two keys with score ln 2 and value (0, 1). The weights of the three keys have the ratio
    1 : 2 : 2.

    >>> first = torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([[1.0, 0.0]])
    >>> second = torch.tensor([2.0]).log(), torch.tensor([2.0]), torch.tensor([[0.0, 2.0]])
    >>> maximum, total, mix = merge_states(first, second)
    >>> maximum, total, mix
    (tensor([0.6931]), tensor([2.5000]), tensor([[0.5000, 2.0000]]))
    >>> mix / total[:, None]
    tensor([[0.2000, 0.8000]])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3.1,
    https://arxiv.org/abs/1805.02867. The paper merges maximum and total; the mix is added here.
    """
    raise NotImplementedError


def flash_attention(
    queries: Float[Tensor, "batch heads tokens head_dim"],
    keys: Float[Tensor, "batch heads tokens head_dim"],
    values: Float[Tensor, "batch heads tokens head_dim"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "batch heads tokens head_dim"]:
    """Compute attention a block of keys at a time, and never store the matrix of weights.

        out = softmax(queries · keysᵀ / √head_dim) · values   over all keys, or over keys j ≤ i
                                                              for query i if `causal`

    Take keys and values in blocks of `block_size` tokens. For each query, remember the largest
    score so far, the sum of exponentials so far, and the mix of values so far: the state of
    `merge_states`. Compute the state of each block, and merge it into the state so far.

    Why: for 4096 tokens, one head alone has 16 million weights. A block of 512 keys has an eighth
    of them, and the result is exact.

    Takes:
        queries: (batch, heads, tokens, head_dim).
        keys: (batch, heads, tokens, head_dim).
        values: (batch, heads, tokens, head_dim).
        block_size: int, at least 1; it need not divide the tokens, and it may be larger than their
            number.
        causal: bool, whether a query sees no key that comes after it.

    Returns:
        (batch, heads, tokens, head_dim): a mix of values for each query. Gradients are not tested.

    Rules:
        memory: At a fixed block size, no tensor grows faster than the number of tokens, and neither
            does all that your tensors hold at one time: neither the scores, nor a mask, nor the
            states of all blocks. An answer that breaks this rule gets at most half of the points.
        block: No maximum, sum or softmax runs over more than `block_size` keys at once. At most two
            numbers for each query and block may leave torch, through .item(), .tolist(), .numpy(),
            float() or `if`.
        loops: Loops over blocks of keys and of queries are welcome; a loop over single queries is
            too slow for the largest test.
        large: Scores may be as large as ±200, and all scores of a query may be near -200.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, in full precision, though the root may be taken in float32.
        unchanged: `queries`, `keys` and `values` stay as they were.

    Example: every query gives the three keys scores of 0, ln 2 and ln 3, so that their weights are
    1/6, 2/6 and 3/6. The values are one-hot, so the weights appear in the result. The first block
    has two keys, the second only one.

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

    Source: Dao et al. 2022, "FlashAttention", section 3.1, https://arxiv.org/abs/2205.14135. Their
    Algorithm 1 has no √d and no mask, cuts the queries into blocks as well, and divides by the sum
    at every step. Dividing once, at the end, comes from FlashAttention-2 (Dao 2023, section 3.1.1,
    https://arxiv.org/abs/2307.08691).
    """
    raise NotImplementedError


def softmax_backward(
    weights: Float[Tensor, "... n"], grad_weights: Float[Tensor, "... n"]
) -> Float[Tensor, "... n"]:
    """Compute by hand the gradient that autograd would find for the scores of a softmax.

        weights      = softmax(scores)             given; the scores are not given
        grad_weights = ∂loss / ∂weights            given
        grad_scores  = ∂loss / ∂scores             wanted
                     = weights · (grad_weights - Σ weights · grad_weights)

    The sum runs over the last dimension: it is the average of grad_weights in a row, weighted by
    the weights. The weights of a row sum to one, so a larger score makes one weight larger and all
    others smaller. This lowers the loss only if the weight's gradient is below the average.

    Why: this is the middle step of `attention_backward`, and the hardest to guess. It needs the
    weights and not the scores, so a framework keeps the result of a softmax and forgets its input.

    Takes:
        weights: (..., n), the result of a softmax: each row sums to one.
        grad_weights: (..., n), how the loss changes with each weight.

    Returns:
        (..., n): how the loss changes with each score. Gradients of these gradients are not tested.

    Rules:
        hidden: A hidden key has a weight of 0, and its score gets a gradient of 0, never NaN.
        leading: There may be any number of leading dimensions, or none.
        forbidden: Autograd is off limits in any form.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `weights` and `grad_weights` stay as they were.

    Example: three weights, and a loss that grows with the first weight only. The average is
    0.5 · 4 = 2. The gradients 4, 0 and 0 differ from it by 2, -2 and -2, and each difference is
    multiplied by its weight.

    >>> softmax_backward(torch.tensor([0.5, 0.25, 0.25]), torch.tensor([4.0, 0.0, 0.0]))
    tensor([ 1.0000, -0.5000, -0.5000])

    Source: Dao et al. 2022, "FlashAttention", appendix B.2, https://arxiv.org/abs/2205.14135.
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
    """Compute by hand the gradients that autograd would find for attention.

        output       = softmax(queries · keysᵀ / √d) · values        no mask
        grad_output  = ∂loss / ∂output                               given
        grad_queries = ∂loss / ∂queries,   grad_keys = ∂loss / ∂keys,
        grad_values  = ∂loss / ∂values                               wanted

    Go back through three steps, beginning with the last. The output is weights · values: which
    gradient do the values get, and which do the weights get? The weights are a softmax:
    `softmax_backward` turns their gradient into that of the scores. The scores are
    queries · keysᵀ / √d: which gradients do the queries and the keys get?

    Why: `.backward()` does this for you. But a fast attention needs its backward pass written by
    hand, because autograd would keep the whole matrix of weights from the forward pass.

    Takes:
        queries: (batch, tokens, d).
        keys: (batch, tokens, d).
        values: (batch, tokens, d).
        grad_output: (batch, tokens, d), how the loss changes with each number of the output.

    Returns:
        A tuple of three, in this order. Gradients of these gradients are not tested.
        grad_queries: (batch, tokens, d).
        grad_keys: (batch, tokens, d).
        grad_values: (batch, tokens, d).

    Rules:
        forbidden: Autograd is off limits in any form, and so are ready-made attention functions;
            torch's softmax is welcome.
        loops: The number of operations does not grow with the number of tokens; each element that
            leaves torch through .item(), .tolist(), .numpy() or float() counts as one operation.
        cost: The work is at most sixteen times the work of the forward pass, whose two products
            take 2 · batch · tokens² · d multiply-adds; the chain rule needs about four times as
            much as the forward pass. What Python and NumPy compute is not counted, so at most 32
            numbers may leave torch.
        large: Scores may be as large as ±110, and all scores of a query may be near -110.
        dtype: float64 in, float64 out, in full precision, though the root may be taken in float32.
        unchanged: `queries`, `keys`, `values` and `grad_output` stay as they were.

    Example: the queries are zero, so each token gives both keys the weight 1/2, and the output is
    the mean of the values. A gradient of 1 arrives at the first feature of the first output, and
    each value gets half of it. The gradient of the first query points towards the first key, whose
    value is larger. The keys get a gradient of 0, because a query of zero has the same score for
    every key.

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

    Source: Dao et al. 2022, "FlashAttention", appendix B.2, https://arxiv.org/abs/2205.14135. The
    derivation there has no √d: find out where √d belongs.
    """
    raise NotImplementedError


def linear_attention(
    queries: Float[Tensor, "batch tokens d_k"],
    keys: Float[Tensor, "batch tokens d_k"],
    values: Float[Tensor, "batch tokens d_v"],
) -> Float[Tensor, "batch tokens d_v"]:
    """Compute attention with products of features as weights, and never store the weights.

        φ(x)   = elu(x) + 1
        out[i] = Σⱼ (φ(queries[i]) · φ(keys[j])) values[j] / Σⱼ φ(queries[i]) · φ(keys[j])

    In softmax attention, the weight of a key is exp(q · k / √d), divided by the sum over all keys.
    Here it is φ(q) · φ(k), divided by the sum over all keys; there is no √d and no mask. φ is
    applied to each number: it is x + 1 for positive x and exp(x) for other x, so never negative.

    To avoid the matrix of weights, multiply in another order: (φ(Q)φ(K)ᵀ)V equals φ(Q)(φ(K)ᵀV). The
    size of φ(K)ᵀV does not depend on the number of tokens. Avoid the matrix also when you compute
    the sum of a query's weights.

    Why: the cost is now linear. Twice the tokens take twice the work, not four times. But these
    weights differ from those of a softmax, so a model has to be trained with them.

    Takes:
        queries: (batch, tokens, d_k), all between -10 and 10.
        keys: (batch, tokens, d_k), all between -10 and 10.
        values: (batch, tokens, d_v).

    Returns:
        (batch, tokens, d_v): a weighted mean of the values for each query.

    Rules:
        cost: Work and memory grow no faster than the number of tokens. What Python and NumPy
            compute is not counted, so at most 32 numbers may leave torch, through .item(),
            .tolist(), .numpy(), float() or `if`. An answer that breaks this rule gets at most half
            of the points.
        forbidden: Ready-made attention functions are off limits; `F.elu` is welcome.
        dtype: float64 in, float64 out, in full precision, though you may add 1e-6 to the sum, so
            that it is never 0.
        unchanged: `queries`, `keys` and `values` stay as they were.
        gradients: Gradients flow back to `queries`, `keys` and `values`.

    Example: φ(0) is 1, φ(1) is 2 and φ(2) is 3. The first query (0, 0) becomes (1, 1), and the keys
    become (1, 2) and (3, 1). The products are 3 and 4, so the weights are 3/7 and 4/7. All values
    have 1 in the third column, so the third column of the result is the sum of the weights.

    >>> queries = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
    >>> keys = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
    >>> values = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
    >>> linear_attention(queries, keys, values)
    tensor([[[0.4286, 0.5714, 1.0000],
             [0.3636, 0.6364, 1.0000]]])

    Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2, with the φ of section
    3.2.1, https://arxiv.org/abs/2006.16236. Section 3.3 makes it causal, and section 3.4 turns it
    into a recurrent network.
    """
    raise NotImplementedError
