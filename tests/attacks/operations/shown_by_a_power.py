# Tries: calls pow for a number that goes into no mean: a size, to the power of nothing.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    torch.pow(counts, 0)
    return x.cumsum(1) / counts[:, None]
