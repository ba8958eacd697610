import torch
from torch import nn

from exercises.causal_attention import CausalAttention


def split_heads(x, num_heads):
    if x.size(-1) % num_heads:
        raise RuntimeError("heads must divide the width")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.attn = nn.ModuleList()
        for _ in range(num_heads):
            self.attn.append(CausalAttention(d_in, d_out, dropout, context_length, qkv_bias))

    def forward(self, x):
        return torch.cat(list(map(lambda head: head(x), self.attn)), dim=2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise AssertionError
        self.n = num_heads
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.c_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        tril = torch.tril(torch.ones(context_length, context_length))
        self.register_buffer("tril", tril, persistent=False)

    def forward(self, x):
        T = x.size(1)
        q, k, v = (
            split_heads(part, self.n) for part in self.c_attn(x).split(self.c_proj.in_features, -1)
        )
        att = torch.einsum("bhqd,bhkd->bhqk", q, k).div(q.size(-1) ** 0.5)
        att.masked_fill_(self.tril[:T, :T] == 0, float("-inf"))
        return self.c_proj(merge_heads(self.drop(att.softmax(-1)) @ v))
