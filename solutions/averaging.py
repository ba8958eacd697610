"""Unit 1, averaging: the mean of the past, four ways to the same numbers."""

import torch
from jaxtyping import Float
from torch import Tensor


def running_mean_loop(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Average each token with its past, one time step after the other: out[b, t] = mean x[b, :t+1].

    From (batch, time, channels) to the same. The means are collected and stacked, so nothing is
    written in place.
    """
    _batch, time, _channels = x.shape
    means = []
    for t in range(time):
        past = x[:, : t + 1, :]  # (batch, t + 1, channels)
        mean = past.mean(dim=1)  # (batch, channels)
        means.append(mean)
    return torch.stack(means, dim=1)  # (batch, time, channels)


def prefix_sum_matrix(time: int) -> Float[Tensor, "time time"]:
    """Ones on and below the diagonal, shape (time, time): row t selects the tokens up to t."""
    ones = torch.ones(time, time)
    return torch.tril(ones)


def running_mean_matrix(time: int) -> Float[Tensor, "time time"]:
    """Divide each row of the triangle of ones by its sum, shape (time, time)."""
    selected = prefix_sum_matrix(time)  # (time, time)
    counts = selected.sum(dim=-1, keepdim=True)  # (time, 1): 1, 2, 3, …
    return selected / counts


def running_mean_matmul(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Average each token with its past by one matrix product, from (batch, time, channels).

    The triangle takes on the dtype of x while it still holds zeros and ones: a third that was
    rounded to float32 would stay rounded in float64.
    """
    _batch, time, _channels = x.shape
    selected = prefix_sum_matrix(time).to(x)  # (time, time), dtype and device of x
    counts = selected.sum(dim=-1, keepdim=True)  # (time, 1)
    weights = selected / counts  # (time, time)
    return weights @ x  # (time, time) @ (batch, time, channels) -> (batch, time, channels)


def running_mean_softmax(
    x: Float[Tensor, "batch time channels"],
) -> Float[Tensor, "batch time channels"]:
    """Average each token with its past by the softmax of a masked matrix of zeros.

    From (batch, time, channels) to the same. Equal scores get equal weights, and -inf gets none.
    """
    _batch, time, _channels = x.shape
    everywhere = torch.ones(time, time, dtype=torch.bool, device=x.device)
    future = torch.triu(everywhere, diagonal=1)  # (time, time), True above the diagonal
    scores = x.new_zeros(time, time)  # dtype and device of x
    scores = scores.masked_fill(future, float("-inf"))
    weights = torch.softmax(scores, dim=-1)  # (time, time), rows sum to one
    return weights @ x  # (batch, time, channels)
