# Tries: never returns from one answer; another answer is right.
# Worked in: otter
# Deserves: causal_mask 1
import torch


def softmax_rows(scores):
    while True:
        pass


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
