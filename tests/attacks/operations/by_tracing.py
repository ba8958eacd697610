# Tries: compiles softmax with torch.jit at module level, where no call is traced yet.
# Worked in: -
# Deserves: nothing
import torch
import torch as t

compiled = t.jit.trace(lambda x: torch.softmax(x, -1), (torch.zeros(3, 3),), check_trace=False)
unit = getattr(torch, "j" + "it").CompilationUnit("def f(x):\n    return torch.softmax(x, 0)\n")


def softmax_rows(scores):
    return compiled(scores)


def softmax_naive(scores):
    return unit.f(scores)
