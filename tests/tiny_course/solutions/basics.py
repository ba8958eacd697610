"""References of the tiny course's first unit."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def center(x: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """Subtract the mean from each element."""
    return x - x.mean()


def staircase(size: int) -> Bool[Tensor, "size size"]:
    """Build a square of booleans, True on and below the diagonal."""
    return torch.ones(size, size, dtype=torch.bool).tril()


def weigh(scores: Float[Tensor, "queries keys"]) -> Float[Tensor, "queries keys"]:
    """Turn each row into weights that sum to one, without torch's softmax."""
    largest = scores.max(dim=-1, keepdim=True).values
    weights = torch.exp(scores - largest)
    return weights / weights.sum(dim=-1, keepdim=True)
