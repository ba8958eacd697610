"""Unit 6, multi-head attention: several small attentions side by side.

One softmax gives each token one way to share out its attention. Several heads, each with its own
queries, keys and values, can look for several things at once. You write this twice: as a list of
heads, which is easy to read, and as one wide projection cut into heads, which real models run.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.

Arguments are passed by position, in the order of the signatures. Names and initial values of a
module's parameters are free. Queries, keys and values may share one fused layer, and layers may be
bare parameters.
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

        out[b, h, t, e] = x[b, t, h · head_dim + e]
        head_dim = d_out / num_heads

    The first head_dim features of a token belong to head 0, the next head_dim to head 1, and so
    on. Nothing is computed: each number only moves to its place.

    Why: `@` multiplies the last two dimensions and treats all the others as a batch. With the
    heads in front of the tokens, one product serves every head, and no head meets another.

    Takes:
        x: (batch, tokens, d_out), the features of every token.
        num_heads: int, the number of heads.

    Returns:
        (batch, num_heads, tokens, head_dim): the heads, in front of the tokens.

    Rules:
        divides: If num_heads does not divide d_out, the function raises an exception, of any
            ordinary type.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.

    Example: two tokens of four features, two heads. Head 0 gets the left half of both tokens.

    >>> x = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
    >>> split_heads(x, 2)
    tensor([[[[0., 1.],
              [4., 5.]],
    <BLANKLINE>
             [[2., 3.],
              [6., 7.]]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762; Sebastian Raschka, "Build a Large Language Model (From
    Scratch)", section 3.6.2, https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def merge_heads(
    x: Float[Tensor, "batch num_heads tokens head_dim"],
) -> Float[Tensor, "batch tokens num_heads*head_dim"]:
    """Put the heads of every token side by side again.

        out[b, t, h · head_dim + e] = x[b, h, t, e]

    This undoes `split_heads`: in each token, the features of head 0 come first, then those of
    head 1, and so on.

    Why: any reshape gives the right *shape*, but only one order of the numbers gives each token its
    own features back. A model with a wrong order still trains, but worse, and raises no error.

    Takes:
        x: (batch, num_heads, tokens, head_dim), the heads as `split_heads` returns them.

    Returns:
        (batch, tokens, num_heads*head_dim): one row of features per token.

    Rules:
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.

    Example: two heads, two tokens, two features in each head. The first token has the features 0, 1
    in head 0 and 2, 3 in head 1.

    >>> x = torch.tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
    >>> merge_heads(x)
    tensor([[[0., 1., 2., 3.],
             [4., 5., 6., 7.]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762; Sebastian Raschka, "Build a Large Language Model (From
    Scratch)", section 3.6.2, https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


class MultiHeadAttentionWrapper(nn.Module):
    """Run several causal attention heads, and put their results side by side.

        out = [ head₀(x) | head₁(x) | … ]    joined along the features
        headₕ = a CausalAttention(d_in, d_out, …) with weights of its own

    Every head gets the whole input and is d_out wide; head 0 comes first. You may import the head
    that you already have: `from causal_attention import CausalAttention` works wherever your
    files are. Writing it again here is fine too.

    Why: heads start from different weights and so learn to look for different things. A sum of
    the heads would mix what they found; side by side, nothing is lost.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the width of each head.
        context_length: int, the length of the longest sentence; longer sentences are not tested.
        dropout: float, 0 ≤ dropout < 1, the probability with which an attention weight is dropped
            in training.
        num_heads: int, the number of heads.
        qkv_bias: bool, whether queries, keys and values have a bias.

    Takes:
        x: (batch, num_tokens, d_in), a batch of sentences.

    Returns:
        (batch, num_tokens, num_heads*d_out): the results of all heads for every token.

    Rules:
        forbidden: Ready-made attention (`F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`) is off limits; torch's softmax and your own functions are
            welcome.
        parameters: `.parameters()` yields the weights of every head, so that they can be trained.
        shorter: Sentences may be shorter than `context_length`, and each call may have another
            length.
        batch: Sentences of a batch never see one another.
        bias: Queries, keys and values have a bias only if `qkv_bias` is True. Nothing else is
            learned.
        dropout: In training, each weight of each head is dropped by itself, and kept weights are
            divided by 1 - `dropout`. Tests judge the statistics, not your random numbers.
        eval: After `.eval()` nothing is dropped.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every weight matrix is the identity, so both heads give the same result, and it appears
    twice.

    >>> attention = MultiHeadAttentionWrapper(2, 2, 4, 0.0, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> attention(x).detach()
    tensor([[[1.0000, 0.0000, 1.0000, 0.0000],
             [0.0558, 1.8884, 0.0558, 1.8884],
             [1.8765, 1.9732, 1.8765, 1.9732]]])

    Source: Sebastian Raschka, "Build a Large Language Model (From Scratch)", section 3.6.1,
    https://github.com/rasbt/LLMs-from-scratch; the idea is from Vaswani et al. 2017, "Attention
    Is All You Need", section 3.2.2, https://arxiv.org/abs/1706.03762.
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
    """Compute multi-head causal attention with one projection for all heads.

        queries, keys, values = W_query(x), W_key(x), W_value(x)
        headₕ = softmax(queriesₕ keysₕᵀ / √head_dim) valuesₕ    no later keys
        out = out_proj([ head₀ | head₁ | … ])

    W_query, W_key, W_value and out_proj are linear layers, each d_out wide. The heads share this
    width: head_dim is d_out / num_heads, and head h gets the columns that `split_heads` gives it.
    No query sees a key that comes after it. At the end out_proj mixes the results of the heads.
    A linear layer may be an `nn.Linear`, or a matrix of your own. An `nn.Conv1d` with a kernel_size
    of 1 computes the same, and is accepted too.

    Why: one large product keeps a GPU far busier than many small ones. This is the layer inside
    GPT-like models.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the width of the layer, all heads together.
        context_length: int, the length of the longest sentence; longer sentences are not tested.
        dropout: float, 0 ≤ dropout < 1, the probability with which an attention weight is dropped
            in training.
        num_heads: int, the number of heads.
        qkv_bias: bool, whether queries, keys and values have a bias.

    Takes:
        x: (batch, num_tokens, d_in), a batch of sentences.

    Returns:
        (batch, num_tokens, d_out): one vector per token.

    Rules:
        forbidden: Ready-made attention (`F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`) is off limits; torch's softmax and your own functions are
            welcome.
        divides: If num_heads does not divide d_out, the constructor raises an exception, of any
            ordinary type.
        shorter: Sentences may be shorter than `context_length`, and each call may have another
            length.
        batch: Sentences of a batch never see one another.
        heads: Heads never see one another before `out_proj`, however large a head's scores are.
        bias: Queries, keys and values have a bias only if `qkv_bias` is True; `out_proj` always
            has a bias. Nothing else is learned.
        dropout: In training, each weight of each head is dropped by itself, and kept weights are
            divided by 1 - `dropout`. Tests judge the statistics, not your random numbers.
        eval: After `.eval()` nothing is dropped.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: identity matrices, zero biases, two heads of two features. The second token shares
    its attention differently in the two halves, because each head has its own softmax.

    >>> attention = MultiHeadAttention(4, 4, 4, 0.0, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])).detach()
    tensor([[[1.0000, 0.0000, 0.0000, 1.0000],
             [0.0558, 1.8884, 0.6698, 1.0000]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762; Sebastian Raschka, "Build a Large Language Model (From
    Scratch)", section 3.6.2, https://github.com/rasbt/LLMs-from-scratch.
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
