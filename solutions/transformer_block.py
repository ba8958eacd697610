"""References of unit 11, the block around attention: norms, and layers for each token alone."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .multi_head_attention import MultiHeadAttention


def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    shift: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Give every row mean 0 and spread 1, then stretch and shift its features: (..., d) to same.

    Ba et al. 2016, section 3; eps under the root is what torch and most models add.
    """
    centred = x - x.mean(dim=-1, keepdim=True)  # (..., d)
    variance = (centred * centred).mean(dim=-1, keepdim=True)  # (..., 1), over d and not d - 1
    return centred / torch.sqrt(variance + eps) * gain + shift


def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-6
) -> Float[Tensor, "... d"]:
    """Divide every row by its root mean square, then stretch its features: (..., d) to same.

    Zhang and Sennrich 2019, section 3; eps under the root is what torch and most models add.
    """
    mean_square = (x * x).mean(dim=-1, keepdim=True)  # (..., 1)
    return x / torch.sqrt(mean_square + eps) * gain


def gelu(x: Float[Tensor, " ..."]) -> Float[Tensor, " ..."]:
    """Multiply every number by the chance that a standard normal number is smaller.

    Hendrycks and Gimpel 2016, section 2.
    """
    smaller = (1 + torch.erf(x / math.sqrt(2))) / 2  # between 0 and 1
    return x * smaller


class FeedForward(nn.Module):
    """Two layers for each token alone, a GELU between them: (batch, tokens, d_model) to same.

    Vaswani et al. 2017, section 3.3, with the GELU of Radford et al. 2018 for their ReLU.
    """

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_hidden)
        self.down = nn.Linear(d_hidden, d_model)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Widen every token, bend it, and bring it back to its width."""
        hidden = gelu(self.up(x))  # (batch, tokens, d_hidden)
        return self.down(hidden)


class SwiGLU(nn.Module):
    """Two layers for each token alone, the first with a gate: (batch, tokens, d_model) to same.

    Shazeer 2020, section 2.
    """

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_hidden, bias=False)
        self.W_up = nn.Linear(d_model, d_hidden, bias=False)
        self.W_down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Let one projection of a token say how much of another one passes."""
        gate = nn.functional.silu(self.W_gate(x))  # (batch, tokens, d_hidden)
        hidden = gate * self.W_up(x)
        return self.W_down(hidden)


class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each behind a norm and beside a shortcut.

    Pre-norm, as in GPT-2: Radford et al. 2019, section 2.3; Vaswani et al. 2017 have the norm
    behind the sum (section 3.1), and Xiong et al. 2020 say why it moved.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_hidden: int, context_length: int, dropout: float
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)  # gain 1 and shift 0 at first, eps 1e-5
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_hidden)

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_model"]
    ) -> Float[Tensor, "batch num_tokens d_model"]:
        """Let tokens meet, then let each one think; both only add to what is there."""
        h = x + self.attention(self.norm1(x))  # (batch, num_tokens, d_model)
        return h + self.feed_forward(self.norm2(h))  # (batch, num_tokens, d_model)
