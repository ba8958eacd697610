# Tries: raises an exception whose text takes for ever to make.
# Worked in: -
# Deserves: causal_mask 1
import torch


class Slow(Exception):
    def __str__(self):
        while True:
            pass


def softmax_rows(scores):
    raise Slow


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
