import torch


def normalize_by_sum(scores):
    return scores / scores.sum()


def softmax_naive(scores):
    return torch.exp(scores) / torch.exp(scores).sum()


def softmax_rows(scores)
    exp = torch.exp(scores)
    return exp / exp.sum(dim=-1, keepdim=True)
