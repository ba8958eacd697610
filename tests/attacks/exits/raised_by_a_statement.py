# Tries: raises SystemExit in a statement at module level that its answer needs.
# Worked in: otter
# Deserves: causal_mask 1
import torch

scale = exit(0)


def softmax_rows(scores):
    return scale


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
