import torch
from torch import nn
from torch.nn import functional as F


def causal_mask(num_tokens):
    position = torch.arange(num_tokens)
    return position.unsqueeze(0) > position.unsqueeze(1)


def masked_softmax(scores, mask):
    hidden = scores.masked_fill(mask, float("-inf"))
    return torch.nan_to_num(F.softmax(hidden, dim=-1))


def renormalized_causal_weights(weights):
    past = weights * torch.tril(torch.ones_like(weights))
    return F.normalize(past, p=1, dim=-1)


def apply_dropout(weights, keep, p):
    return torch.where(keep, weights / (1.0 - p), torch.zeros_like(weights))


class CausalAttention(nn.Module):
    # names of my own, and another order
    def __init__(self, dim_in, dim_out, drop_rate, block_size, bias=False):
        super().__init__()
        assert block_size > 0
        self.to_q = nn.Linear(dim_in, dim_out, bias=bias)
        self.to_kv = nn.ModuleList([nn.Linear(dim_in, dim_out, bias=bias) for _ in range(2)])
        self.rate = drop_rate

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_kv[0](x), self.to_kv[1](x)
        att = torch.einsum("bqd,bkd->bqk", q, k) / q.size(-1) ** 0.5
        hidden = torch.ones(att.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        att = F.softmax(att.masked_fill(hidden, -torch.inf), dim=-1)
        return F.dropout(att, self.rate, training=self.training) @ v
