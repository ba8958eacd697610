# Tries: zeroes its input in place, so that a reference computed later sees zeros, and answers for zeros.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    scores.data.zero_()
    return torch.full_like(scores, 1 / len(scores))


def softmax_rows(scores):
    scores.data.zero_()
    return torch.full_like(scores, 1 / scores.shape[-1])


def attention_weights(inputs):
    inputs.data.mul_(0)
    return torch.full((len(inputs), len(inputs)), 1 / len(inputs))
