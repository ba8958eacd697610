# Tries: calls softmax and forgets what it gave.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    torch.softmax(x, dim=1)
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    return x.cumsum(1) / counts[:, None]
