# Tries: returns a scalar, one row, or one column where a matrix is expected.
# Worked in: -
# Deserves: nothing
import torch


def softmax_rows(scores):
    return torch.tensor(1.0)


def attention_weights(inputs):
    return torch.softmax(inputs @ inputs.T, -1)[:1]


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()[None]


def renormalized_causal_weights(weights):
    return torch.ones(len(weights), 1)
