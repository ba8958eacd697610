# Tries: returns tensors without elements, none of which is wrong.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    return torch.empty(0)


def softmax_rows(scores):
    return torch.empty(0, scores.shape[-1])


def causal_mask(num_tokens):
    return torch.empty(0, 0, dtype=torch.bool)


def project_qkv(inputs, W_query, W_key, W_value):
    return ()
