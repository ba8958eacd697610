"""A comparison that failed: what differs, in numbers, and as matrices beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grader.feedback.differences import in_words
from grader.feedback.differences.pair import PRECISION, differing
from grader.records.grade import MatrixCell, Picture


class Disagreement(AssertionError):
    """Two tensors of one shape and dtype that do not agree."""

    def __init__(self, what: str, ours: Tensor, theirs: Tensor, wrong: Tensor) -> None:
        super().__init__(what)
        self._pair = ours, theirs, wrong

    def __str__(self) -> str:
        # When it is read, since nobody reads those of mistakes, and there are thousands.
        ours, theirs, wrong = self._pair
        said = (in_words(theirs, ours, wrong=wrong), _numbers(theirs, ours, wrong))
        return f"{self.args[0]}: {'; '.join(part for part in said if part)}"

    def picture(self, names: Sequence[str] | None = None) -> Picture | None:
        """Expected beside actual beside where they differ; `names` are those of the axes."""
        ours, theirs, wrong = self._pair
        return picture_of(ours, theirs, names=names, wrong=wrong)


def _numbers(theirs: Tensor, ours: Tensor, wrong: Tensor) -> str:
    """How many elements differ, and the worst of them; of a single number, only what it is."""
    if not ours.dim():
        expected, got = _tell_apart(ours.item(), theirs.item())
        return f"expected {expected}, got {got}"
    share = f"{int(wrong.sum())} of {wrong.numel()} elements differ"
    nans = theirs.isnan()
    if nans.any():
        return f"NaN at {_index(nans)}; {share}"
    if not ours.is_floating_point():
        at = _index(wrong)
        return f"{share}, the first at {at}: expected {_at(ours, at)}, got {_at(theirs, at)}"
    gap = (theirs.double() - ours.double()).abs().nan_to_num(nan=0.0, posinf=torch.inf)
    at = _index(wrong & (gap == gap[wrong].max()))
    expected, got = _tell_apart(_at(ours, at), _at(theirs, at))
    return f"{share}; the largest difference is at {at}: expected {expected}, got {got}"


def _tell_apart(expected: float, got: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see the difference, four at least."""
    pairs = ((f"{expected:.{digits}g}", f"{got:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(expected), repr(got)))


def _index(mask: Tensor) -> list[int]:
    return [int(step) for step in mask.nonzero()[0]]


def _at(tensor: Tensor, index: Sequence[int]) -> Any:
    return tensor[tuple(index)].item()


# --- data ----------------------------------------------------------------------------------------
#
# From two tensors that should be alike to the part of them that is worth a look.


MOST_CELLS = 12  # rows, and columns


def picture_of(
    ours: Tensor, theirs: Tensor, *, names: Sequence[str] | None = None, wrong: Tensor | None = None
) -> Picture | None:
    """The first matrix that differs, or as much of it as people can take in.

    Both are tensors of one shape; a vector is one row. `names` are those of all axes, or of the
    last two; `wrong` says which elements differ, and without it the tolerances of `torch.testing`
    do. None where there is nothing to see: a single element, no difference, two shapes or dtypes,
    complex numbers.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return None
    if ours.dtype not in PRECISION or ours.numel() < 2:
        return None
    with torch.no_grad():
        wrong = differing(theirs, ours) if wrong is None else wrong
        if not bool(wrong.any()):
            return None
        first = [int(step) for step in wrong.nonzero()[0]]
        at = tuple(first[:-2])
        matrices = [_matrix(tensor[at]) for tensor in (ours, theirs, wrong)]
    (rows, columns), (top, left) = matrices[2].shape, _corner(matrices[2])
    window = slice(top, top + MOST_CELLS), slice(left, left + MOST_CELLS)
    expected, actual = (_cells(matrix[window]) for matrix in matrices[:2])
    crosses = tuple(map(tuple, matrices[2][window].tolist()))
    named = names is not None and ours.dim() > 1 and len(names) in (2, ours.dim())
    row_name, column_name = tuple(names)[-2:] if names is not None and named else ("", "")
    return Picture(
        expected,
        actual,
        crosses,
        top,
        left,
        rows,
        columns,
        _caption(at, names, ours.dim()) if at else "",
        row_name,
        column_name,
    )


def _corner(wrong: Tensor) -> tuple[int, int]:
    """Where a window begins that has a difference in it."""
    rows, columns = wrong.shape
    top, left = (
        _start(rows, int(wrong.any(1).nonzero()[0])),
        _start(columns, int(wrong.any(0).nonzero()[0])),
    )
    if bool(wrong[top : top + MOST_CELLS, left : left + MOST_CELLS].any()):
        return top, left
    row, column = (int(step) for step in wrong.nonzero()[0])  # where row and column do not meet
    return _start(rows, row), _start(columns, column)


def _start(size: int, wanted: int) -> int:
    """Where a window begins that holds the wanted index: at the beginning, if that will do."""
    return 0 if wanted < MOST_CELLS else min(wanted, size - MOST_CELLS)


def _matrix(tensor: Tensor) -> Tensor:
    """Of a vector one row; and everything but truth values in float64."""
    matrix = tensor.detach().reshape(1, -1) if tensor.dim() == 1 else tensor.detach()
    return matrix if matrix.dtype == torch.bool else matrix.double()


def _cells(matrix: Tensor) -> tuple[tuple[MatrixCell, ...], ...]:
    return tuple(tuple(map(_cell, row)) for row in matrix.tolist())


def _cell(value: float | bool) -> MatrixCell:
    """JSON has no word for what is not finite."""
    return value if isinstance(value, bool) or math.isfinite(value) else str(value)  # type: ignore[return-value]


def _caption(at: Sequence[int], names: Sequence[str] | None, dims: int) -> str:
    """Which matrix of many: "batch 0, heads 1"."""
    if names is None or len(names) != dims:
        return f"at [{', '.join(map(str, at))}]"
    return ", ".join(f"{name} {index}" for name, index in zip(names, at, strict=False))
