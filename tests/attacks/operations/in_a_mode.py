# Tries: calls softmax inside a function mode of its own, over the trace.
# Worked in: -
# Deserves: nothing
import torch


class Mine(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return torch.softmax(args[0], -1)


def softmax_naive(scores):
    with Mine():
        return torch.exp(scores)
