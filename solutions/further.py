"""References of unit 13: a look into a layer, and layers wired together from earlier parts.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .causal_attention import causal_mask, masked_softmax
from .cross_attention import CrossAttention
from .inference import CachedAttention, causal_mask_after
from .multi_head_attention import merge_heads, split_heads
from .positions import apply_rope
from .transformer_block import FeedForward, SwiGLU, rms_norm


def head_weights(
    x: Float[Tensor, "batch tokens d_in"],
    W_query: Float[Tensor, "d_in d_out"],
    W_key: Float[Tensor, "d_in d_out"],
    num_heads: int,
) -> Float[Tensor, "batch num_heads tokens tokens"]:
    """Weigh the keys in every causal head: (batch, num_heads, tokens, tokens).

    Vaswani et al. 2017, section 3.2.2, as far as the softmax.
    """
    tokens = x.shape[1]
    queries = split_heads(x @ W_query, num_heads)  # (batch, num_heads, tokens, head_dim)
    keys = split_heads(x @ W_key, num_heads)  # the same

    head_dim = keys.shape[-1]
    attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
    # attn_scores: (batch, num_heads, tokens, tokens)

    mask = causal_mask(tokens).to(x.device)
    return masked_softmax(attn_scores, mask)


def bilinear_form(
    W_query: Float[Tensor, "d_in d_out"], W_key: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "d_in d_in"]:
    """Multiply both matrices into one of rank d_out at most, which compares tokens directly.

    Elhage et al. 2021, the QK circuit.
    """
    return W_query @ W_key.T


def absorb_keys(
    W_query: Float[Tensor, "d_in d_out"],
    W_up_key: Float[Tensor, "d_latent d_out"],
    num_heads: int,
) -> Float[Tensor, "num_heads d_in d_latent"]:
    """Make the matrix of each head that compares tokens with latents: (num_heads, d_in, d_latent).

    DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2.
    """
    d_in, d_latent = len(W_query), len(W_up_key)
    queries = W_query.reshape(d_in, num_heads, -1).transpose(0, 1)
    # queries: (num_heads, d_in, head_dim)
    keys = W_up_key.reshape(d_latent, num_heads, -1).transpose(0, 1)
    # keys: (num_heads, d_latent, head_dim)
    return queries @ keys.transpose(-2, -1)  # (num_heads, d_in, d_latent)


class LatentCachedAttention(nn.Module):
    """Causal heads that remember one latent for each token, and unpack keys and values from it.

    DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2, as `LatentAttention`, with the cache it is for.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, d_latent: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        cache: Float[Tensor, "batch seen d_latent"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch tokens d_out"], Float[Tensor, "batch total=seen+tokens d_latent"]
    ]:
        """Squeeze the new tokens, put their latents behind the old ones, unpack all, and attend."""
        _batch, tokens, _d_in = x.shape

        latent = self.W_down(x)  # (batch, tokens, d_latent)
        if cache is not None:
            latent = torch.cat([cache, latent], dim=1)  # (batch, total, d_latent)

        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_up_key(latent), self.num_heads)
        values = split_heads(self.W_up_value(latent), self.num_heads)
        # queries: (batch, num_heads, tokens, head_dim); the others have total tokens

        total, head_dim = keys.shape[-2:]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, total)

        seen = total - tokens
        mask = causal_mask_after(seen, tokens).to(x.device)
        attn_weights = masked_softmax(attn_scores, mask)

        context_vec = merge_heads(attn_weights @ values)  # (batch, tokens, d_out)
        return self.out_proj(context_vec), latent


class RotaryAttention(nn.Module):
    """Causal heads with a cache, whose queries and keys are turned by their positions.

    Su et al. 2021, section 3.2.2. The cache holds keys that are turned already.
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
        """Project the new tokens, turn queries and keys, attend over old and new, keep both."""
        _batch, tokens, _d_in = x.shape
        seen = 0 if cache is None else cache[0].shape[-2]

        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)
        # each: (batch, num_heads, tokens, head_dim)

        positions = torch.arange(seen, seen + tokens, device=x.device)
        queries = apply_rope(queries, positions)
        keys = apply_rope(keys, positions)

        if cache is not None:
            past_keys, past_values = cache
            keys = torch.cat([past_keys, keys], dim=-2)  # (batch, num_heads, total, head_dim)
            values = torch.cat([past_values, values], dim=-2)  # the same, old tokens first

        head_dim = keys.shape[-1]
        attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
        # attn_scores: (batch, num_heads, tokens, total)

        mask = causal_mask_after(seen, tokens).to(x.device)
        attn_weights = masked_softmax(attn_scores, mask)

        context_vec = merge_heads(attn_weights @ values)  # (batch, tokens, d_out)
        return self.out_proj(context_vec), (keys, values)


class LlamaBlock(nn.Module):
    """Rotary attention and a gated feed-forward layer, each behind an RMS norm and a shortcut.

    Touvron et al. 2023, section 2.2.
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.Parameter(torch.ones(d_model))  # the gains of two norms
        self.attention = RotaryAttention(d_model, d_model, num_heads)
        self.norm2 = nn.Parameter(torch.ones(d_model))
        self.feed_forward = SwiGLU(d_model, d_hidden)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Let tokens meet, then let each one think; both only add to what is there."""
        found, _cache = self.attention(rms_norm(x, self.norm1))
        h = x + found  # (batch, tokens, d_model)
        return h + self.feed_forward(rms_norm(h, self.norm2))  # (batch, tokens, d_model)


class EncoderDecoderBlock(nn.Module):
    """Causal attention to one's own sentence, then attention to another one, then a network.

    The decoder's layer of Vaswani et al. 2017, section 3.1, with its norms in front (Xiong et al.
    2020). The context is used as it comes: (batch, targets, d_model).
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = CachedAttention(d_model, d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross = CrossAttention(d_model, d_model, d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_hidden)

    def forward(
        self,
        x: Float[Tensor, "batch targets d_model"],
        context: Float[Tensor, "batch sources d_model"],
        context_mask: Bool[Tensor, "batch sources"] | None = None,
    ) -> Float[Tensor, "batch targets d_model"]:
        """Read what was written, then what is translated; each part adds to what is there."""
        h = x + self.attention(self.norm1(x))[0]  # causal; the cache is of no use here
        h = h + self.cross(self.norm2(h), context, context_mask)
        return h + self.feed_forward(self.norm3(h))  # (batch, targets, d_model)
