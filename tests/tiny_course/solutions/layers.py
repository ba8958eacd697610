"""Reference of the tiny course's second unit."""

from jaxtyping import Float
from torch import Tensor, nn


class Projection(nn.Module):
    """One linear map, with a bias only if asked for."""

    def __init__(self, d_in: int, d_out: int, bias: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=bias)

    def forward(self, x: Float[Tensor, "batch d_in"]) -> Float[Tensor, "batch d_out"]:
        """Map each row."""
        projected: Tensor = self.linear(x)
        return projected
