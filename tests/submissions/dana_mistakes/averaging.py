import torch
import torch.nn.functional as F


def prefix_sum_matrix(time):
    return torch.tril(torch.ones(time, time))


def running_mean_softmax(x):
    time = x.shape[1]
    weights = prefix_sum_matrix(time)
    weights = weights / weights.sum(1, keepdim=True)
    return F.softmax(weights, dim=-1) @ x  # mistake 1: a softmax of the averaged matrix
