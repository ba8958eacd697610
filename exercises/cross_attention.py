"""Unit 7, cross-attention: two sequences, and sentences of unequal length.

So far a sequence attended to itself. A translator attends to another sequence: each word that it
writes asks the sentence that it translates. Here you build that attention, and then the encoder
that reads the sentence in both directions. Sentences of a batch are seldom equally long, so you
begin with a mask for the tokens that only fill up the shorter sentences.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.

Arguments are passed by position, in the order of the signatures. Names and initial values of a
module's parameters are free. Projections of the same sequence may share one fused layer, and
layers may be bare parameters.
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

        mask[b, t] = True     where t ≥ lengths[b]: the token is padding
        mask[b, t] = False    where t < lengths[b]: it is a real token

    A batch is one tensor, so all of its sentences have num_tokens tokens. Shorter sentences are
    filled up at the end with tokens that mean nothing, called padding.

    Why: no token should attend to padding. The modules of this unit take such a mask and hide the
    marked tokens, so that a sentence gets the same result however much padding follows it.

    Takes:
        lengths: int (batch,), how many tokens of each sentence are real, from 0 (only padding)
            to num_tokens (no padding).
        num_tokens: int, the number of tokens in every row of the batch.

    Returns:
        bool (batch, tokens): True on padding, in num_tokens columns.

    Rules:
        device: The mask is on the device of `lengths`.
        unchanged: `lengths` stays as it was.

    Example: a batch of three rows with four tokens each, of which four, two and none are real.

    >>> padding_mask(torch.tensor([4, 2, 0]), 4)
    tensor([[False, False, False, False],
            [False, False,  True,  True],
            [ True,  True,  True,  True]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3,
    https://arxiv.org/abs/1706.03762, hide later tokens by minus infinity before the softmax.
    Padding, which the paper does not mention, is hidden in the same way.
    """
    raise NotImplementedError


class CrossAttention(nn.Module):
    """Compute multi-head attention from one sequence to another.

        queries, keys, values = W_query(x), W_key(context), W_value(context)
        headₕ = softmax(queriesₕ keysₕᵀ / √head_dim) valuesₕ   over visible keys
        out = out_proj([ head₀ | head₁ | … ])

    W_query, W_key, W_value and out_proj are linear layers, each d_out wide, and head_dim is
    d_out / num_heads. The tokens of `x` ask, and the tokens of `context` answer. The two sequences
    may differ in length and in width: each token of `x` gets one result, however many tokens the
    context has.

    Nothing is causal, because positions in one sequence say nothing about positions in the other.
    There is no dropout.

    Why: a decoder reads the encoder's results in this way, and a model that paints a picture reads
    the caption.

    Made with:
        d_query: int, the number of features of a token of x.
        d_context: int, the number of features of a token of the context.
        d_out: int, the width of the layer, all heads together.
        num_heads: int, the number of heads; it divides d_out in all tests.

    Takes:
        x: (batch, queries, d_query), the sequence that asks.
        context: (batch, keys, d_context), the sequence that answers.
        context_mask: bool (batch, keys) or None, by default None; True hides that token of the
            context from all queries and heads of its own sentence. None hides nothing. Every
            sentence keeps at least one visible token.

    Returns:
        (batch, queries, d_out): one vector per token of x.

    Rules:
        forbidden: Ready-made attention (`F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`) is off limits; torch's softmax and your own functions are
            welcome.
        hidden: The content of a hidden token of the context changes no output.
        batch: Sentences of a batch never see one another.
        heads: Heads never see one another before `out_proj`, however large a head's scores are.
        bias: Queries, keys and values have no bias, and `out_proj` has a bias. Nothing else is
            learned.
        device: After a move to another device, the module takes inputs and the mask from there.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x`, `context` and `context_mask` stay as they were.
        gradients: Gradients flow to both sequences and to every parameter.
        large: Scores in the hundreds cause no overflow; scores of hidden tokens are at most 80
            higher than scores of visible tokens.

    Example: matrices with ones on the diagonal and zeros elsewhere, one head, zero biases. The
    context is wider than x, and the projections cut off its third feature. The last token of the
    context is hidden, so two tokens are left to attend to.

    >>> attention = CrossAttention(2, 3, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    >>> context = torch.tensor([[[1.0, 0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 3.0, 5.0]]])
    >>> attention(x, context, torch.tensor([[False, False, True]])).detach()
    tensor([[[0.6698, 0.3302],
             [0.1956, 0.8044]]])

    Source: "encoder-decoder attention" in Vaswani et al. 2017, "Attention Is All You Need",
    section 3.2.3, https://arxiv.org/abs/1706.03762. In the paper, both sequences are equally wide,
    and the projections have no bias (section 3.2.2).
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
    """Compute multi-head self-attention that looks both ways, and never at padding.

        queries, keys, values = W_query(x), W_key(x), W_value(x)
        headₕ = softmax(queriesₕ keysₕᵀ / √head_dim) valuesₕ    over real tokens
        out = out_proj([ head₀ | head₁ | … ])

    W_query, W_key, W_value and out_proj are linear layers, each d_out wide, and head_dim is
    d_out / num_heads. This is your MultiHeadAttention without the causal mask and without dropout:
    every token sees all real tokens of its sentence, also later tokens.

    Padding is hidden as a *key*. As a query, a padded token may see anything.

    Why: an encoder reads a sentence that is already complete. There is no future to hide, and
    "bank" can be understood by the word that comes after it.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the width of the layer, all heads together.
        num_heads: int, the number of heads; it divides d_out in all tests.

    Takes:
        x: (batch, tokens, d_in), a batch of sentences.
        padding: bool (batch, tokens) or None, by default None; True marks padding, as in
            `padding_mask`, but padding may be anywhere in a sentence. None means that every token
            is real. Each sentence has at least one real token.

    Returns:
        (batch, tokens, d_out): one vector per token.

    Rules:
        forbidden: Ready-made attention (`F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`) is off limits; torch's softmax and your own functions are
            welcome.
        hidden: The content of a padded token changes no output of a real token.
        padded: Outputs at padded positions are not compared, but they must never be NaN: a NaN
            would spoil all gradients.
        length: Sentences may have any length, from one token on.
        batch: Sentences of a batch never see one another.
        heads: Heads never see one another before `out_proj`, however large a head's scores are.
        bias: Queries, keys and values have no bias, and `out_proj` has a bias. Nothing else is
            learned.
        device: After a move to another device, the module takes inputs and the padding from there.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` and `padding` stay as they were.
        gradients: Gradients flow to the input and to every parameter.
        large: Scores in the hundreds cause no overflow; scores of hidden tokens are at most 80
            higher than scores of visible tokens.

    Example: identity matrices, zero biases, two heads of two features. The third token is
    padding. The first token attends to the second, which comes after it.

    >>> attention = EncoderSelfAttention(4, 4, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0]]])
    >>> padding = torch.tensor([[False, False, True]])
    >>> attention(x, padding)[:, :2].detach()
    tensor([[[0.6698, 0.6605, 0.5000, 1.0000],
             [0.0558, 1.8884, 0.6698, 1.0000]]])

    Source: the encoder's self-attention in Vaswani et al. 2017, "Attention Is All You Need",
    section 3.2.3, https://arxiv.org/abs/1706.03762, where each position sees all others. The paper
    does not mention padding. Andrej Karpathy's notes to "Let's build GPT",
    https://github.com/karpathy/ng-video-lecture, turn a decoder into an encoder by deleting the
    mask.
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
