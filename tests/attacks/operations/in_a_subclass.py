# Tries: calls softmax inside __torch_function__ of a Tensor subclass, where the trace stands aside.
# Worked in: -
# Deserves: nothing
import torch


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C._DisableTorchFunctionSubclass() if False else torch.enable_grad():
            return torch.softmax(args[0].as_subclass(torch.Tensor), -1)


def softmax_rows(scores):
    return scores.as_subclass(Own) + 1
