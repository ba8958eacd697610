"""References of unit 5, causal attention: hide the future, then share out the attention.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def causal_mask(num_tokens: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    """Build the mask of the future, (num_tokens, num_tokens): True strictly above the diagonal."""
    everything = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    return torch.triu(everything, diagonal=1)


def masked_softmax(
    scores: Float[Tensor, "... queries keys"], mask: Bool[Tensor, " ..."]
) -> Float[Tensor, "... queries keys"]:
    """Turn scores (..., queries, keys) into weights of the same shape that skip hidden keys.

    Hiding with -inf before the softmax: Vaswani et al. 2017, section 3.2.3.
    """
    visible_scores = scores.masked_fill(mask, -torch.inf)  # exp(-inf) = 0: no weight at all
    attn_weights = torch.softmax(visible_scores, dim=-1)
    # A hidden key already weighs 0 here, unless its whole row is hidden: there softmax gives NaN.
    return attn_weights.masked_fill(mask, 0.0)


def renormalized_causal_weights(
    weights: Float[Tensor, "tokens tokens"],
) -> Float[Tensor, "tokens tokens"]:
    """Take the future out of finished weights (tokens, tokens), and make rows sum to one again."""
    past_weights = torch.tril(weights)
    row_sums = past_weights.sum(dim=-1, keepdim=True)  # (tokens, 1)
    return past_weights / row_sums


def apply_dropout(
    weights: Float[Tensor, " ..."], keep: Bool[Tensor, " ..."], p: float
) -> Float[Tensor, " ..."]:
    """Zero what is not kept, and scale the rest up so that the expected value stays the same.

    Inverted dropout, any shape: Srivastava et al. 2014, section 10.
    """
    survivors = weights * keep
    return survivors / (1 - p)


class CausalAttention(nn.Module):
    """One causal head with dropout: (batch, num_tokens, d_in) to (batch, num_tokens, d_out).

    Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1) under a causal mask (3.2.3).
    """

    mask: Tensor

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        # A buffer is not trained, but moves to another device together with the module.
        self.register_buffer("mask", causal_mask(context_length))

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens d_out"]:
        """Return one context vector per token, mixed from the values at and before it."""
        _batch, num_tokens, _d_in = x.shape

        queries = self.W_query(x)  # (batch, num_tokens, d_out)
        keys = self.W_key(x)  # (batch, num_tokens, d_out)
        values = self.W_value(x)  # (batch, num_tokens, d_out)

        d_out = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / d_out**0.5
        # attn_scores: (batch, num_tokens, num_tokens)

        mask = self.mask[:num_tokens, :num_tokens]  # the input may be shorter than context_length
        attn_weights = masked_softmax(attn_scores, mask)
        attn_weights = self.dropout(attn_weights)

        return attn_weights @ values  # (batch, num_tokens, d_out)
