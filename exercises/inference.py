"""Unit 9, fast decoding: attention for a model that writes one token at a time.

In training, all tokens of a sentence are there at once. When a model writes, tokens come one after
another, and each new token looks back at all earlier tokens. The keys and values of the past must
be stored, and read again at every step, which takes more time than the arithmetic. Here you build
three remedies of today's models: store keys and values, share them among heads, and compress them.

This holds for all modules of this unit. A head is a range of features: head h has the features
h · head_dim to (h + 1) · head_dim - 1, where head_dim is d_out / num_heads. There is no dropout. A
sentence may have any length up to 256 tokens. Names and initial values of parameters are free,
projections may share one layer, and layers may be bare parameters. Arguments come by position, in
the order of the signature. You may use your own earlier answers.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


def repeat_kv(
    x: Float[Tensor, "batch kv_heads tokens head_dim"], groups: int
) -> Float[Tensor, "batch kv_heads*groups tokens head_dim"]:
    """Repeat every head of keys (or values), so that neighbouring query heads find the same head.

        out[b, h, t, e] = x[b, h // groups, t, e]

    With groups = 2, heads a and b become a, a, b, b. No number is computed; each number is only
    repeated. The result may be a copy, or a view of the same memory.

    Why: query heads 0 and 1 share head a, query heads 2 and 3 share head b. The order a, b, a, b
    has the same shape, but most query heads would look at the wrong keys.

    Takes:
        x: (batch, kv_heads, tokens, head_dim), keys or values of a few heads.
        groups: int, how many query heads share a head of keys and values, at least 1.

    Returns:
        (batch, kv_heads*groups, tokens, head_dim): every head `groups` times, copies side by side.

    Rules:
        dtype: The copies keep the dtype of `x`, and every digit of its numbers.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`: a head's gradient is the sum over its copies.

    Example: two heads, with one token of two features each. Only the heads are printed.

    >>> x = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    >>> repeat_kv(x, 2)[0, :, 0]
    tensor([[1., 2.],
            [1., 2.],
            [3., 4.],
            [3., 4.]])

    Source: Ainslie et al. 2023, "GQA", section 2.2, https://arxiv.org/abs/2305.13245.
    """
    raise NotImplementedError


class GroupedQueryAttention(nn.Module):
    """Compute causal multi-head attention in which groups of query heads share keys and values.

        queries = W_query(x)   keys = W_key(x)   values = W_value(x)
        head[h] = softmax(queries[h] · keys[g]ᵀ / √head_dim) · values[g]
                  where g = h // (num_heads / num_kv_heads)
        out     = W_out(head[0], head[1], …)

    The queries have `num_heads` heads, keys and values only `num_kv_heads`. All heads have
    head_dim = d_out / num_heads features. A token attends to itself and to the tokens before it.
    At the end the heads are side by side again, and a linear layer W_out, d_out to d_out, mixes
    them. You need not copy any keys, as long as the numbers are right.

    Why: a model that writes keeps the keys and values of every token that it has seen. With 8 query
    heads for each head of keys and values, it keeps and reads only an eighth as many numbers, and
    is almost as good. num_kv_heads = 1 is called multi-query attention; num_kv_heads = num_heads is
    multi-head attention.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the number of features of an output token, a multiple of num_heads.
        num_heads: int, the number of query heads, a multiple of num_kv_heads.
        num_kv_heads: int, the number of heads of keys and of values.

    Takes:
        x: (batch, tokens, d_in), sentences of any length.

    Returns:
        (batch, tokens, d_out): one vector for each token.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        length: A sentence may have any length up to 256 tokens, and each call may have another
            length.
        bias: W_query, W_key and W_value have no bias; the last layer has a bias. Nothing else is
            learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: identity matrices and zero biases. Two query heads share one head of keys and values:
    the first two features of every token. For the second token, head 0 asks with (0, 2) and head 1
    with (1, 1), so they weigh the same two values differently.

    >>> attention = GroupedQueryAttention(4, 4, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 1.0000, 0.0000],
             [0.0558, 1.8884, 0.3302, 1.3395]]])

    Source: Ainslie et al. 2023, "GQA", section 2.2, https://arxiv.org/abs/2305.13245; for one head
    of keys and values, Shazeer 2019, section 3, https://arxiv.org/abs/1911.02150. The bias of the
    last layer is this kit's choice.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        raise NotImplementedError


def causal_mask_after(seen: int, tokens: int) -> Bool[Tensor, "tokens seen+tokens"]:
    """Build the causal mask for new tokens that have a past.

        mask[i, j] = True    for j > seen + i: key j comes after query i, and is hidden
        mask[i, j] = False   for j ≤ seen + i

    Rows are the new tokens only. Columns are all keys: first the `seen` keys of the past, then the
    new keys. New token i is at position seen + i of the text, so it may look at the whole past, at
    itself and at the new tokens before it. Without a past the mask is square:
    `causal_mask_after(0, tokens)` is `causal_mask(tokens)`.

    Why: a model that writes has the keys of the past in a cache, and queries for the new tokens
    only. So its mask has fewer rows than columns, and the triangle belongs in the bottom right
    corner. In the top left corner it would hide the past.

    Takes:
        seen: int, 0 or more, the number of earlier tokens.
        tokens: int, 1 or more, the number of new tokens.

    Returns:
        bool (tokens, seen+tokens): True where the query may not look.

    Example: two new tokens after three earlier tokens. The first new token may not look at the last
    key, which belongs to the second. The second new token sees all keys.

    >>> causal_mask_after(3, 2)
    tensor([[False, False, False, False,  True],
            [False, False, False, False, False]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3,
    https://arxiv.org/abs/1706.03762, for a mask without a past.
    """
    raise NotImplementedError


class CachedAttention(nn.Module):
    """Compute causal multi-head attention for new tokens, whose past comes as a cache.

        queries = W_query(x)
        keys    = the keys of the cache, then W_key(x)
        values  = the values of the cache, then W_value(x)
        head[h][i] = Σⱼ weights[h][i, j] · values[h][j]      over j ≤ seen + i
        weights[h][i, j] ∝ exp(queries[h][i] · keys[h][j] / √head_dim), with sum 1 over j ≤ seen + i
        out     = W_out(head[0], head[1], …)

    `seen` is the number of tokens in the cache, or 0 without a cache. Only the new tokens are
    projected. The tokens of a text may come one at a time, or in chunks of any size: every token
    gets the output that it gets when all tokens come at once.

    Think about the mask. The new tokens are the *last* tokens: query i is at position seen + i, so
    it sees the whole cache, itself and the new tokens before it. The scores of a head are
    (tokens, seen + tokens), no longer square. A mask whose triangle starts in the top left corner
    hides the wrong keys; `causal_mask_after` builds the right mask.

    Why: a model writes one token at a time. Without a cache, it would project all earlier tokens
    again for every new one. With a cache, it only reads their keys and values.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the number of features of an output token, a multiple of num_heads.
        num_heads: int, the number of heads of queries, keys and values.

    Takes:
        x: (batch, tokens, d_in), the new tokens.
        cache: the pair (keys, values) of an earlier call, of shapes
            (batch, num_heads, seen, head_dim), (batch, num_heads, seen, head_dim), or None if
            there is no past.

    Returns:
        A pair (out, cache). `out` is (batch, tokens, d_out), for the new tokens only. The new cache
        is the pair (keys, values) for all tokens so far, total = seen + tokens:
        (batch, num_heads, total, head_dim), (batch, num_heads, total, head_dim). Your cache may
        hold other numbers than keys and values, as long as it has these shapes.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        length: With the past, a text may have any length up to 256 tokens.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        bias: W_query, W_key and W_value have no bias; the last layer has a bias. Nothing else is
            learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, the cache too; the root may be
            taken in float32.
        unchanged: `x` and the cache that comes in stay as they were.
        gradients: Gradients flow to the input and to every parameter, with a cache too.
        cost: The past is not projected again: a new token after 64 tokens takes at most twice the
            work of a new token after 16. What Python and NumPy compute is not counted, so at most
            32 numbers may leave torch, through .item(), .tolist(), .numpy(), float() or `if`.

    Example: identity matrices and zero biases; two tokens first, and then a third. When all three
    tokens come at once, the third gets the same output as in the last line.

    >>> attention = CachedAttention(2, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> out, cache = attention(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]))
    >>> out.detach()
    tensor([[[1.0000, 0.0000],
             [0.0558, 1.8884]]])
    >>> out, cache = attention(torch.tensor([[[2.0, 2.0]]]), cache)
    >>> out.detach()
    tensor([[[1.8765, 1.9732]]])

    Source: Shazeer 2019, "Fast Transformer Decoding", section 2.4,
    https://arxiv.org/abs/1911.02150. There, one token comes at a time; chunks are added here.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        cache: tuple[
            Float[Tensor, "batch num_heads seen head_dim"],
            Float[Tensor, "batch num_heads seen head_dim"],
        ]
        | None = None,
    ) -> tuple[
        Float[Tensor, "batch tokens d_out"],
        tuple[
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
        ],
    ]:
        raise NotImplementedError


class LatentAttention(nn.Module):
    """Compute causal multi-head attention whose keys and values are made from one small vector.

        queries = W_query(x)          latent = W_down(x)
        keys    = W_up_key(latent)    values = W_up_value(latent)
        head[h] = softmax(queries[h] · keys[h]ᵀ / √head_dim) · values[h]
        out     = W_out(head[0], head[1], …)

    W_down maps d_in to d_latent, W_up_key and W_up_value map d_latent to d_out. The latent is used
    as it is, without a norm or an activation. The rest is multi-head attention: head_dim is
    d_out / num_heads, a token attends to itself and to the tokens before it, and a linear layer
    W_out, d_out to d_out, mixes the heads at the end.

    A query times (W_up_key times latent) is (query times W_up_key) times latent. So you may compare
    queries with latents, without unpacking the keys. The numbers are the same in both ways, and so
    is the scale √head_dim.

    Why: a model that writes has to keep only the latents, because keys and values can be unpacked
    again. A latent has d_latent numbers for each token instead of 2 · d_out, and yet every head has
    keys and values of its own.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the number of features of an output token, a multiple of num_heads.
        num_heads: int, the number of heads of queries, keys and values.
        d_latent: int, the number of features of a latent, small or large.

    Takes:
        x: (batch, tokens, d_in), sentences of any length.

    Returns:
        (batch, tokens, d_out): one vector for each token.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        length: A sentence may have any length up to 256 tokens, and each call may have another
            length.
        bias: Only the last layer has a bias. Nothing else is learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: identity matrices and zero biases. A latent of two numbers holds the first two features
    of a token. The other two features are lost, so head 1 has only zeros.

    >>> attention = LatentAttention(4, 4, 2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 0.0000, 0.0000],
             [0.0558, 1.8884, 0.0000, 0.0000]]])

    Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.2, https://arxiv.org/abs/2405.04434.
    DeepSeek-V2 also compresses its queries, puts a norm on the latent, and gives queries and keys a
    few more features for positions. These three steps are left out here.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, d_latent: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        raise NotImplementedError
