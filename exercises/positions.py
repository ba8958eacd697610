"""Unit 8, positions: four ways to tell attention where a token is.

Attention by itself does not know the order of tokens. If you shuffle the keys, and their values in
the same way, every query gets the same result. Word order must be added. Here are four ways: add
waves to the tokens, rotate queries and keys, lower the scores of distant keys, or hide those keys.

Positions count from 0, as in Python, and stay below 128 in the tests.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def sinusoidal_positions(num_tokens: int, d_model: int) -> Float[Tensor, "num_tokens d_model"]:
    """Build a table of sines and cosines that gives each position a vector of its own.

        table[p, 2i]     = sin(p / 10000^(2i / d_model))
        table[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    Row p belongs to position p. Features 2i and 2i + 1 are pair i: a sine and a cosine, side by
    side, of the same angle in radians. Pair 0 turns by one radian per token, and each next pair
    turns more slowly. The pairs are like the hands of a clock: the fast hand separates one minute
    from the next, the slow hand separates morning from evening.

    Some code puts all sines in the left half and all cosines in the right half. The numbers are the
    same, but their places differ. Here sines and cosines alternate, as in the paper.

    Why: a model adds row p to the token at position p, and so knows where the token is. The table
    needs no training. With a sine and a cosine of each speed, a step by k tokens turns each pair by
    the same angle from any position. So a model can learn "three tokens back".

    Takes:
        num_tokens: int, at least 1.
        d_model: int, the number of features; even, at least 2.

    Returns:
        (num_tokens, d_model): the table, in float32.

    Rules:
        sizes: The table is right for a single token, for a single pair, and for 100 tokens.

    Example: three tokens of four features. The first pair turns by 1 per token, the second by
    1/100.

    >>> sinusoidal_positions(3, 4)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5,
    https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


def apply_rope(
    x: Float[Tensor, "... tokens d"], positions: Int[Tensor, " tokens"], theta: float = 10000.0
) -> Float[Tensor, "... tokens d"]:
    """Rotate each pair of features by an angle that grows with the token's position.

        out[2i]     = x[2i] · cos a - x[2i + 1] · sin a
        out[2i + 1] = x[2i] · sin a + x[2i + 1] · cos a      with a = p · theta^(-2i / d)

    The formula is for one token at position p. Its d features form d/2 pairs: (0, 1), (2, 3), …
    Each pair is a point in a plane, and is rotated around the origin, counterclockwise. The angles
    are those of `sinusoidal_positions`, in radians.

    Many models pair feature i with feature i + d/2 (GPT-NeoX, and Llama in the Transformers
    library). That works as well, but weights trained with one pairing do not fit the other.

    Why: rotate queries and keys, and leave the values as they are. Then the dot product of a query
    at position m and a key at position n depends on m - n only. So a score depends on the distance
    of two tokens, not on their place in the text. A rotation keeps the length of every vector.

    Takes:
        x: (..., tokens, d), for example (batch, heads, tokens, d); d is even.
        positions: int (tokens,), one for each token, the same for every batch row and head.
        theta: float, the base of the angles in the formula.

    Returns:
        (..., tokens, d): the rotated tokens.

    Rules:
        leading: `x` may have any number of leading dimensions, or none.
        positions: Positions need not start at 0, be in order, or be consecutive.
        sizes: The function also works for a single token and for a single pair.
        dtype: float64 in, float64 out, in full precision. This includes the angles.
        unchanged: `x` and `positions` stay as they were.
        gradients: Gradients flow back to `x`.

    Example: the same token at two positions. At position 0 no pair turns. At position 2 the first
    pair turns by 2 and the second by 0.02.

    >>> x = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    >>> apply_rope(x, torch.tensor([0, 2]))
    tensor([[ 1.0000,  0.0000,  0.0000,  1.0000],
            [-0.4161,  0.9093, -0.0200,  0.9998]])

    Source: Su et al. 2021, "RoFormer", section 3.2.2, and 3.4.2 for a way without matrices,
    https://arxiv.org/abs/2104.09864. The paper counts pairs from 1, so it has i - 1 where we have
    i, and 10000 for `theta`.
    """
    raise NotImplementedError


def alibi_bias(num_heads: int, num_tokens: int) -> Float[Tensor, "num_heads num_tokens num_tokens"]:
    """Build a bias that lowers the scores of distant keys, in each head at a rate of its own.

        bias[h, q, k] = slopeₕ · (k - q)   where k ≤ q
        bias[h, q, k] = -∞                 where k > q
        slopeₕ        = 2^(-8 (h + 1) / num_heads)   for h = 0, …, num_heads - 1

    q and k are the positions of a query and a key. The bias is *added* to the scores before the
    softmax: 0 for the token itself, and lower by one slope for every step back. Minus infinity
    hides the future; write `-torch.inf`, not a large negative number.

    Eight heads have the slopes 1/2, 1/4, …, 1/256; two heads have 1/16 and 1/256. The first head
    has the largest slope, and no slope is 1.

    Why: with this bias, no positions are added to the tokens. Heads with a large slope attend to
    near tokens, heads with a small slope reach far. If a sentence is longer than all sentences in
    training, its largest distances get lower biases, but they need no new weights.

    Takes:
        num_heads: int, a power of two, 1 included. (For other numbers, the authors' code chooses
            the slopes in another way.)
        num_tokens: int, at least 1.

    Returns:
        (num_heads, num_tokens, num_tokens): heads, then queries, then keys, in float32.

    Rules:
        sizes: The bias is right for a single head, for a single token, and for 100 tokens.

    Example: two heads, three tokens. The bias falls by 1/16 per step in the first head, and by
    1/256 in the second.

    >>> alibi_bias(2, 3)
    tensor([[[ 0.0000,    -inf,    -inf],
             [-0.0625,  0.0000,    -inf],
             [-0.1250, -0.0625,  0.0000]],
    <BLANKLINE>
            [[ 0.0000,    -inf,    -inf],
             [-0.0039,  0.0000,    -inf],
             [-0.0078, -0.0039,  0.0000]]])

    Source: Press et al. 2021, "Train Short, Test Long", section 3,
    https://arxiv.org/abs/2108.12409.
    """
    raise NotImplementedError


def sliding_window_mask(num_tokens: int, window: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    """Build the mask that lets a token see only the nearest tokens of its past.

        mask[q, k] = False   where 0 ≤ q - k < window
        mask[q, k] = True    everywhere else

    Rows are queries, columns are keys, and True means that the query may NOT look. A token sees
    `window` tokens: itself and the window - 1 tokens right before it. Near the beginning of the
    text, it sees fewer.

    Papers differ on whether the window counts the token itself; here it does. Longformer looks to
    both sides, half a window to each. Mistral 7B looks back only, as we do. The text of that paper
    gives W + 1 positions, from i - W to i, but its figure for W = 3 shows three positions.

    Why: full attention computes a score for every pair of tokens. With a window, each token needs
    only a few scores, however long the sentence is. Information from further back still arrives
    through several layers: each layer reaches one window further.

    Takes:
        num_tokens: int, at least 1.
        window: int, at least 1.

    Returns:
        bool (num_tokens, num_tokens): the mask.

    Rules:
        sizes: The mask is right for a single token, for a window of 1, and for a window as long as
            the sentence or longer, which hides only the future.

    Example: four tokens, a window of two.

    >>> sliding_window_mask(4, 2)
    tensor([[False,  True,  True,  True],
            [False, False,  True,  True],
            [ True, False, False,  True],
            [ True,  True, False, False]])

    Source: Beltagy et al. 2020, "Longformer", section 3.1 (to both sides),
    https://arxiv.org/abs/2004.05150; Jiang et al. 2023, "Mistral 7B", section 2 (backwards only),
    https://arxiv.org/abs/2310.06825.
    """
    raise NotImplementedError
