import math

import torch


def normalize_by_sum(s):
    return s * s.sum().reciprocal()


def softmax(v):  # a helper of my own that happens to have torch's name
    powers = torch.pow(torch.tensor(math.e, dtype=v.dtype), v)
    return powers / powers.sum()


def softmax_naive(scores):
    return softmax(scores)


def softmax_rows(m):
    e = m.exp()
    return torch.einsum("qk,q->qk", e, 1 / torch.einsum("qk->q", e))


def softmax_stable(scores, dim=-1):
    top, _ = torch.max(scores, dim=dim, keepdim=True)
    e = torch.exp(scores - top.detach())
    return torch.div(e, torch.sum(e, dim=dim, keepdim=True))
