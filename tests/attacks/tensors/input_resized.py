# Tries: resizes its input in place, swaps its storage, and changes its dtype.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    scores.data = torch.zeros(1)
    return torch.ones(1)


def softmax_rows(scores):
    scores.data.resize_(10**6).zero_()
    return scores.data[:1].exp()
