# Tries: answers a one-element Tensor subclass that claims any shape, dtype and size.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import torch


class Liar(torch.Tensor):
    shape = property(lambda self: torch.Size([5]))
    ndim = property(lambda self: 1)
    dtype = property(lambda self: torch.float32)
    __len__ = numel = nelement = lambda self: 5
    size = lambda self, dim=None: 5 if dim is not None else torch.Size([5])
    __eq__ = __ne__ = lambda self, other: torch.ones(5, dtype=torch.bool)


def softmax_naive(scores):
    return torch.ones(1).as_subclass(Liar)
