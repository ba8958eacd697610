"""What goes wrong with masks."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.differences.pair import Pair, Said
from grader.differences.places import diagonals
from grader.differences.where import located, true_where_wrong


def same_triangle(pair: Pair) -> Said | None:
    """A triangle of True whose edge stands elsewhere by two diagonals or more."""
    theirs, ours = _edge(pair.theirs), _edge(pair.ours)
    if not pair.is_bool or theirs is None or ours is None or theirs[1] != ours[1]:
        return None
    shift = theirs[0] - ours[0]
    if abs(shift) < 2:
        return None  # one diagonal differs, and is named as such
    far = f"{abs(shift)} diagonals too far to the {'right' if shift > 0 else 'left'}"
    return Said(f"the same triangle, with its edge {far}")


def _edge(matrix: Tensor) -> tuple[int, bool] | None:
    """Which diagonal of a square matrix begins the upper triangle, and whether that is True."""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 4:
        return None
    size = matrix.shape[0]
    steps = torch.arange(size)
    along = torch.cat((matrix[:, 0].flip(0), matrix[0, 1:]))  # one value a diagonal
    changes = along.diff().nonzero().flatten()
    if changes.numel() != 1 or not torch.equal(matrix, along[steps - steps[:, None] + size - 1]):
        return None
    return int(changes[0]) + 2 - size, bool(along[-1])


def inverted(pair: Pair) -> Said | None:
    """True and False the other way round."""
    if not pair.is_bool or not pair.moved or not bool(pair.wrong.all()):
        return None
    return Said("every value is inverted: True where False is expected, and the reverse")


def one_diagonal(pair: Pair) -> Said | None:
    """For masks, before all that moves: a triangle moved by a row is one diagonal more."""
    if not pair.is_bool or diagonals(pair.wrong) is None:
        return None
    return located(pair) if true_where_wrong(pair) else None
