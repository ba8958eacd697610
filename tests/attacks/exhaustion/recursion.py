# Tries: recurses without end, with the limit lifted; another answer is right.
# Worked in: -
# Deserves: causal_mask 1
import sys

import torch


def softmax_naive(scores):
    return softmax_naive(scores)


def softmax_rows(scores):
    sys.setrecursionlimit(10**9)
    return softmax_rows(scores)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
