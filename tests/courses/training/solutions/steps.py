"""References of unit 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


def cross_entropy(
    logits: Float[Tensor, "batch classes"], targets: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Measure how surprised a model is by the right classes."""
    totals = torch.logsumexp(logits, dim=1)
    chosen = logits[torch.arange(len(targets)), targets]
    return (totals - chosen).mean()


def clip_gradients(gradients: list[Tensor], largest: float) -> list[Tensor]:
    """Shorten gradients that are too long together."""
    squares = torch.stack([gradient.square().sum() for gradient in gradients])
    length = squares.sum().sqrt()
    scale = torch.clamp(largest / length, max=1.0)
    return [gradient * scale for gradient in gradients]


def schedule(steps: int, warmup: int, peak: float) -> Float[Tensor, " steps"]:
    """Plan the learning rate of every step."""
    step = torch.arange(steps)
    rising = (step + 1) / warmup
    angle = math.pi * (step - warmup) / (steps - warmup)
    falling = (1 + torch.cos(angle)) / 2
    return peak * torch.where(step < warmup, rising, falling)


@dataclass(frozen=True)
class Momentum:
    """A weight with the average of its gradients so far."""

    weight: Float[Tensor, " features"]
    average: Float[Tensor, " features"]
    steps: int = 0


def momentum_step(
    state: Momentum, gradient: Float[Tensor, " features"], rate: float, keep: float = 0.9
) -> Momentum:
    """Move a weight against the average of its gradients."""
    average = keep * state.average + (1 - keep) * gradient
    return Momentum(state.weight - rate * average, average, state.steps + 1)
