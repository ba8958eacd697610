import torch
from torch import nn

from exercises.multi_head_attention import merge_heads, split_heads


def repeat_kv(x, groups):
    b, kv_heads, t, d = x.shape
    return x[:, :, None].expand(b, kv_heads, groups, t, d).reshape(b, kv_heads * groups, t, d)


def causal_mask_after(seen, tokens):
    last = torch.arange(seen, seen + tokens)
    return last[:, None] < torch.arange(seen + tokens)


def causal(queries, keys, values):
    """The queries are the last of the keys' tokens."""
    new, total = queries.size(-2), keys.size(-2)
    hidden = causal_mask_after(total - new, new).to(queries.device)
    scores = queries @ keys.mT / queries.size(-1) ** 0.5
    return merge_heads(scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.n, self.n_kv = num_heads, num_kv_heads
        d_kv = d_out // num_heads * num_kv_heads
        self.wq = nn.Linear(d_in, d_out, bias=False)
        self.wk = nn.Linear(d_in, d_kv, bias=False)
        self.wv = nn.Linear(d_in, d_kv, bias=False)
        self.wo = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries = split_heads(self.wq(x), self.n)
        keys, values = (
            repeat_kv(split_heads(w(x), self.n_kv), self.n // self.n_kv) for w in (self.wk, self.wv)
        )
        return self.wo(causal(queries, keys, values))


class CachedAttention(nn.Module):
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
        return self.out_proj(causal(queries, *new)), tuple(new)


class LatentAttention(nn.Module):
    """Never makes the keys: each head's queries go down to the latent instead."""

    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.n = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        latent = self.W_down(x)
        queries = split_heads(self.W_query(x), self.n)
        head_dim = queries.size(-1)
        up_key = self.W_up_key.weight.view(self.n, head_dim, -1)
        short = torch.einsum("bhqd,hdl->bhql", queries, up_key)
        scores = torch.einsum("bhql,bkl->bhqk", short, latent) / head_dim**0.5
        future = torch.ones_like(scores[0, 0]).triu(1).bool()
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return self.out_proj(merge_heads(weights @ split_heads(self.W_up_value(latent), self.n)))
