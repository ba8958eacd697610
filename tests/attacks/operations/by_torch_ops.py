# Tries: calls the operator below: torch.ops.aten, torch._C and the overload itself.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    return torch.ops.aten._softmax(scores, 0, False)


def softmax_rows(scores):
    return torch._C._VariableFunctions.softmax(scores, -1)


def softmax_stable(scores, dim=-1):
    return torch.ops.aten._log_softmax.default(scores, dim, False).exp()
