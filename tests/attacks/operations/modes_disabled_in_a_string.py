# Tries: switches the trace off in a string, with names put together from pieces.
# Worked in: -
# Deserves: nothing
import importlib

import torch

CODE = """
import torch
from torch.utils._python_dispatch import _disable_current_modes
with _disable_current_modes(), torch._C.DisableTorchFunction():
    out = torch.softmax(scores, -1)
"""


def softmax_rows(scores):
    space = {"scores": scores}
    exec(CODE, space)
    return space["out"]


def softmax_naive(scores):
    dispatch = importlib.import_module("torch.utils._python_" + "dispatch")
    with getattr(dispatch, "_disable_current" + "_modes")():
        return torch.softmax(scores, 0)
