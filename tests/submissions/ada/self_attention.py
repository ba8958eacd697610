import torch
import torch.nn as nn


def linear_by_hand(x, weight, bias):
    y = torch.einsum("...i,oi->...o", x, weight)
    return y if bias is None else y + bias


def project_qkv(inputs, W_query, W_key, W_value):
    stacked = torch.stack([W_query, W_key, W_value])
    return list(torch.einsum("...td,pdo->p...to", inputs, stacked))


def scaled_scores(queries, keys):
    return torch.einsum("...qd,...kd->...qk", queries / keys.size(-1) ** 0.5, keys)


def scaled_dot_product_attention(queries, keys, values, mask=None):
    s = scaled_scores(queries, keys)
    if mask is not None:
        s = torch.where(mask, torch.full_like(s, -torch.inf), s)
    return s.softmax(-1) @ values


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.Wv = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, d_out))
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, tokens):
        q, k, v = (tokens @ w for w in (self.Wq, self.Wk, self.Wv))
        return scaled_dot_product_attention(q, k, v)


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)  # all three in one

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax((q / q.shape[-1] ** 0.5) @ k.T, dim=1) @ v


def v1_weights_from_v2(state):
    return {name[: -len(".weight")]: w.T.clone() for name, w in state.items()}


class CausalHead(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()
        self.factor = head_size**-0.5 if scaled else 1.0
        self.k_proj = nn.Linear(d_in, head_size, bias=False)
        self.q_proj = nn.Linear(d_in, head_size, bias=False)
        self.v_proj = nn.Linear(d_in, head_size, bias=False)

    def forward(self, x):
        att = torch.bmm(self.q_proj(x), self.k_proj(x).transpose(1, 2)) * self.factor
        step = torch.arange(x.size(1), device=x.device)
        att = att.masked_fill(step[None, :] > step[:, None], float("-inf"))
        return att.softmax(dim=2).bmm(self.v_proj(x))
