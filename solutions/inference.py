"""References of unit 9, fast decoding: how attention is fitted to writing token by token.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .causal_attention import causal_mask, masked_softmax
from .multi_head_attention import merge_heads, split_heads


def repeat_kv(
    x: Float[Tensor, "batch kv_heads tokens head_dim"], groups: int
) -> Float[Tensor, "batch kv_heads*groups tokens head_dim"]:
    """Write every head `groups` times, its copies next to one another: a, a, b, b."""
    return x.repeat_interleave(groups, dim=1)  # (batch, kv_heads * groups, tokens, head_dim)


class GroupedQueryAttention(nn.Module):
    """Causal heads that share keys and values in groups: (batch, tokens, d_in) to (…, d_out).

    Ainslie et al. 2023, section 2.2; with one head of keys and values it is the multi-query
    attention of Shazeer 2019, section 3.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        head_dim = d_out // num_heads
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        """Project, split into heads, give every query head its keys and values, and attend."""
        _batch, tokens, _d_in = x.shape

        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_kv_heads)
        values = split_heads(self.W_value(x), self.num_kv_heads)
        # queries: (batch, num_heads, tokens, head_dim); the others have num_kv_heads heads

        groups = self.num_heads // self.num_kv_heads
        keys = repeat_kv(keys, groups)  # (batch, num_heads, tokens, head_dim)
        values = repeat_kv(values, groups)  # (batch, num_heads, tokens, head_dim)

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, tokens)

        mask = causal_mask(tokens).to(x.device)
        attn_weights = masked_softmax(attn_scores, mask)

        context_vec = attn_weights @ values  # (batch, num_heads, tokens, head_dim)
        context_vec = merge_heads(context_vec)  # (batch, tokens, d_out)
        return self.out_proj(context_vec)  # (batch, tokens, d_out)


def causal_mask_after(seen: int, tokens: int) -> Bool[Tensor, "tokens seen+tokens"]:
    """True where a new token must not look at a key: the lower right part of a causal mask.

    `seen` tokens came before, and their keys are the first columns.
    """
    everything = torch.ones(tokens, seen + tokens, dtype=torch.bool)
    return torch.triu(everything, diagonal=seen + 1)  # query i stands at position seen + i


class CachedAttention(nn.Module):
    """Causal heads that remember the keys and values of tokens that were there before.

    The cache is (keys, values), each (batch, num_heads, seen, head_dim): Shazeer 2019, section 2.4,
    for any number of new tokens at once.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        cache: tuple[
            Float[Tensor, "batch num_heads seen head_dim"],
            Float[Tensor, "batch num_heads seen head_dim"],
        ]
        | None = None,
    ) -> tuple[
        Float[Tensor, "batch tokens d_out"],
        tuple[
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
        ],
    ]:
        """Project the new tokens only, attend over old and new ones, and return both to keep."""
        _batch, tokens, _d_in = x.shape

        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        # each: (batch, num_heads, tokens, head_dim)

        if cache is not None:
            past_keys, past_values = cache
            keys = torch.cat([past_keys, keys], dim=-2)  # (batch, num_heads, total, head_dim)
            values = torch.cat([past_values, values], dim=-2)  # the same, old tokens first

        total, head_dim = keys.shape[-2:]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, total)

        seen = total - tokens
        mask = causal_mask_after(seen, tokens).to(x.device)
        attn_weights = masked_softmax(attn_scores, mask)

        context_vec = merge_heads(attn_weights @ values)  # (batch, tokens, d_out)
        return self.out_proj(context_vec), (keys, values)


class LatentAttention(nn.Module):
    """Causal heads whose keys and values are unpacked from one small vector per token.

    DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2, keys and values only: without the norm on the
    latent, without compressed queries, and without the rotary positions of section 2.1.3.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, d_latent: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        """Squeeze every token into its latent, unpack keys and values from it, and attend."""
        _batch, tokens, _d_in = x.shape

        latent = self.W_down(x)  # (batch, tokens, d_latent): all that a cache would have to keep
        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_up_key(latent), self.num_heads)
        values = split_heads(self.W_up_value(latent), self.num_heads)
        # each: (batch, num_heads, tokens, head_dim)

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, tokens)

        mask = causal_mask(tokens).to(x.device)
        attn_weights = masked_softmax(attn_scores, mask)

        context_vec = attn_weights @ values  # (batch, num_heads, tokens, head_dim)
        context_vec = merge_heads(context_vec)  # (batch, tokens, d_out)
        return self.out_proj(context_vec)  # (batch, tokens, d_out)
