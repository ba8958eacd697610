# Tries: calls torch.softmax, F.softmax, Tensor.softmax and log_softmax where the exercise is to write it.
# Worked in: -
# Deserves: nothing
import torch
import torch.nn.functional as F


def normalize_by_sum(scores):
    return F.softmax(torch.log(scores), dim=0)


def softmax_naive(scores):
    return torch.softmax(scores, 0)


def softmax_rows(scores):
    return scores.softmax(-1)


def softmax_stable(scores, dim=-1):
    return scores.log_softmax(dim).exp()
