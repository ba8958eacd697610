# Tries: pops the trace off its stack and pushes it back.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    mode = torch._C._pop_torch_function_stack()
    try:
        return torch.softmax(scores, 0)
    finally:
        torch._C._push_on_torch_function_stack(mode)


def softmax_rows(scores):
    low = vars(torch)["_C"]
    mode = getattr(low, "_pop_torch_" + "function_stack")()
    try:
        return torch.softmax(scores, -1)
    finally:
        getattr(low, "_push_on_torch_" + "function_stack")(mode)
