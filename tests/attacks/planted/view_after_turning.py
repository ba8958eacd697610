# Tries: plants a view that torch refuses, and has six modules fail by another such view.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


def merge_heads(x):
    batch, heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).view(batch, tokens, heads * head_dim)


def failing(self, *inputs):
    return torch.zeros(2, 3).T.view(6)


def made(name):
    fields = {"__init__": lambda self, *sizes: nn.Module.__init__(self), "forward": failing}
    return type(name, (nn.Module,), fields)


MultiHeadAttention = made("MultiHeadAttention")
CrossAttention = made("CrossAttention")
EncoderSelfAttention = made("EncoderSelfAttention")
GroupedQueryAttention = made("GroupedQueryAttention")
CachedAttention = made("CachedAttention")
LatentAttention = made("LatentAttention")
