# Tries: opens every descriptor that it can get, and keeps them; another answer is right.
# Worked in: -
# Deserves: softmax_naive 2
import os

import torch

kept = []


def causal_mask(num_tokens):
    while len(kept) < 10_000:
        kept.append(os.open("/dev/null", os.O_RDONLY))
    return torch.ones(num_tokens, num_tokens).triu(1).bool()


def softmax_naive(scores):
    return torch.exp(scores) / torch.exp(scores).sum()
