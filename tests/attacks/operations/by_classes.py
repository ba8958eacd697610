# Tries: uses the classes of torch.nn: Softmax, Softmax2d, LogSoftmax, MultiheadAttention.
# Worked in: -
# Deserves: nothing
import torch
from torch import nn


def softmax_naive(scores):
    return nn.Softmax(dim=0)(scores)


def softmax_rows(scores):
    return nn.Softmax2d()(scores.T[None, :, :, None])[0, :, :, 0].T


def softmax_stable(scores, dim=-1):
    return nn.LogSoftmax(dim)(scores).exp()


def scaled_dot_product_attention(queries, keys, values, mask=None):
    mask = None if mask is None else ~mask
    return nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
