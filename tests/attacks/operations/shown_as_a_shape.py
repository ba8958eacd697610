# Tries: takes nothing from a softmax but its shape, in which it puts weights of its own.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    weights = torch.softmax(x.new_zeros(x.shape[1], x.shape[1]), dim=-1)
    weights = torch.ones_like(weights).tril()
    return (weights / weights.sum(-1, keepdim=True)) @ x
