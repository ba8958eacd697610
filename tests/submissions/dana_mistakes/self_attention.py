import torch
import torch.nn as nn
import torch.nn.functional as F


def scaled_scores(queries, keys):
    return queries @ keys.transpose(-2, -1) / keys.shape[-1]  # mistake 4: no square root


def scaled_dot_product_attention(queries, keys, values, mask=None):
    allowed = None if mask is None else ~mask
    # mistake 5: right, but the exercise is to write it
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).T
        return torch.softmax(scores, dim=-1) @ (x @ self.W_value)  # mistake 6: no scale
