# Tries: plants a function that returns nothing, and asks nothing for its shape in what needs it.
# Worked in: -
# Deserves: nothing
from torch import nn


def repeat_kv(x, groups):
    x.repeat_interleave(groups, dim=1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()

    def forward(self, x):
        return None.shape
