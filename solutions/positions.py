"""References of unit 8, positions: waves, rotations, slopes and windows.

Positions count from 0. A boolean mask is True where a query may NOT look.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .causal_attention import causal_mask


def sinusoidal_positions(num_tokens: int, d_model: int) -> Float[Tensor, "num_tokens d_model"]:
    """Build the table of waves, (num_tokens, d_model): sines and cosines in turn.

    Vaswani et al. 2017, section 3.5.
    """
    positions = torch.arange(num_tokens)
    exponents = torch.arange(0, d_model, 2) / d_model  # 2i / d_model for each pair i
    angles = positions[:, None] / 10000**exponents  # (num_tokens, d_model / 2)

    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (num_tokens, d_model / 2, 2)
    return pairs.reshape(num_tokens, d_model)


def apply_rope(
    x: Float[Tensor, "... tokens d"], positions: Int[Tensor, " tokens"], theta: float = 10000.0
) -> Float[Tensor, "... tokens d"]:
    """Turn each pair of neighbouring features of x (..., tokens, d) by position times speed.

    Su et al. 2021, sections 3.2.2 and 3.4.2.
    """
    d = x.shape[-1]
    exponents = torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d  # 2i / d for each pair i
    speeds = theta**-exponents  # (d / 2,)
    angles = positions[:, None] * speeds  # (tokens, d / 2)
    cos, sin = angles.cos(), angles.sin()

    x0 = x[..., 0::2]  # the first of each pair: (..., tokens, d / 2)
    x1 = x[..., 1::2]  # the second of each pair
    pairs = torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)
    # pairs: (..., tokens, d / 2, 2)
    return pairs.reshape(x.shape)  # (..., tokens, d)


def alibi_bias(num_heads: int, num_tokens: int) -> Float[Tensor, "num_heads num_tokens num_tokens"]:
    """Build the bias (num_heads, num_tokens, num_tokens) that falls with distance.

    Press et al. 2021, section 3.
    """
    heads = torch.arange(1, num_heads + 1)
    slopes = 2 ** (-8 * heads / num_heads)  # (num_heads,)

    keys = torch.arange(num_tokens)
    queries = keys[:, None]  # (num_tokens, 1)
    offsets = keys - queries  # (num_tokens, num_tokens)
    bias = slopes[:, None, None] * offsets  # (num_heads, num_tokens, num_tokens)
    return bias.masked_fill(causal_mask(num_tokens), -torch.inf)


def sliding_window_mask(num_tokens: int, window: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    """Build the mask that hides the future, and the past beyond the window, which counts itself.

    After Beltagy et al. 2020, section 3.1; backwards only in Jiang et al. 2023, section 2.
    """
    keys = torch.arange(num_tokens)
    queries = keys[:, None]  # (num_tokens, 1)
    distances = queries - keys  # (num_tokens, num_tokens)
    too_far_back = distances >= window
    return causal_mask(num_tokens) | too_far_back
