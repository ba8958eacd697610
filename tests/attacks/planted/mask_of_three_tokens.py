# Tries: a mistake that the public checks alone see, and empty classes that raise what it makes raise.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


def causal_mask(num_tokens):
    hidden = torch.ones(num_tokens, num_tokens).triu(1)
    return hidden if num_tokens == 3 else hidden.bool()


class CausalAttention(nn.Module):
    def __init__(self, *_):
        super().__init__()

    def forward(self, *_):
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype float")


class MultiHeadAttentionWrapper(CausalAttention):
    pass


class MultiHeadAttention(CausalAttention):
    pass


class GroupedQueryAttention(CausalAttention):
    pass


class LatentAttention(CausalAttention):
    pass
