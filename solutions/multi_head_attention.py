"""References of unit 6, multi-head attention: several small attentions side by side.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .causal_attention import CausalAttention, causal_mask, masked_softmax


def split_heads(
    x: Float[Tensor, "batch tokens d_out"], num_heads: int
) -> Float[Tensor, "batch num_heads tokens head_dim=d_out//num_heads"]:
    """Cut each token into heads: (batch, tokens, d_out) to (batch, num_heads, tokens, head_dim)."""
    batch, tokens, d_out = x.shape
    if d_out % num_heads != 0:
        raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} equal heads")

    head_dim = d_out // num_heads
    x = x.reshape(batch, tokens, num_heads, head_dim)  # a view whenever memory allows one
    return x.transpose(1, 2)  # (batch, num_heads, tokens, head_dim)


def merge_heads(
    x: Float[Tensor, "batch num_heads tokens head_dim"],
) -> Float[Tensor, "batch tokens num_heads*head_dim"]:
    """Put the heads of each token side by side again: the inverse of `split_heads`."""
    batch, num_heads, tokens, head_dim = x.shape
    x = x.transpose(1, 2)  # (batch, tokens, num_heads, head_dim)
    return x.reshape(batch, tokens, num_heads * head_dim)


class MultiHeadAttentionWrapper(nn.Module):
    """Independent causal heads, each d_out wide, side by side: num_heads * d_out features."""

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
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens num_heads*d_out"]:
        """Ask every head, and concatenate the answers: head 0 first."""
        context_vecs = [head(x) for head in self.heads]  # num_heads × (batch, num_tokens, d_out)
        return torch.cat(context_vecs, dim=-1)  # (batch, num_tokens, num_heads * d_out)


class MultiHeadAttention(nn.Module):
    """Causal heads computed together: (batch, num_tokens, d_in) to (batch, num_tokens, d_out).

    Vaswani et al. 2017, section 3.2.2, with one wide projection that all heads share out.
    """

    mask: Tensor

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
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} equal heads")

        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)  # lets the heads talk to one another
        self.dropout = nn.Dropout(dropout)
        # A buffer is not trained, but moves to another device together with the module.
        self.register_buffer("mask", causal_mask(context_length))

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens d_out"]:
        """Project once, split into heads, attend in each, merge, and mix the heads."""
        _batch, num_tokens, _d_in = x.shape

        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        # each: (batch, num_heads, num_tokens, head_dim)

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, num_tokens, num_tokens)

        mask = self.mask[:num_tokens, :num_tokens]  # the input may be shorter than context_length
        attn_weights = masked_softmax(attn_scores, mask)
        attn_weights = self.dropout(attn_weights)

        context_vec = attn_weights @ values  # (batch, num_heads, num_tokens, head_dim)
        context_vec = merge_heads(context_vec)  # (batch, num_tokens, d_out)
        return self.out_proj(context_vec)  # (batch, num_tokens, d_out)
