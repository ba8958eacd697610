"""Unit 10, efficient: attention with less memory and less work.

Attention compares every token with every other, and long texts make that expensive: twice the
tokens, four times the scores. Here you see how much you save by bookkeeping alone. A softmax that
never needs all scores at once leads to attention that never stores the matrix of weights. Its
gradients follow by hand. The last exercise changes the formula, and with it the answer: then no
matrix of weights is needed at all.

This holds for all exercises of this unit. Arguments come by position, in the order of the
signature. You may use your own earlier answers. Where a rule limits operations, work, memory or
how many numbers are read at once, stay with tensors: Python numbers hide the work from the count.

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

    Two numbers describe all scores that a row has seen: `maximum`, the largest of them, and
    `total`, the sum of exp(score - maximum). When a block brings a larger score, the total still
    belongs to the old maximum. Bring it to the new one before you add to it.

    Why: a softmax needs no more than these two numbers of its row. With this step, it can read a
    row of any length a block at a time. The next exercise does so.

    Takes:
        maximum: (...), the largest score so far, -inf if there was none.
        total: (...), the sum of exp(score - maximum) so far, 0 if there was none.
        block: (..., n), the next scores of each row, finite numbers, n ≥ 1.

    Returns:
        A pair (maximum, total): (...), (...), which now count the block too. Rows stay as they
        are: no dimension of size 1 is left for the scores.

    Rules:
        empty: The first state, (-inf, 0), counts as no score at all.
        leading: There may be any number of leading dimensions, or none.
        large: Scores may be as large as ±1000, and a block may lie far above or below what came
            before it.
        forbidden: Torch's softmax, log_softmax, softmin and logsumexp are off limits, and so are
            ready-made attention functions.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: `maximum`, `total` and `block` stay as they were.
        gradients: Gradients of maximum + log(total) flow back to `maximum`, `total` and `block`.

    Example: the scores 1 and 3, and then 2 and 5. After the first block the maximum is 3 and the
    total exp(-2) + 1 = 1.1353. The second has a larger score, 5: the old total becomes
    1.1353 · exp(3 - 5) = 0.1537, and exp(-3) + 1 is added. The last line makes weights of the four
    scores, as a softmax does.

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
    https://arxiv.org/abs/1805.02867. Algorithm 3 there takes one score where this takes a block.
    """
    raise NotImplementedError


def softmax_online(scores: Float[Tensor, "... n"], block_size: int) -> Float[Tensor, "... n"]:
    """Compute a softmax over the last dimension, and read only a block of scores at a time.

        mₖ = max(mₖ₋₁, largest score of block k)
        lₖ = lₖ₋₁ · exp(mₖ₋₁ - mₖ) + Σ exp(score - mₖ)   over block k
        weights = exp(scores - m) / l                    with m and l of the last block

    Read the scores in blocks of `block_size`, and take each block into a running maximum m and a
    running sum l by the step of `online_step`. The last line may read all scores, because it adds
    nothing up.

    Why: a chip has little fast memory, and a row of scores may not fit. Reading it is slow, so one
    reading should do for maximum and sum. `flash_attention` builds on this.

    Takes:
        scores: (..., n), finite numbers, n ≥ 1.
        block_size: int, at least 1; it need not divide n, and it may be larger than n.

    Returns:
        (..., n): the weights, each row with sum one. Gradients are not asked for.

    Rules:
        block: No maximum or sum runs over more than `block_size` scores at once; without this, at
            most half of the points.
        once: Maximum and sum come out of one reading: a block's exponentials are taken before the
            next block's maximum. All maxima first and all sums after them are two readings, and
            earn at most half of the points.
        leading: There may be any number of leading dimensions, or none.
        large: Scores may be as large as ±1000, in whole rows, and the largest may come last.
        forbidden: Torch's softmax, log_softmax, softmin and logsumexp are off limits, and so are
            ready-made attention functions.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: `scores` stays as it was.

    Example: five scores, two at a time. The first two blocks are those of `online_step`, and leave
    the maximum 5 and the sum 1.2034. The last score, 4, adds exp(-1), which makes 1.5713.

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
    """Merge the states of queries for two sets of keys into their state for both sets.

        new   = max(maximum₁, maximum₂)
        total = total₁ · exp(maximum₁ - new) + total₂ · exp(maximum₂ - new)
        mix   = mix₁ · exp(maximum₁ - new) + mix₂ · exp(maximum₂ - new)

    The state of a query says three things about the keys it has met: `maximum`, the largest score;
    `total`, the sum of exp(score - maximum); and `mix`, the sum of exp(score - maximum) · value.
    The mix is not divided by the total: that is done once, at the very end, when
    mix / total is attention over all keys. It does not matter which state comes first.

    A query that has met no key yet has the state (-inf, 0, 0), with a mix of zeros.

    Why: keys can be read in blocks, one after another or all at the same time, and their states
    merged in any order. `flash_attention` reads blocks in a loop; large models spread them over
    several machines. With a causal mask, some queries see no key of a block at all.

    Takes:
        first: (maximum, total, mix), the state of some keys:
            (..., queries), (..., queries), (..., queries, d).
        second: the state for other keys: (..., queries), (..., queries), (..., queries, d).

    Returns:
        A triple (maximum, total, mix), the state of all these keys:
        (..., queries), (..., queries), (..., queries, d).

    Rules:
        empty: Merging with an empty state, (-inf, 0, 0), changes nothing, and two empty states make
            an empty one, never NaN. Some queries may be empty while others are not. Without this,
            at most half of the points.
        leading: There may be any number of leading dimensions, or none.
        large: Maxima may be as large as ±1000, and far from one another.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: Both states stay as they were.
        gradients: Gradients of mix / total and of maximum + log(total) flow back to both states,
            where neither is empty.

    Example: one query. Its first state is that of a key with score 0 and value (1, 0), its second
    that of two keys with score ln 2 and value (0, 1). In the end the keys have weights in the ratio
    1 : 2 : 2.

    >>> first = torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([[1.0, 0.0]])
    >>> second = torch.tensor([2.0]).log(), torch.tensor([2.0]), torch.tensor([[0.0, 2.0]])
    >>> maximum, total, mix = merge_states(first, second)
    >>> maximum, total, mix
    (tensor([0.6931]), tensor([2.5000]), tensor([[0.5000, 2.0000]]))
    >>> mix / total[:, None]
    tensor([[0.2000, 0.8000]])

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3.1,
    https://arxiv.org/abs/1805.02867. It merges maximum and total; the mix is added here.
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
    `merge_states`. Each block has a state of its own, which is merged into it.

    Why: for 4096 tokens, the weights of one head alone are 16 million numbers. A block of 512 keys
    needs an eighth of that, and nothing is approximated.

    Takes:
        queries: (batch, heads, tokens, head_dim).
        keys: (batch, heads, tokens, head_dim).
        values: (batch, heads, tokens, head_dim).
        block_size: int, at least 1; it need not divide the tokens, and it may be larger than their
            number.
        causal: bool, whether a query sees no key that comes after it.

    Returns:
        (batch, heads, tokens, head_dim): a mix of values for each query. Gradients are not asked
        for.

    Rules:
        memory: At a fixed block size no tensor grows faster than the tokens, neither scores nor a
            mask, nor all that you keep together; without this, at most half of the points.
        block: No maximum, sum or softmax runs over more than `block_size` keys at once.
        loops: Loops over blocks of keys and of queries are welcome; a loop over single queries is
            too slow for the largest test.
        large: Scores may be as large as ±200, and all scores of a query may be near -200.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: `queries`, `keys` and `values` stay as they were.

    Example: every query gives the three keys scores of 0, ln 2 and ln 3, so that their weights are
    1/6, 2/6 and 3/6. The values make them visible. The first block holds two keys, the second has
    only one.

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

        weights      = softmax(scores)             given, the scores are not
        grad_weights = ∂loss / ∂weights            given
        grad_scores  = ∂loss / ∂scores             wanted
                     = weights · (grad_weights - Σ weights · grad_weights)

    The sum runs over the last dimension. It is the weighted average of the row's gradients. A
    softmax gives to one score what it takes from the others. So a larger weight lowers the loss
    only if its gradient is below this average.

    Why: this is the middle step of `attention_backward`, and the hardest to guess. It needs the
    weights and not the scores, so a framework keeps the result of a softmax and forgets its input.

    Takes:
        weights: (..., n), the result of a softmax: each row sums to one.
        grad_weights: (..., n), how the loss changes with each weight.

    Returns:
        (..., n): how the loss changes with each score. Gradients of these gradients are not asked
        for.

    Rules:
        hidden: A hidden key has a weight of 0, and its score gets a gradient of 0, never NaN.
        leading: There may be any number of leading dimensions, or none.
        forbidden: Autograd is off limits in any form.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: `weights` and `grad_weights` stay as they were.

    Example: three weights, and a loss that grows with the first one only. The average is
    0.5 · 4 = 2, so the gradients differ from it by 2, -2 and -2.

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

    Go back through three steps, the last one first. The output is weights · values: what arrives at
    the values, and what at the weights? The weights are a softmax: `softmax_backward` takes you
    from the weights to the scores. The scores are queries · keysᵀ / √d: what arrives at the
    queries, and what at the keys?

    Why: `.backward()` does this for you. A fast attention needs this part written by hand, because
    autograd would keep the whole matrix of weights from the forward pass.

    Takes:
        queries: (batch, tokens, d).
        keys: (batch, tokens, d).
        values: (batch, tokens, d).
        grad_output: (batch, tokens, d), how the loss changes with each number of the output.

    Returns:
        A tuple of three, in this order. Gradients of these gradients are not asked for.
        grad_queries: (batch, tokens, d).
        grad_keys: (batch, tokens, d).
        grad_values: (batch, tokens, d).

    Rules:
        forbidden: Autograd is off limits in any form, and so are ready-made attention functions;
            torch's softmax is welcome.
        loops: The number of operations does not grow with the tokens, and each element that leaves
            torch through .item(), .tolist(), float() or iteration counts as one operation.
        cost: The work is at most sixteen times that of the forward pass, whose two products take
            2 · batch · tokens² · d multiply-adds; the chain rule needs about four times.
        large: Scores may be as large as ±110, and all scores of a query may be near -110.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: `queries`, `keys`, `values` and `grad_output` stay as they were.

    Example: the queries are zero, so each token gives both keys the weight 1/2, and the output is
    the mean of the values. A gradient of 1 arrives at the first feature of the first output, and
    each value gets half of it. That output would grow if its query turned towards the first key,
    which has the larger value. The keys get a gradient of 0, because a query of zero has the same
    score for every key.

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
    derivation there has no √d: find out where it belongs.
    """
    raise NotImplementedError


def linear_attention(
    queries: Float[Tensor, "batch tokens d_k"],
    keys: Float[Tensor, "batch tokens d_k"],
    values: Float[Tensor, "batch tokens d_v"],
) -> Float[Tensor, "batch tokens d_v"]:
    """Compute attention whose weights are products of features, and never store their matrix.

        φ(x)   = elu(x) + 1
        out[i] = Σⱼ (φ(queries[i]) · φ(keys[j])) values[j] / Σⱼ φ(queries[i]) · φ(keys[j])

    Softmax attention weighs a key by exp(q · k / √d). Here its weight is φ(q) · φ(k), divided by
    the sum over all keys; there is no √d and no mask. φ is applied to each number: x + 1 for
    positive x and exp(x) for the others, so it is never negative.

    Then change the order: (φ(Q)φ(K)ᵀ)V equals φ(Q)(φ(K)ᵀV). The size of φ(K)ᵀV does not depend on
    the number of tokens. Compute the sum of a query's weights at no higher cost than the rest.

    Why: the cost is now linear. Twice the tokens take twice the work, not four times. The price:
    these are other weights than the softmax's, so a model has to be trained with them.

    Takes:
        queries: (batch, tokens, d_k), all between -10 and 10.
        keys: (batch, tokens, d_k), all between -10 and 10.
        values: (batch, tokens, d_v).

    Returns:
        (batch, tokens, d_v): a weighted mean of the values for each query.

    Rules:
        cost: Work and memory grow no faster than the tokens, and each element that leaves torch
            through .item(), .tolist(), float() or iteration counts as one operation; without this,
            at most half of the points.
        forbidden: Ready-made attention functions are off limits; `F.elu` is welcome.
        dtype: float64 in, float64 out, to its full precision, though 1e-6 may be added
            to the sum, to be on the safe side.
        unchanged: `queries`, `keys` and `values` stay as they were.
        gradients: Gradients flow back to `queries`, `keys` and `values`.

    Example: φ makes 1 of 0, 2 of 1, and 3 of 2. The first query (0, 0) becomes (1, 1), and its
    products with the keys' (1, 2) and (3, 1) are 3 and 4: weights of 3/7 and 4/7. The third column
    shows that the weights sum to one.

    >>> queries = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
    >>> keys = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
    >>> values = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
    >>> linear_attention(queries, keys, values)
    tensor([[[0.4286, 0.5714, 1.0000],
             [0.3636, 0.6364, 1.0000]]])

    Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.2, with the φ of section
    3.2.1, https://arxiv.org/abs/2006.16236. Sections 3.3 and 3.4 make it causal, and a recurrent
    network.
    """
    raise NotImplementedError
