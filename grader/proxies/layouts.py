"""How a parameter is read as a matrix: the layouts that people write the same weights in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Layout(NamedTuple):
    """How a parameter is read as a matrix, and whose rows are laid below each other in it.

    The matrix of a role is (d_out, d_in). In a parameter its rows may stand below each other, or,
    with `by_input`, its columns: one for each number that goes in.
    """

    view: Literal["last", "swapped", "first", "spread", "flat"]
    by_input: bool = False

    def size(self, shape: Sequence[int]) -> tuple[int, int | None]:
        """How many rows a parameter of this shape has, and how wide they are; a bias has none."""
        if self.view == "flat" or not shape:
            return math.prod(shape), None
        width = {
            "last": shape[-1],
            "swapped": shape[-2],
            "first": math.prod(shape[1:]),
            "spread": shape[0],
        }[self.view]
        return math.prod(shape) // max(width, 1), width


FLAT = Layout("flat")  # a bias: (d,), (1, d) or (heads, head_dim)
LINEAR = Layout("last")  # (d_out, d_in), or a part of it for each head
# Of bare parameters, the likeliest first: (d_in, d_out), as x @ W wants it.
PLAIN = (Layout("swapped"), LINEAR)
# Columns below each other: of one layer for each head, whose results are added up; of (heads,
# head_dim, d_out); of one table that holds tokens and positions.
BY_INPUT = (Layout("last", by_input=True), Layout("swapped", by_input=True))
CUT = Layout("first")  # an output matrix of shape (d_out, heads, head_dim)
SPREAD = Layout("spread")  # (d_in, heads, head_dim), (d_in, 3, d_out), (d_in, 3, heads, head_dim)
