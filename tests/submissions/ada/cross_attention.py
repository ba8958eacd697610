import torch
from torch import nn

from exercises.multi_head_attention import merge_heads, split_heads


def padding_mask(lengths, num_tokens):
    positions = torch.arange(num_tokens, device=lengths.device)
    return ~(positions.unsqueeze(0) < lengths.unsqueeze(1))


def attend(q, k, v, hidden=None):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.size(-1) ** -0.5
    if hidden is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(hidden[:, None, None], -torch.inf)
    return scores.softmax(-1) @ v


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.n_heads = num_heads
        self.to_q = nn.Linear(d_query, d_out, bias=False)
        self.to_kv = nn.Linear(d_context, 2 * d_out, bias=False)
        self.to_out = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (split_heads(t, self.n_heads) for t in (self.to_q(x), k, v))
        return self.to_out(merge_heads(attend(q, k, v, context_mask)))


class EncoderSelfAttention(nn.Module):
    """The same, on one sequence: x is its own context."""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.inner = CrossAttention(d_in, d_in, d_out, num_heads)

    def forward(self, x, padding=None):
        out = self.inner(x, x, padding)
        if padding is None:
            return out
        return out.masked_fill(padding[..., None], 0.0)
