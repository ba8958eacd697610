# Tries: reads address 0, writes over its own code, and jumps into nothing.
# Worked in: -
# Deserves: causal_mask 1
import ctypes

import torch


def softmax_naive(scores):
    ctypes.string_at(0)


def softmax_rows(scores):
    ctypes.memset(id(softmax_rows), 255, 4096)
    return softmax_rows(scores)


def softmax_stable(scores, dim=-1):
    ctypes.CFUNCTYPE(None)(16)()


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
