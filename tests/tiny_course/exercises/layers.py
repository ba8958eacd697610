"""Stub of the tiny course's second unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from jaxtyping import Float


class Projection(nn.Module):
    """One linear map, with a bias only if asked for."""

    def __init__(self, d_in: int, d_out: int, bias: bool = False) -> None:  # noqa: ARG002
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch d_in"]) -> Float[Tensor, "batch d_out"]:
        raise NotImplementedError
