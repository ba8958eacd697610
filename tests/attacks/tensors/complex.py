# Tries: returns right values as complex numbers, and as lazy conjugates and negatives.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    return (torch.exp(scores) / torch.exp(scores).sum()).to(torch.complex64)


def softmax_rows(scores):
    weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
    return torch.complex(weights, weights).conj()
