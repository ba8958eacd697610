"""Unit 6, multi-head attention: several small attentions side by side.

One softmax can follow one thought at a time. Several heads, each with its own queries, keys and
values, can watch several things at once. You will write this twice: as a list of heads, easy to
read, and as one wide projection cut into heads, which is what real models run.

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


def split_heads(
    x: Float[Tensor, "batch tokens d_out"], num_heads: int
) -> Float[Tensor, "batch num_heads tokens head_dim=d_out//num_heads"]:
    """Cut the features of every token into heads.

    Each token has d_out features. The first head_dim of them belong to head 0, the next head_dim
    to head 1, and so on, with head_dim = d_out / num_heads. The answer puts the heads in front of
    the tokens: (batch, tokens, d_out) becomes (batch, num_heads, tokens, head_dim).

    Why that order: `@` multiplies the last two dimensions and treats all the others as a
    batch. With heads in front, one product serves every head, and no head meets another.

    Not a number is computed here; each only moves to its place. If d_out is not a multiple of
    num_heads, raise an exception, any ordinary one.

    Two tokens of four features, two heads. Head 0 gets the left half of both tokens:

    >>> x = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
    >>> split_heads(x, 2)
    tensor([[[[0., 1.],
              [4., 5.]],
    <BLANKLINE>
             [[2., 3.],
              [6., 7.]]]])
    """
    raise NotImplementedError


def merge_heads(
    x: Float[Tensor, "batch num_heads tokens head_dim"],
) -> Float[Tensor, "batch tokens num_heads*head_dim"]:
    """Put the heads of every token side by side again.

    This undoes `split_heads`: (batch, num_heads, tokens, head_dim) becomes
    (batch, tokens, num_heads * head_dim). In each token, the features of head 0 come first, then
    those of head 1, and so on.

    Why it deserves an exercise of its own: any reshape gives you the right *shape*. Only one gives
    each token its own features back, and a model with the wrong one still trains, a little badly,
    and never complains.

    Two heads, two tokens, two features a head. The first token is 0, 1 in head 0 and 2, 3 in
    head 1:

    >>> x = torch.tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
    >>> merge_heads(x)
    tensor([[[0., 1., 2., 3.],
             [4., 5., 6., 7.]]])
    """
    raise NotImplementedError


class MultiHeadAttentionWrapper(nn.Module):
    """Run several causal attention heads, and put their answers side by side.

    Make `num_heads` separate causal attentions from the same five settings, give each the whole
    input, and concatenate what they return along the features, head 0 first. Every head is d_out
    wide, so (batch, num_tokens, d_in) becomes (batch, num_tokens, num_heads * d_out).

    Why: heads start from different weights and so learn to look for different things. Adding them
    up would blur that; side by side, nothing is lost.

    You may import the head you already have: `from causal_attention import CausalAttention` works,
    however you arranged your files. Writing it again here is fine too.

    Fine print. The parameters of every head must show up in `.parameters()`, or an optimiser will
    never train them. Names are free, and so is how weights are drawn. Sentences may be shorter than
    `context_length`; longer ones are not tested. In float64, after `.double()`, it takes and gives
    float64. Arguments come by position, in the order below. Ready-made attention functions are off
    limits.

    With every weight matrix the identity both heads agree, and you see the same answer twice:

    >>> attention = MultiHeadAttentionWrapper(2, 2, 4, 0.0, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> attention(x).detach()
    tensor([[[1.0000, 0.0000, 1.0000, 0.0000],
             [0.0558, 1.8884, 0.0558, 1.8884],
             [1.8765, 1.9732, 1.8765, 1.9732]]])
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens num_heads*d_out"]:
        raise NotImplementedError


class MultiHeadAttention(nn.Module):
    """Build multi-head causal attention with one projection for all heads.

    Here d_out is the width of the whole layer, and the heads share it: head_dim = d_out /
    num_heads. The steps: project the input to queries, keys and values, each d_out wide; split
    each into heads; causal attention within every head, with dropout on the weights; merge; and a
    last linear layer, d_out to d_out and with a bias, that mixes what the heads found.
    (batch, num_tokens, d_in) comes in, (batch, num_tokens, d_out) goes out.

    Why not the list of heads from before: one large product keeps a GPU far busier than many small
    ones. This is the layer inside GPT-like models.

    Fine print. Scores are divided by the square root of the length of the vectors that were
    multiplied: ask yourself which that is. Queries, keys and values have a bias only if `qkv_bias`.
    Construction raises an exception, any ordinary one, when num_heads does not divide d_out.
    Sentences may be shorter than `context_length`; longer ones are not tested. Dropout acts in
    training only. The mask is a buffer, or built in `forward` on the input's device. Names of
    parameters are free, and queries, keys and values may share one fused layer. In float64, after
    `.double()`, it takes and gives float64. Arguments come by position, in the order below.
    Ready-made attention functions are off limits; your own earlier answers are not.

    With identity matrices and zero biases, two heads of two features. The second token shares its
    attention differently in the two halves, for each head has a softmax of its own:

    >>> attention = MultiHeadAttention(4, 4, 4, 0.0, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 0.0000, 1.0000],
             [0.0558, 1.8884, 0.6698, 1.0000]]])
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens d_out"]:
        raise NotImplementedError
