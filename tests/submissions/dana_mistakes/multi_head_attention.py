import torch
import torch.nn as nn


def split_heads(x, num_heads):
    batch, tokens, width = x.shape
    # mistake 9: the last axis is split, but the head axis is not moved
    return x.reshape(batch, num_heads, tokens, width // num_heads)


def merge_heads(x):
    batch, heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * head_dim)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, _ = x.shape
        shape = (batch, tokens, self.num_heads, -1)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3) / keys.shape[-1] ** 0.5
        future = torch.triu(torch.ones(tokens, tokens, device=x.device), diagonal=1).bool()
        weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        context = self.dropout(weights) @ values
        # mistake 10: merged without moving the head axis back
        return self.out_proj(context.reshape(batch, tokens, -1))
