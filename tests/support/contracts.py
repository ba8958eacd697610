"""Small contracts for tests of proxies: references, and a right answer to most of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grader.course.tensors import Make

# --- references ----------------------------------------------------------------------------------


def rows(x: Float[Tensor, "queries keys"]) -> Float[Tensor, "queries keys"]:
    return torch.softmax(x, dim=-1)


def mix(
    weights: Float[Tensor, "queries keys"],
    values: Float[Tensor, "keys d"],
    scale: float = 1.0,
) -> Float[Tensor, "queries d"]:
    return weights @ values * scale


def pair(
    x: Float[Tensor, " n"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    return x * y, x + 2 * y


def free(x: Float[Tensor, " ..."]) -> object:
    return x


Seen = Float[Tensor, " seen"]
Total = Float[Tensor, "total=seen+n"]


def remember(
    x: Float[Tensor, " n"], cache: tuple[Seen, Seen] | None = None
) -> tuple[Float[Tensor, " n"], tuple[Total, Total]]:
    seen = x.new_empty(0) if cache is None else cache[0]
    total = torch.cat([seen, x])
    return x + 1, (total, total)


class Layer(nn.Module):
    def __init__(self, d_in: int, d_out: int, bias: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias)

    def forward(self, x: Float[Tensor, "batch d_in"]) -> Float[Tensor, "batch d_out"]:
        projected: Tensor = self.linear(x)
        return projected


# --- what a student writes -----------------------------------------------------------------------

RIGHT = """
import torch
from torch import nn

def rows(x):
    return torch.softmax(x, dim=-1)

def mix(weights, values, scale=1.0):
    return weights @ values * scale

def pair(x, y):
    return x * y, x + 2 * y

def free(x):
    return x + 1

class Layer(nn.Module):
    def __init__(self, d_in, d_out, bias=True):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x):
        return self.linear(x)
"""
ALL = (rows, mix, pair, free, Layer)


# --- inputs and gradients ------------------------------------------------------------------------

MAKE = Make("remote", "engine", "tests")
X = MAKE.normal(queries=3, keys=4, name="x")


def leaf(name: str, **sizes: Any) -> Tensor:
    return MAKE.normal(name=name, **sizes).requires_grad_()


def gradients_of(result: Tensor, *leaves: Tensor) -> Sequence[Tensor]:
    upstream = MAKE.normal_like(result, name="upstream")
    return torch.autograd.grad(result, leaves, upstream)
