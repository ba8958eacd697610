# Tries: returns NaN in every place, which differs from nothing.
# Worked in: -
# Deserves: nothing
import torch


def softmax_rows(scores):
    return torch.full_like(scores, torch.nan)


def attention_weights(inputs):
    return torch.full((len(inputs), len(inputs)), torch.nan)


def context_vector(inputs, query_index):
    return inputs[query_index] * torch.inf
