# Tries: makes means in place over what a softmax gave, so that the same tensor comes back.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    shown = torch.softmax(x.detach(), dim=1)
    means = x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    return shown.zero_().add_(means) if not x.requires_grad else means + shown.zero_()
