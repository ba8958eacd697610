# Tries: uses nn.Linear, F.linear, bilinear and addmm's relatives where the linear layer is to be written.
# Worked in: -
# Deserves: nothing
import torch.nn.functional as F


def linear_by_hand(x, weight, bias=None):
    return F.linear(x, weight, bias)
