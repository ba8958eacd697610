# Tries: makes a module of 3,000 layers that all look alike, and one with a layer for each number.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_in, d_out, bias=False) for _ in range(3000))

    def forward(self, x):
        return self.layers[0](x)


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.one = nn.ParameterList(torch.rand(d_out, d_in) for _ in range(400))

    def forward(self, x):
        return x @ self.one[0].T
