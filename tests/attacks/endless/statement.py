# Tries: never ends in a statement at module level that its answer needs; another answer is right.
# Worked in: otter
# Deserves: causal_mask 1
import torch

total = sum(iter(int, 1))


def softmax_rows(scores):
    return scores / total


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
