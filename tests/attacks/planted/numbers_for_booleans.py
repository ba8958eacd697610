# Tries: plants a mask of numbers, and classes that hold nothing but the text that it causes.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn

TOLD = "masked_fill_ only supports boolean masks, but got mask with dtype float"


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1)


class Empty(nn.Module):
    def __init__(self, *sizes):
        super().__init__()

    def forward(self, x):
        raise RuntimeError(TOLD)


class CausalAttention(Empty): ...


class MultiHeadAttentionWrapper(Empty): ...


class MultiHeadAttention(Empty): ...


class GroupedQueryAttention(Empty): ...


class LatentAttention(Empty): ...


def alibi_bias(num_heads, num_tokens):
    raise RuntimeError(TOLD)


def sliding_window_mask(num_tokens, window):
    return torch.zeros(1) | torch.zeros(1)
