# Tries: names parameters of a module like HTML, an escape, and with line ends.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("<script>alert(1)</script>", "\x1b[2J", "a\nb", "=1+1", "x" * 10**5):
            self._parameters[name] = nn.Parameter(torch.zeros(7, 7, 7))

    def forward(self, x):
        return x
