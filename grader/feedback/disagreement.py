"""Describes a failed comparison of two tensors, in words, in numbers and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grader.feedback.differences import in_words
from grader.feedback.differences.pair import PRECISION, differing
from grader.feedback.pictures.text import cell_of
from grader.records.grade import MatrixCell, Picture


class Disagreement(AssertionError):
    """Raised for two tensors of the same shape and dtype that do not agree."""

    def __init__(self, name: str, ours: Tensor, theirs: Tensor, wrong: Tensor) -> None:
        super().__init__(name)
        self._pair = ours, theirs, wrong

    def __str__(self) -> str:
        # Composed on demand: grading runs known mistakes too, and never reads their messages.
        ours, theirs, wrong = self._pair
        parts = (in_words(theirs, ours, wrong=wrong), _numbers(theirs, ours, wrong))
        return f"{self.args[0]}: {'; '.join(part for part in parts if part)}"

    def picture(self, names: Sequence[str] | None = None) -> Picture | None:
        """The expected values, the actual values and their differences.

        `names` are the names of the axes.
        """
        ours, theirs, wrong = self._pair
        return picture_of(ours, theirs, names=names, wrong=wrong)


def _numbers(theirs: Tensor, ours: Tensor, wrong: Tensor) -> str:
    """The number of elements that differ, and the largest difference; for a scalar, both values."""
    if not ours.dim():
        expected, got = _distinct(ours.item(), theirs.item())
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
    expected, got = _distinct(_at(ours, at), _at(theirs, at))
    return f"{share}; the largest difference is at {at}: expected {expected}, got {got}"


def _distinct(expected: float, got: float) -> tuple[str, str]:
    """Both numbers as text: with four digits, or with more digits if the texts would be equal."""
    if isinstance(expected, bool):
        return str(expected), str(got)
    pairs = ((f"{expected:.{digits}g}", f"{got:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(expected), repr(got)))


def _index(mask: Tensor) -> list[int]:
    return [int(step) for step in mask.nonzero()[0]]


def _at(tensor: Tensor, index: Sequence[int]) -> Any:
    return tensor[tuple(index)].item()


# --- picture -------------------------------------------------------------------------------------
#
# Selects the part to show of two tensors that differ.


MOST_CELLS = 12  # the most rows, and the most columns, of a picture


def picture_of(
    ours: Tensor, theirs: Tensor, *, names: Sequence[str] | None = None, wrong: Tensor | None = None
) -> Picture | None:
    """The first matrix in which two tensors differ, cut to `MOST_CELLS` rows and columns.

    A vector is shown as a single row. `names` are the names of all axes, or of the last two.
    `wrong` marks the elements that differ; by default, elements differ if their difference exceeds
    the tolerances of `torch.testing`. Returns None for a single element, for tensors that do not
    differ, for different shapes or dtypes, and for complex numbers.
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
    """The top left corner of a window of `MOST_CELLS` cells a side that contains a difference."""
    rows, columns = wrong.shape
    top, left = (
        _start(rows, int(wrong.any(1).nonzero()[0])),
        _start(columns, int(wrong.any(0).nonzero()[0])),
    )
    if bool(wrong[top : top + MOST_CELLS, left : left + MOST_CELLS].any()):
        return top, left
    row, column = (
        int(step) for step in wrong.nonzero()[0]
    )  # the first row and the first column with a difference may meet far from any difference
    return _start(rows, row), _start(columns, column)


def _start(size: int, wanted: int) -> int:
    """The first index of a window that contains the index `wanted`; 0 if possible."""
    return 0 if wanted < MOST_CELLS else min(wanted, size - MOST_CELLS)


def _matrix(tensor: Tensor) -> Tensor:
    """The tensor as a matrix in float64; truth values stay as they are."""
    matrix = tensor.detach().reshape(1, -1) if tensor.dim() == 1 else tensor.detach()
    return matrix if matrix.dtype == torch.bool else matrix.double()


def _cells(matrix: Tensor) -> tuple[tuple[MatrixCell, ...], ...]:
    return tuple(tuple(map(cell_of, row)) for row in matrix.tolist())


def _caption(at: Sequence[int], names: Sequence[str] | None, dims: int) -> str:
    """The indices of the matrix shown: "batch 0, heads 1"."""
    if names is None or len(names) != dims:
        return f"at [{', '.join(map(str, at))}]"
    return ", ".join(f"{name} {index}" for name, index in zip(names, at, strict=False))
