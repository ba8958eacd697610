"""Unit 9, fast decoding: attention for a model that writes token by token.

While training, all tokens of a sentence are there at once. When a model writes, they come one
after another, and each new one has to look back at all the others. What costs time then is no
longer the arithmetic: it is the keys and values of the past, which must be kept somewhere and
fetched again at every step. Here you learn the three answers that today's models give: keep them,
share them among heads, squeeze them.

Masks in this kit are boolean and True where a query may NOT look, just as `masked_fill` wants
them. `F.scaled_dot_product_attention` means the opposite by True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def repeat_kv(
    x: Float[Tensor, "batch kv_heads tokens head_dim"], groups: int
) -> Float[Tensor, "batch kv_heads*groups tokens head_dim"]:
    """Repeat every head, so that neighbouring query heads find the same one.

    `x` holds keys (or values) for a few heads: (batch, kv_heads, tokens, head_dim). There are
    `groups` times as many query heads, and each needs a head of keys to look at. So write every
    head `groups` times, its copies next to one another: heads a, b and groups = 2 become a, a, b,
    b. The answer is (batch, kv_heads * groups, tokens, head_dim).

    Why the copies are neighbours: query heads 0 and 1 share head a, query heads 2 and 3 share
    head b. In the order a, b, a, b the shape is the same, and every query head but the first and
    the last would look at somebody else's keys.

    Not a number is computed here; each is only written more than once. Whether your copies are
    real or a view of the same memory is your choice. `x` itself stays as it was, and gradients
    flow: a head's gradient is the sum over its copies.

    Two heads with one token of two features each; only the heads are printed:

    >>> x = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    >>> repeat_kv(x, 2)[0, :, 0]
    tensor([[1., 2.],
            [1., 2.],
            [3., 4.],
            [3., 4.]])
    """
    raise NotImplementedError


class GroupedQueryAttention(nn.Module):
    """Build multi-head causal attention in which several query heads share keys and values.

    There are `num_heads` heads of queries, as before, and only `num_kv_heads` heads of keys and
    values. The first num_heads / num_kv_heads query heads form a group and share the first head
    of keys and values, the next as many share the second, and so on. All heads are equally wide:
    head_dim = d_out / num_heads.

    The steps: project the input to queries, d_out wide, and to keys and values, each num_kv_heads
    * head_dim wide; split them into heads; give every query head the keys and values of its
    group; causal attention within each of the num_heads heads; merge; and a last linear layer,
    d_out to d_out. (batch, tokens, d_in) comes in, (batch, tokens, d_out) goes out.

    Why: a model that writes keeps the keys and values of every token it has seen. With 8 query
    heads for each head of keys and values there is an eighth to keep and to fetch, and the model
    is almost as good. With num_kv_heads = 1 this is called multi-query attention, and with
    num_kv_heads = num_heads it is the multi-head attention that you know.

    Fine print. Scores are divided by the square root of head_dim. Queries, keys and values have
    no bias, the last layer has one; there is no dropout. num_heads is a multiple of num_kv_heads
    and d_out one of num_heads: other values are not tested. A sentence may have any length. The
    mask belongs on the device of the input. You need not copy any keys, as long as the numbers
    are right. Names of parameters are free, and projections may share one fused layer. In
    float64, after `.double()`, it takes and gives float64. Arguments come by position, in the
    order below. Ready-made attention functions are off limits; your own earlier answers are not.

    Source: Ainslie et al. 2023, section 2.2, and for a single head of keys and values Shazeer
    2019, section 3. The bias of the last layer is this kit's.

    With identity matrices and zero biases, two query heads share one head of keys and values: the
    first two features of every token. For the second token, head 0 asks with (0, 2) and head 1
    with (1, 1), so they weigh the same two values differently:

    >>> attention = GroupedQueryAttention(4, 4, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 1.0000, 0.0000],
             [0.0558, 1.8884, 0.3302, 1.3395]]])
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        raise NotImplementedError


class CachedAttention(nn.Module):
    """Build multi-head causal attention that need not read the past again.

    Without a cache it is the multi-head attention of unit 6. But it returns a pair: the output,
    and a cache to be handed in with the tokens that come next. Fed one token at a time, or in
    chunks of any size, it gives each token the output that it gets when all come at once.

    The cache is a pair itself, (keys, values), each (batch, num_heads, seen, head_dim), where
    `seen` counts the tokens so far. The steps: project the *new* tokens to queries, keys and
    values; split into heads; put the new keys behind those of the cache, and the new values
    behind theirs; let the new queries look at all of it; merge; and a last linear layer. What is
    returned is (out, cache): `out` is (batch, tokens, d_out) for the new tokens, and the new
    cache holds seen + tokens keys and values.

    Why: a model writes one token at a time. Without a cache, it would project all the earlier
    tokens again for every new one, only to get the keys and values that it had a moment ago.

    Think about the mask. The new tokens are the *last* ones: query i stands at position seen + i.
    So it sees all of the cache, itself, and those new tokens that come before it. (tokens, seen +
    tokens) is no longer square, and a mask whose triangle starts in the top left corner hides the
    wrong keys. A single new token has nothing to hide at all.

    Fine print. Everything to remember is in the cache: the module itself remembers nothing, for
    it may be asked to go on with one text, then with another. The cache that comes in stays as it
    was, so that two continuations can start from it. Leaving `cache` out and passing None mean
    the same. What stands in your cache is up to you, as long as its shapes are those above and
    the past is not projected again. Scores are divided by the square root of head_dim = d_out /
    num_heads. Queries, keys and values have no bias, the last layer has one; no dropout. The mask
    belongs on the device of the input. Names of parameters are free, and projections may share
    one fused layer. In float64, after `.double()`, it takes and gives float64. Arguments come by
    position, in the order below. Ready-made attention functions are off limits; your own earlier
    answers are not.

    Source: Shazeer 2019, section 2.4. There, one token comes at a time; chunks are added here.

    With identity matrices and zero biases, two tokens first and then a third. The last line is
    what the third token gets when all three come at once:

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
    """Build multi-head causal attention whose keys and values come out of one small vector.

    A linear layer squeezes every token into its *latent*, d_latent numbers. Two more layers
    unpack keys and values from it, for all heads. From there on it is the attention that you
    know. With each W a linear layer without bias:

    - queries = W_query(x), d_in to d_out
    - latent = W_down(x), d_in to d_latent
    - keys = W_up_key(latent), d_latent to d_out
    - values = W_up_value(latent), d_latent to d_out

    Then split into heads, causal attention in each, merge, and a last linear layer, d_out to
    d_out and with a bias. (batch, tokens, d_in) comes in, (batch, tokens, d_out) goes out.

    Why: a model that writes has to keep only the latents, for keys and values can be unpacked
    again. Every head still has keys and values of its own, and there are only d_latent numbers to
    keep for a token instead of 2 * d_out. And when you multiply it out, a query times (W_up_key
    times latent) is (query times W_up_key) times latent: one may look at the latents without
    unpacking any keys. You may do so here, or unpack them: the numbers are the same.

    Fine print. Scores are divided by the square root of head_dim = d_out / num_heads, also where
    you do not unpack the keys. The latent is used as it is: no norm, no activation. No dropout. A
    sentence may have any length. The mask belongs on the device of the input. Names of parameters
    are free, and the layers that unpack may be one. In float64, after `.double()`, it takes and
    gives float64. Arguments come by position, in the order below. Ready-made attention functions
    are off limits; your own earlier answers are not.

    Source: DeepSeek-AI 2024 (DeepSeek-V2), section 2.1, of which this is the core. The model
    itself also squeezes its queries, puts a norm on the latent, and carries positions in a few
    more features of queries and keys, beside those that come from the latent. All three are left
    out.

    With identity matrices and zero biases, a latent of two numbers holds the first two features
    of a token. The other two never get through, and head 1 is left with zeros:

    >>> attention = LatentAttention(4, 4, 2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 0.0000, 0.0000],
             [0.0558, 1.8884, 0.0000, 0.0000]]])
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, d_latent: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        raise NotImplementedError
