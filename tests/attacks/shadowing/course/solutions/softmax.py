import torch


def softmax_rows(scores):
    return torch.zeros_like(scores)
