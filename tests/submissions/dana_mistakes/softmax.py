import torch


def softmax_naive(scores):
    return torch.exp(scores) / torch.exp(scores).sum()


def softmax_rows(scores):
    exp = torch.exp(scores)
    return exp / exp.sum(dim=0, keepdim=True)  # mistake 2: columns sum to one


def softmax_stable(scores, dim=-1):
    exp = torch.exp(scores - scores.max())  # mistake 3: one maximum for the whole tensor
    return exp / exp.sum(dim=dim, keepdim=True)
