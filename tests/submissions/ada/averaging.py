# Everything right, in a style unlike the references.
import torch as th
from torch import cumsum


def running_mean_loop(seq):
    means = []
    for row in seq:
        total = th.zeros_like(row[0])
        steps = []
        for n, token in enumerate(row, start=1):
            total = total + token
            steps.append(total / n)
        means.append(th.stack(steps))
    return th.stack(means)


def prefix_sum_matrix(time):
    index = th.arange(time)
    return (index[None, :] <= index[:, None]).float()


def running_mean_matrix(n):
    m = prefix_sum_matrix(n)
    return m / th.arange(1, n + 1).unsqueeze(1)


def running_mean_matmul(x):
    counts = th.arange(1, x.size(1) + 1, dtype=x.dtype, device=x.device)
    return cumsum(x, dim=1) / counts[:, None]


def running_mean_softmax(x):
    t = x.size(-2)
    w = th.full((t, t), float("-inf"), dtype=x.dtype).triu(1)
    e = w.exp()
    return th.einsum("ij,bjc->bic", e / e.sum(1, keepdim=True), x)
