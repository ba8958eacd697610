# Tries: uses the linear layer of another library of kernels.
# Worked in: -
# Deserves: nothing
import torch
def linear_by_hand(x, weight, bias=None):
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
