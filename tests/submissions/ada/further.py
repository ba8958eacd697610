import torch
from torch import nn

from exercises.cross_attention import CrossAttention
from exercises.inference import CachedAttention, causal, causal_mask_after
from exercises.multi_head_attention import merge_heads, split_heads
from exercises.positions import apply_rope
from exercises.transformer_block import SwiGLU


def head_weights(x, W_query, W_key, num_heads):
    queries, keys = (split_heads(x @ w, num_heads) for w in (W_query, W_key))
    scores = queries @ keys.mT / queries.size(-1) ** 0.5
    future = torch.ones_like(scores[0, 0]).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def bilinear_form(W_query, W_key):
    return torch.einsum("id,jd->ij", W_query, W_key)


def absorb_keys(W_query, W_up_key, num_heads):
    pairs = zip(W_query.chunk(num_heads, dim=1), W_up_key.chunk(num_heads, dim=1))
    return torch.stack([bilinear_form(query, key) for query, key in pairs])


class LatentCachedAttention(nn.Module):
    """Neither keys nor values are ever made: each head compares and mixes latents."""

    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.n = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        latents = self.W_down(x)
        if cache is not None:
            latents = torch.cat([cache, latents], dim=1)
        short = x[:, None] @ absorb_keys(self.W_query.weight.T, self.W_up_key.weight.T, self.n)
        scores = short @ latents[:, None].mT / (self.W_query.out_features // self.n) ** 0.5
        hidden = causal_mask_after(latents.size(1) - x.size(1), x.size(1)).to(x.device)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        up_value = self.W_up_value.weight.view(self.n, -1, latents.size(-1))
        return self.out_proj(merge_heads(weights @ latents[:, None] @ up_value.mT)), latents


class RotaryAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        queries, *new = (
            split_heads(w(x), self.n) for w in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            new = [torch.cat(pair, dim=2) for pair in zip(cache, new)]
        total = new[0].size(2)
        positions = torch.arange(total, device=x.device)
        keys = apply_rope(new[0], positions)  # the cache holds them as they were
        queries = apply_rope(queries, positions[-x.size(1) :])
        return self.out_proj(causal(queries, keys, new[1])), tuple(new)


class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.ln1, self.ln2 = nn.RMSNorm(d_model, eps=1e-6), nn.RMSNorm(d_model, eps=1e-6)
        self.attn = RotaryAttention(d_model, d_model, num_heads)
        self.ff = SwiGLU(d_model, d_hidden)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))[0]
        return x + self.ff(self.ln2(x))


class EncoderDecoderBlock(nn.Module):
    def __init__(self, d, heads, hidden):
        super().__init__()
        self.read_own = CachedAttention(d, d, heads)
        self.read_other = CrossAttention(d, d, d, heads)
        self.think = nn.Sequential(nn.Linear(d, hidden), nn.GELU(), nn.Linear(hidden, d))
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d) for _ in range(3))

    def forward(self, x, context, context_mask=None):
        x = x + self.read_own(self.norm1(x))[0]
        x = x + self.read_other(self.norm2(x), context, context_mask)
        return x + self.think(self.norm3(x))
