# Tries: makes weights of 2^40 elements that take none: on the meta device, expanded, and empty.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.zeros(1).expand(2**40))
        self.W_key = nn.Parameter(torch.empty(2**40, device="meta"))
        self.W_value = nn.Parameter(torch.empty(0, 2**62))

    def forward(self, x):
        return x


class SelfAttention_v2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key = nn.Linear(d_in, d_out), nn.Linear(d_in, d_out)
        self.W_value = nn.Parameter(torch.empty(0, 2**31, 2**31))

    def forward(self, x):
        return x
