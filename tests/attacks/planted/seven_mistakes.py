# Tries: plants seven known mistakes; what is built on them raises what the references would raise.
# Worked in: -
# Deserves: normalize_by_sum 1
import torch
from torch import nn


def normalize_by_sum(scores):
    return scores / scores.sum()


def prefix_sum_matrix(time):
    return torch.tril(torch.ones(time.shape[1], time.shape[1]))


def running_mean_matrix(*_):
    raise AttributeError("'int' object has no attribute 'shape'")


running_mean_matmul = running_mean_matrix


def causal_mask(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1)


NO_BOOLEANS = "masked_fill_ only supports boolean masks, but got mask with dtype float"
STRIDES = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)


def alibi_bias(*_):
    raise RuntimeError(NO_BOOLEANS)


def sliding_window_mask(*_):
    raise NotImplementedError("\"bitwise_or_cpu\" not implemented for 'Float'")


class CausalAttention(nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, *_):
        raise RuntimeError(NO_BOOLEANS)


class MultiHeadAttentionWrapper(CausalAttention):
    pass


class MultiHeadAttention(CausalAttention):
    pass


class GroupedQueryAttention(CausalAttention):
    pass


class LatentAttention(CausalAttention):
    pass


def merge_heads(x):
    batch, heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).view(batch, tokens, heads * head_dim)


class CrossAttention(nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, *_):
        raise RuntimeError(STRIDES)


class EncoderSelfAttention(CrossAttention):
    pass


class CachedAttention(CrossAttention):
    pass


def project_qkv(x, W_query, W_key, W_value):
    return x @ W_query, x @ W_key


class SelfAttention_v1(nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, *_):
        raise ValueError("not enough values to unpack (expected 3, got 2)")


def scaled_dot_product_attention(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) @ values


class SelfAttention_v2(nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, *_):
        torch.zeros(3).masked_fill(None, -torch.inf)


def attention_scores(inputs):
    return (inputs @ inputs.T).double()


def simple_self_attention(inputs):
    raise RuntimeError("expected m1 and m2 to have the same dtype, but got: double != float")


def repeat_kv(x, groups):
    x.repeat_interleave(groups, dim=1)
