# Tries: never ends in __init__ of a module, and in forward of another; another answer is right.
# Worked in: otter
# Deserves: causal_mask 1
import torch
from torch import nn


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        while True:
            self.d_in = d_in

    def forward(self, x):
        return x


class CausalHead(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()

    def forward(self, x):
        while True:
            x = x + 1


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
