# Tries: hides softmax in functools.partial, operator.methodcaller and functools.reduce.
# Worked in: -
# Deserves: nothing
import functools
import operator

import torch


def softmax_naive(scores):
    return functools.partial(torch.softmax, dim=0)(scores)


def softmax_rows(scores):
    return operator.methodcaller("softmax", -1)(scores)


def softmax_stable(scores, dim=-1):
    return functools.reduce(torch.softmax, [dim], scores)
