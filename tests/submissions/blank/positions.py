"""Unit 8, positions: where a token stands.

Attention by itself sees a bag of tokens: shuffle the keys and their values together, and every
query takes home what it took before. Word order has to be brought in by hand. Here you meet four
ways: add waves to the tokens, turn queries and keys, lower the scores of what is far away, or hide
it.

Positions are counted from 0, as Python counts. Masks in this kit are boolean and True where a
query may NOT look, just as `masked_fill` wants them. `F.scaled_dot_product_attention` means the
opposite by True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def sinusoidal_positions(num_tokens: int, d_model: int) -> Float[Tensor, "num_tokens d_model"]:
    """Build a table of waves that gives each position a vector of its own.

    Row p belongs to position p, and its features come in pairs. Pair i holds a sine and a cosine,
    side by side, of one and the same angle:

        table[p, 2i]     = sin(p / 10000^(2i / d_model))
        table[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    Pair 0 swings fast, by one radian a token; the last pairs hardly move. Read it like the hands
    of a clock: seconds tell neighbours apart, hours tell the morning from the evening.

    Why: added to the tokens before the first layer, the row says where each of them stands, and
    nothing has to be learned for it. And why two waves for each speed: k tokens further on, a pair
    is the same pair turned by a fixed angle, wherever you start. A model can learn "three back".

    The answer is (num_tokens, d_model), in torch's default dtype. Positions count from 0, so row 0
    is sin 0, cos 0, sin 0, cos 0, … The width d_model is even. Angles are in radians, as torch
    wants them.

    Fine print: some code puts all the sines in the left half and all the cosines in the right one.
    Those are the same numbers in other places; here they alternate, as in the paper.

    Three tokens of four features: the first pair turns by 1 a token, the second by 1/100:

    >>> sinusoidal_positions(3, 4)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])

    From Vaswani et al. 2017, "Attention is all you need", section 3.5.
    """
    raise NotImplementedError


def apply_rope(
    x: Float[Tensor, "... tokens d"], positions: Int[Tensor, " tokens"], theta: float = 10000.0
) -> Float[Tensor, "... tokens d"]:
    """Turn each pair of features by an angle that grows with the token's position.

    The d features of a token are d/2 pairs of neighbours: (0, 1), (2, 3), and so on. Read each
    pair as a point in a plane and rotate it around the origin, counterclockwise. At position p,
    pair i turns by

        a = p * theta^(-2i / d)

    so that (x0, x1) becomes (x0 cos a - x1 sin a, x0 sin a + x1 cos a), in the same two places.
    Pair 0 turns by one radian a position, the last pairs hardly at all: the speeds of
    `sinusoidal_positions`.

    Why: rotate queries and keys like this (values stay as they are), and the dot product of a
    query at position m with a key at position n depends on m - n only. Scores then know how far
    apart two tokens are, and not where the sentence happened to start. Lengths do not change, for
    a rotation changes none.

    `x` has shape (..., tokens, d), with any leading dimensions, like (batch, heads, tokens, d), or
    with none; d is even. `positions` holds one integer for each token, (tokens,), the same for
    every batch row and head. The answer has the shape and dtype of `x`. Gradients flow to `x`;
    both arguments stay as they were.

    Fine print. Positions come as they are: they need not start at 0, be in order, or be neighbours
    (when decoding step by step there is only the newest one). In float64 the angles are to be
    right in float64 too. Many models pair feature i with feature i + d/2 instead of neighbours
    (GPT-NeoX does, and Llama in the Transformers library). That is as good a code, but another
    one: do not mix them.

    Twice the same token. At position 0 nothing turns; at position 2 the first pair turns by 2 and
    the second by 0.02:

    >>> x = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    >>> apply_rope(x, torch.tensor([0, 2]))
    tensor([[ 1.0000,  0.0000,  0.0000,  1.0000],
            [-0.4161,  0.9093, -0.0200,  0.9998]])

    From Su et al. 2021, "RoFormer", section 3.2.2, and 3.4.2 for a way to compute it without a
    matrix. The paper counts pairs from 1, so it has i - 1 where i stands here, and 10000 where you
    have `theta`.
    """
    raise NotImplementedError


def alibi_bias(num_heads: int, num_tokens: int) -> Float[Tensor, "num_heads num_tokens num_tokens"]:
    """Build the bias that makes distant keys less attractive, for each head at its own rate.

    This is a table of numbers to be *added* to the scores before the softmax. For head h, the
    entry for a query and a key is slope * (key - query), where key and query are positions: 0 for
    the token itself, and one slope lower for every step into the past. Keys that come after the
    query get minus infinity, so that one sum both tells distances and hides the future.

    With heads counted from 1 to num_heads, head h has the slope 2^(-8h / num_heads). Eight heads
    have 1/2, 1/4, …, 1/256; two heads have 1/16 and 1/256.

    Why: this model needs no position in its tokens at all. Steep heads look close by, flat heads
    look far, and sentences longer than those of the training are nothing new: just lower numbers
    of the same kind.

    The answer is (num_heads, num_tokens, num_tokens): heads, then queries, then keys, in torch's
    default dtype. It broadcasts over a batch of scores (batch, num_heads, num_tokens, num_tokens).

    Fine print: the infinities are true ones, not large numbers. num_heads is a power of two here.
    For other numbers of heads the authors' own code picks its slopes in another way, and that is
    not asked for.

    Two heads, three tokens. The first head falls by 1/16 a step, the second by 1/256:

    >>> alibi_bias(2, 3)
    tensor([[[ 0.0000,    -inf,    -inf],
             [-0.0625,  0.0000,    -inf],
             [-0.1250, -0.0625,  0.0000]],
    <BLANKLINE>
            [[ 0.0000,    -inf,    -inf],
             [-0.0039,  0.0000,    -inf],
             [-0.0078, -0.0039,  0.0000]]])

    From Press et al. 2021, "Train short, test long", section 3.
    """
    raise NotImplementedError


def sliding_window_mask(num_tokens: int, window: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    """Build the mask that lets a token see only its nearest past.

    Rows are queries, columns are keys, and an entry is True where the query may NOT look. Two
    things are hidden from a token: what comes after it, as in `causal_mask`, and what lies too far
    back. It sees `window` tokens: itself, and the window - 1 right before it.

    Why: full attention pays for every pair of tokens; with a window, each token pays for a few
    neighbours only, however long the sentence. News from further back still arrives, through
    several layers, each of which reaches a little further back.

    The answer is boolean and square, (num_tokens, num_tokens). window is at least 1. Near the
    beginning there are fewer than `window` tokens to see; and a window as long as the sentence, or
    longer, hides nothing but the future.

    Fine print: does the window count the token itself? Here it does, and papers differ. Longformer
    looks to both sides, half a window to each. Mistral 7B looks back only, as you do here; its
    text speaks of positions from i - W to i, which are W + 1, and its figure for W = 3 shows
    three.

    Four tokens, a window of two:

    >>> sliding_window_mask(4, 2)
    tensor([[False,  True,  True,  True],
            [False, False,  True,  True],
            [ True, False, False,  True],
            [ True,  True, False, False]])

    The idea, to both sides: Beltagy et al. 2020, "Longformer", section 3.1. Backwards only: Jiang
    et al. 2023, "Mistral 7B", section 2.
    """
    raise NotImplementedError
