# Tries: raises an integer to a power that takes years, in one operation that no signal interrupts.
# Worked in: -
# Deserves: causal_mask 1
import torch


def softmax_rows(scores):
    return 7 ** (7**12)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
