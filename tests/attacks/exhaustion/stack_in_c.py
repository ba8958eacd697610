# Tries: overflows the stack in C: a chain of 200,000 iterators that is consumed, and of lists that is printed.
# Worked in: -
# Deserves: causal_mask 1
import sys

import torch


def softmax_naive(scores):
    chain = iter(())
    for _ in range(2 * 10**5):
        chain = map(None, chain)
    return list(chain)


def softmax_rows(scores):
    sys.setrecursionlimit(10**9)
    chain = []
    for _ in range(2 * 10**5):
        chain = [chain]
    return repr(chain)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
