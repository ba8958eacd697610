# Tries: plants seven known mistakes in cheap exercises, and writes nothing else at all.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


def prefix_sum_matrix(time):
    return torch.ones(time.shape[1], time.shape[1]).tril()


def running_mean_matrix(time):
    return int().shape


def running_mean_matmul(x):
    return int().shape


def attention_scores(inputs):
    return inputs @ inputs


def attention_weights(inputs):
    return attention_scores(inputs)


def simple_self_attention(inputs):
    return attention_scores(inputs)


def attention_scores_for_query(inputs, query_index):
    return (inputs * inputs[query_index])[:, :1]


def context_vector(inputs, query_index):
    return attention_scores_for_query(inputs, query_index) @ inputs


def project_qkv(inputs, W_query, W_key, W_value):
    return inputs @ W_query, inputs @ W_key


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1)


def merge_heads(x):
    return x.transpose(1, 2).view(len(x), x.shape[2], -1)


def repeat_kv(x, groups):
    x.repeat_interleave(groups, dim=1)


def alibi_bias(num_heads, num_tokens):
    return torch.zeros(1).masked_fill(causal_mask(1), 0)


def sliding_window_mask(num_tokens, window):
    return torch.zeros(1) | torch.zeros(1)


class Nothing(nn.Module):
    def __init__(self, *sizes):
        super().__init__()

    def fails(self, *inputs):
        return torch.zeros(2, 3).T.view(6)

    def numbers(self, *inputs):
        return torch.zeros(1).masked_fill(torch.zeros(1), 0)


class SelfAttention_v1(Nothing):
    def forward(self, x):
        queries, keys, values = (1, 2)


class CausalAttention(Nothing):
    forward = Nothing.numbers


class MultiHeadAttentionWrapper(Nothing):
    forward = Nothing.numbers


class MultiHeadAttention(Nothing):
    forward = Nothing.fails


class CrossAttention(Nothing):
    forward = Nothing.fails


class EncoderSelfAttention(Nothing):
    forward = Nothing.fails


class GroupedQueryAttention(Nothing):
    forward = Nothing.fails


class CachedAttention(Nothing):
    forward = Nothing.fails


class LatentAttention(Nothing):
    forward = Nothing.fails
