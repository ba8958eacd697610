# Tries: appends to a list for ever, in large steps; another answer is right.
# Worked in: -
# Deserves: causal_mask 1
import torch

hoard = []


def softmax_rows(scores):
    while True:
        hoard.append(bytearray(2**24))


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
