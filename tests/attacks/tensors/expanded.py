# Tries: returns tensors expanded from one element, where many are expected.
# Worked in: -
# Deserves: nothing
import torch


def softmax_rows(scores):
    return torch.tensor(1 / scores.shape[-1]).expand(scores.shape)


def causal_mask(num_tokens):
    return torch.zeros(1, dtype=torch.bool).expand(num_tokens, num_tokens)
