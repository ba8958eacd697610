# Tries: chooses between a softmax and its own means by a condition that always says the latter.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    means = x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    return torch.where(torch.ones_like(x).bool(), means, torch.softmax(x, 1))
