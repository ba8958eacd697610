"""References of unit 2."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def train(
    model: nn.Module,
    batches: Iterable[tuple[Float[Tensor, "batch features"], Int[Tensor, " batch"]]],
    rate: float,
) -> None:
    """Train a model for one pass over the batches."""
    model.train()
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight.sub_(rate * gradient)


def accuracy(
    model: nn.Module, inputs: Float[Tensor, "batch features"], targets: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Find the fraction of rows for which the largest logit is that of the target."""
    before = model.training
    model.eval()
    with torch.no_grad():
        predicted = model(inputs).argmax(dim=1)
    model.train(before)
    right: Tensor = predicted == targets
    return right.float().mean()
