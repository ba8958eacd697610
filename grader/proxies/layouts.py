"""The layouts in which people store the same weights, and how each is read as a matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Layout(NamedTuple):
    """How a parameter is read as a matrix.

    A role, such as ``W_query``, has a matrix of shape (d_out, d_in). A parameter holds rows of this
    matrix. With `by_input`, the parameter holds columns; a column has the weights of a single input
    feature.
    """

    view: Literal["last", "swapped", "first", "spread", "flat"]
    by_input: bool = False

    def size(self, shape: Sequence[int]) -> tuple[int, int | None]:
        """The number of rows in a parameter of this shape, and their width; a bias has no width."""
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
LINEAR = Layout("last")  # (d_out, d_in), or a head's rows of this matrix
# Layouts outside of `nn.Linear`: (d_in, d_out), for x @ W, is likelier than (d_out, d_in).
PLAIN = (Layout("swapped"), LINEAR)
# Layouts that stack columns, as in these cases: each head has its own output layer, and the results
# are added; a parameter has shape (heads, head_dim, d_out); a table holds tokens and positions.
BY_INPUT = (Layout("last", by_input=True), Layout("swapped", by_input=True))
CUT = Layout("first")  # an output matrix of shape (d_out, heads, head_dim)
SPREAD = Layout("spread")  # (d_in, heads, head_dim), (d_in, 3, d_out), (d_in, 3, heads, head_dim)
