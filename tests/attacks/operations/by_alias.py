# Tries: imports softmax under other names, from other modules, and through a helper file's star.
# Worked in: -
# Deserves: nothing
import torch
from torch import softmax as my_own
from torch.nn.functional import softmin as harmless

share = [my_own]


def softmax_naive(scores):
    return share[0](scores, 0)


def softmax_rows(scores):
    return harmless(-scores, -1)


def softmax_stable(scores, dim=-1):
    return torch.special.softmax(scores, dim)
