"""Unit 7, cross-attention: two sequences, and sentences of unequal length.

So far a sequence looked at itself. A translator looks at another one: each word that it writes
asks the sentence that it translates. Here you build that attention, and then the encoder that
reads the sentence in both directions. Sentences of a batch are seldom equally long, so you begin
with a mask for the tokens that only fill up the shorter ones.

Masks in this kit are boolean and True where a query may NOT look, just as `masked_fill` wants
them. `F.scaled_dot_product_attention` means the opposite by True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int64
    from torch import Tensor


def padding_mask(
    lengths: Int64[Tensor, " batch"], num_tokens: int
) -> Bool[Tensor, "batch tokens=num_tokens"]:
    """Mark the padding of every sentence in a batch.

    A batch is one tensor, so all of its sentences have num_tokens tokens. Shorter ones are filled
    up at the end with tokens that mean nothing, called padding. `lengths` says how many tokens of
    each sentence are real: a length of 3 means that tokens 0, 1 and 2 are, and all others are not.
    The answer is True on padding and False on real tokens.

    Why: nobody should listen to padding. The layers of this unit take such a mask and hide those
    tokens, so that a sentence gets the same answer however much padding it travels with.

    `lengths` holds whole numbers (int64) and has shape (batch,); the answer is boolean,
    (batch, num_tokens), and on the device of `lengths`.

    Fine print: a length may be num_tokens, and nothing is padding then, or 0, and all of it is.

    Three sentences in a batch of four tokens, with four, two and no real tokens:

    >>> padding_mask(torch.tensor([4, 2, 0]), 4)
    tensor([[False, False, False, False],
            [False, False,  True,  True],
            [ True,  True,  True,  True]])
    """
    raise NotImplementedError


class CrossAttention(nn.Module):
    """Build multi-head attention from one sequence to another.

    Two sequences come in: `x`, whose tokens ask, and `context`, whose tokens answer. Queries are
    projections of `x`; keys and values are projections of `context`. From there on it is what you
    know: split into heads, scores divided by the square root of head_dim = d_out / num_heads,
    softmax over the keys, values mixed, heads merged, and a last linear layer, d_out to d_out.

    Why: this is how a decoder reads what the encoder understood, and how a picture that is being
    painted listens to its caption. The two may differ in length and in width. There is one answer
    for each token of `x`, however many tokens the context has.

    `x` is (batch, queries, d_query), `context` is (batch, keys, d_context), and
    (batch, queries, d_out) comes out. `context_mask`, if there is one, is boolean and has shape
    (batch, keys): True hides that token of the context from all queries and heads of its own
    sentence. Without it, or with None, every query sees the whole context. Nothing is causal here:
    the two sequences do not share a clock.

    Fine print. Queries, keys and values have no bias, the last layer has one. There is no dropout.
    num_heads divides d_out in all tests, and every sentence keeps at least one visible token.
    Inputs stay as they were. Names of parameters are free, and keys and values may share one fused
    layer. In float64, after `.double()`, it takes and gives float64; moved to another device, it
    takes inputs from there. Arguments come by position, in the order below. Ready-made attention
    functions are off limits; your own earlier answers are not.

    Source: "encoder-decoder attention" in Vaswani et al. 2017, section 3.2.3. In that paper both
    sequences are equally wide, and the projections are written without any bias (section 3.2.2).

    With matrices of ones on the diagonal and zeros elsewhere, one head, and zero biases. The
    context is wider than x, and its third features are cut off by the projections. The last token
    of the context is hidden, and so two are left to choose from:

    >>> attention = CrossAttention(2, 3, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    >>> context = torch.tensor([[[1.0, 0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 3.0, 5.0]]])
    >>> attention(x, context, torch.tensor([[False, False, True]])).detach()
    tensor([[[0.6698, 0.3302],
             [0.1956, 0.8044]]])
    """

    def __init__(self, d_query: int, d_context: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch queries d_query"],
        context: Float[Tensor, "batch keys d_context"],
        context_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch queries d_out"]:
        raise NotImplementedError


class EncoderSelfAttention(nn.Module):
    """Build multi-head self-attention that looks both ways, and never at padding.

    Take your MultiHeadAttention and delete the causal mask: every token now sees all tokens of its
    sentence, the later ones too. What is left to hide is padding. The steps: project, split into
    heads, scores divided by the square root of head_dim = d_out / num_heads, padded keys hidden,
    softmax over the keys, values mixed, heads merged, and a last linear layer, d_out to d_out.

    Why: an encoder reads a sentence that is already there in full. Nothing has to be guessed, so
    there is no future to hide, and "bank" may be understood by the word that comes after it.

    `x` is (batch, tokens, d_in), and (batch, tokens, d_out) comes out. `padding`, if there is one,
    is boolean and has shape (batch, tokens), as `padding_mask` makes it: True on padding. Without
    it, or with None, every token counts.

    Fine print. Padding is hidden as a *key*. As a query it may see what it likes: outputs at padded
    positions are not looked at, and may be anything. Gradients of all weights must be finite even
    so, and NaN at a padded position has a way of reaching them. What the padded tokens hold must
    not change the outputs of real ones. Each sentence has at least one real token, and padding may
    stand anywhere. Queries, keys and values have no bias, the last layer has one; there is no
    dropout and no longest sentence. num_heads divides d_out in all tests. Inputs stay as they were.
    Names of parameters are free, and queries, keys and values may share one fused layer. In
    float64, after `.double()`, it takes and gives float64; moved to another device, it takes inputs
    from there. Arguments come by position, in the order below. Ready-made attention functions are
    off limits; your own earlier answers are not.

    Source: the self-attention of the encoder in Vaswani et al. 2017, section 3.2.3, where each
    position sees all others. Hiding padding comes with batches; that section does not speak of it.

    Identity matrices, zero biases, two heads of two features. The third token is padding. The first
    token listens to the second, which comes after it:

    >>> attention = EncoderSelfAttention(4, 4, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0]]])
    >>> padding = torch.tensor([[False, False, True]])
    >>> attention(x, padding)[:, :2].detach()
    tensor([[[0.6698, 0.6605, 0.5000, 1.0000],
             [0.0558, 1.8884, 0.6698, 1.0000]]])
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        padding: Bool[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens d_out"]:
        raise NotImplementedError
