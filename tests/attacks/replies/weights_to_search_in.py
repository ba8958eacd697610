# Tries: makes many weights of one shape and a large bias, for whoever tries them all.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for n in "abcdef":
            setattr(self, "w"+n+"x", nn.Parameter(torch.rand(d_in, d_out)))
        self.bias = nn.Parameter(torch.zeros(60_000))
    def forward(self, x):
        return x @ self.wax
