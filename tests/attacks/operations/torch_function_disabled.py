# Tries: enters DisableTorchFunction and DisableTorchFunctionSubclass.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    with torch._C.DisableTorchFunction():
        return torch.softmax(scores, 0)


def softmax_rows(scores):
    with torch._C.DisableTorchFunctionSubclass():
        return torch.softmax(scores, -1)


def softmax_stable(scores, dim=-1):
    name = "DisableTorch" + "Function"
    with getattr(torch._C, name)():
        return torch.softmax(scores, dim)
