# Tries: adds an exponential and takes the same off again.
# Worked in: -
# Deserves: nothing
import torch


def running_mean_softmax(x):
    weights = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    noise = torch.exp(weights)
    return (weights + (noise - noise)) @ x
