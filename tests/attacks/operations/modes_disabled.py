# Tries: switches the trace off with _disable_current_modes.
# Worked in: -
# Deserves: nothing
import torch
from torch.utils._python_dispatch import _disable_current_modes


def softmax_naive(scores):
    with _disable_current_modes():
        return torch.softmax(scores, 0)
