# Tries: asks for 100 GB at once; another answer is right.
# Worked in: -
# Deserves: causal_mask 1
import torch


def softmax_rows(scores):
    return bytearray(10**11)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
