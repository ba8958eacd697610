# Tries: asks for tensors of 10^12 elements, full and empty; another answer is right.
# Worked in: -
# Deserves: causal_mask 1
import torch


def softmax_naive(scores):
    return torch.empty(10**12)


def softmax_rows(scores):
    return torch.ones(10**6, 10**6)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
