"""References of unit 7, cross-attention: two sequences, and sentences with padding.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from .multi_head_attention import merge_heads, split_heads


def padding_mask(
    lengths: Int64[Tensor, " batch"], num_tokens: int
) -> Bool[Tensor, "batch tokens=num_tokens"]:
    """Mark the padding of sentences with these lengths: (batch, num_tokens), True on padding."""
    positions = torch.arange(num_tokens, device=lengths.device)  # (num_tokens,)
    return positions >= lengths[:, None]  # (num_tokens,) against (batch, 1)


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another: (batch, queries, d_out).

    The "encoder-decoder attention" of Vaswani et al. 2017, section 3.2.3.
    """

    def __init__(self, d_query: int, d_context: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)  # lets the heads talk to one another

    def forward(
        self,
        x: Float[Tensor, "batch queries d_query"],
        context: Float[Tensor, "batch keys d_context"],
        context_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch queries d_out"]:
        """Let every token of x ask, and the visible tokens of context answer."""
        queries = split_heads(self.W_query(x), self.num_heads)
        # queries: (batch, num_heads, queries, head_dim)
        keys = split_heads(self.W_key(context), self.num_heads)
        values = split_heads(self.W_value(context), self.num_heads)
        # both: (batch, num_heads, keys, head_dim)

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, queries, keys)

        if context_mask is not None:
            # What is hidden is hidden from every head and every query.
            hidden = context_mask[:, None, None, :]  # (batch, 1, 1, keys)
            attn_scores = attn_scores.masked_fill(hidden, -torch.inf)
        attn_weights = torch.softmax(attn_scores, dim=-1)

        context_vec = attn_weights @ values  # (batch, num_heads, queries, head_dim)
        context_vec = merge_heads(context_vec)  # (batch, queries, d_out)
        return self.out_proj(context_vec)  # (batch, queries, d_out)


class EncoderSelfAttention(nn.Module):
    """Every token sees every real token: (batch, tokens, d_in) to (batch, tokens, d_out).

    The encoder's self-attention of Vaswani et al. 2017, section 3.2.3.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)  # lets the heads talk to one another

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        padding: Bool[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens d_out"]:
        """Attend in both directions, and skip the keys that are padding."""
        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        # each: (batch, num_heads, tokens, head_dim)

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, tokens)

        if padding is not None:
            # Keys only: a row of scores with nothing left in it would be of no use to anybody.
            hidden = padding[:, None, None, :]  # (batch, 1, 1, tokens)
            attn_scores = attn_scores.masked_fill(hidden, -torch.inf)
        attn_weights = torch.softmax(attn_scores, dim=-1)

        context_vec = attn_weights @ values  # (batch, num_heads, tokens, head_dim)
        context_vec = merge_heads(context_vec)  # (batch, tokens, d_out)
        return self.out_proj(context_vec)  # (batch, tokens, d_out)
