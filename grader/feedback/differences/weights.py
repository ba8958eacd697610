"""Finds errors in attention weights and masks: a missing softmax, wrong sums, wrong triangles."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.feedback.differences.formulas import located, true_where_wrong
from grader.feedback.differences.pair import Sentence, TensorPair, largest
from grader.feedback.differences.places import diagonals


def softmax(pair: TensorPair) -> Sentence | None:
    """Report a missing softmax over the last axis, or one softmax too many."""
    if not pair.is_float or pair.ours.shape[-1] < 2 or not pair.has_evidence:
        return None
    if pair.same(pair.theirs, pair.ours.softmax(-1)):
        return Sentence(
            "it is the softmax of the expected result", "is there one softmax too many?"
        )
    if sums_to_one(pair, pair.ours, -1) and pair.same(pair.theirs.softmax(-1), pair.ours):
        return Sentence("its softmax would be right", "is the softmax missing?")
    return None


def distribution(pair: TensorPair) -> Sentence | None:
    """Report negative values or wrong sums, where the expected slices sum to one."""
    if not pair.is_float:
        return None
    axes = [
        axis for axis in range(-1, -1 - pair.ours.dim(), -1) if sums_to_one(pair, pair.ours, axis)
    ]
    if not axes or not pair.levels(pair.ours) >= 3:
        return None
    negative = int((pair.theirs < -pair.precision.rtol).sum())
    if negative:
        return Sentence(
            f"weights are never negative, but {negative} of {pair.ours.numel()} are negative here"
        )
    expected = axes[0]
    if sums_to_one(pair, pair.theirs, expected):
        return None
    lines = _lines(expected, pair.ours.dim())
    for axis in range(-1, -1 - pair.ours.dim(), -1):
        if axis not in axes and sums_to_one(pair, pair.theirs, axis):
            return Sentence(
                f"the {_lines(axis, pair.ours.dim())} sum to one where the {lines} should",
                "over which axis does the softmax go?",
            )
    for dims, what in (((-2, -1), "matrix"), (tuple(range(pair.ours.dim())), "tensor")):
        if pair.ours.dim() >= len(dims) > 1 and _ones(pair, pair.theirs.sum(dims)):
            return Sentence(f"the whole {what} sums to one where each of the {lines} should")
    sums = pair.theirs.sum(expected)
    if pair.ours.dim() == 1:
        return Sentence(f"the values sum to {span(sums)}, not to one")
    return Sentence(f"the {lines} sum to {span(sums)}, not to one")


def triangle_of_zeros(pair: TensorPair) -> Sentence | None:
    """Report a triangle or diagonal that should be zero but has no zeros, or the reverse."""
    for zero, other, text in (
        (pair.ours == 0, pair.theirs, "should be 0, and is not"),
        (pair.theirs == 0, pair.ours, "is 0, and should not be"),
    ):
        if not pair.is_float or torch.equal(zero, pair.wrong):
            continue  # `located` names exactly this place
        place = diagonals(zero)
        # The smallest weights of a softmax may agree with zero up to rounding.
        if place and bool((other[zero] != 0).all()) and 2 * pair.wrong[zero].sum() >= zero.sum():
            return Sentence(f"{place.text} {text}")
    return None


def _lines(axis: int, dims: int) -> str:
    """The noun for the slices along an axis."""
    if dims == 1:
        return "values"
    return {-1: "rows", -2: "columns"}.get(axis, f"slices along axis {dims + axis}")


def sums_to_one(pair: TensorPair, tensor: Tensor, axis: int) -> bool:
    """Whether the slices along an axis could be weights: not negative, with the sum 1."""
    if tensor.shape[axis] < 2 or float(tensor.min()) < 0:
        return False
    return _ones(pair, tensor.sum(axis))


def _ones(pair: TensorPair, sums: Tensor) -> bool:
    return bool(((sums - 1).abs() <= 5 * pair.precision.rtol).all())


def span(sums: Tensor) -> str:
    """The range of the sums: "between 0.5 and 2"; a single number if all are equal."""
    least, most = f"{float(sums.min()):.4g}", f"{float(sums.max()):.4g}"
    return least if least == most else f"between {least} and {most}"


# --- rows ----------------------------------------------------------------------------------------
#
# Finds rows that are right except for a factor, a constant or a vector.


def row_factors(pair: TensorPair) -> Sentence | None:
    """Report that each row is multiplied by its own factor, as if normalisation were missing."""
    theirs, ours = (tensor.reshape(-1, tensor.shape[-1]) for tensor in (pair.theirs, pair.ours))
    if not pair.is_float or ours.shape[0] < 3 or not bool(ours.isfinite().all()):
        return None
    factors = (theirs * ours).sum(-1, keepdim=True) / (ours * ours).sum(-1, keepdim=True)
    if not bool(factors.isfinite().all()) or not pair.same(theirs, ours * factors):
        return None
    # A row of equal values is a multiple of every other row of equal values, so it is no evidence.
    sizes = ours.abs()
    most = sizes.amax(-1, keepdim=True)
    counted = sizes > 0.01 * most
    least = sizes.masked_fill(~counted, torch.inf).amin(-1, keepdim=True)
    telling = ((counted.sum(-1, keepdim=True) > 2) & (least < 0.95 * most)).flatten()
    # If there are only two factors, one of them may be 1. Then `located` names the rows with the
    # other factor.
    if pair.levels(factors[telling]) < 3 or bool((factors == 0).any()):
        return None
    return Sentence(f"each row is right but for a factor of its own{_row_sums(pair)}")


def _row_sums(pair: TensorPair) -> str:
    if not sums_to_one(pair, pair.ours, -1):
        return ""
    return f", and sums to {span(pair.theirs.sum(-1))} where one is expected"


def row_offsets(pair: TensorPair) -> Sentence | None:
    """Report that each row is off by its own constant."""
    gaps, slack = _gaps(pair)
    if gaps is None or gaps.shape[0] < 3 or gaps.shape[1] < 3:
        return None
    per_row = gaps.mean(-1, keepdim=True)
    if float((gaps - per_row).abs().max()) > slack or pair.levels(per_row) < 3:
        return None
    ours = pair.ours.reshape(gaps.shape)
    theirs = pair.theirs.reshape(gaps.shape)
    if not all(_varies(rows, -1, 50 * slack) for rows in (ours, theirs)):
        return None
    return Sentence("each row is off by a constant of its own")


def one_vector(pair: TensorPair) -> Sentence | None:
    """Report that every row is off by the same vector, as if a bias were missing."""
    gaps, slack = _gaps(pair)
    if gaps is None or gaps.shape[0] < 3 or gaps.shape[1] < 2:
        return None
    vector = gaps.mean(0)
    if float((gaps - vector).abs().max()) > slack or int((vector.abs() > 50 * slack).sum()) < 2:
        return None
    ours = pair.ours.reshape(gaps.shape)
    theirs = pair.theirs.reshape(gaps.shape)
    if not all(_varies(rows, 0, 50 * slack) for rows in (ours, theirs)):
        return None
    return Sentence("every row is off by the same vector", "is a bias missing, or added twice?")


def _gaps(pair: TensorPair) -> tuple[Tensor | None, float]:
    """The differences as rows, and the largest difference that may be rounding."""
    if not pair.is_float or not bool((pair.ours.isfinite() & pair.theirs.isfinite()).all()):
        return None, 0.0
    slack = pair.precision.atol * max(pair.scale, largest(pair.theirs))
    return (pair.theirs - pair.ours).reshape(-1, pair.ours.shape[-1]), slack


def _varies(rows: Tensor, dim: int, least: float) -> bool:
    """Whether the values vary by more than `least` in most slices along `dim`."""
    spread = rows.amax(dim) - rows.amin(dim)
    return 2 * int((spread > least).sum()) > spread.numel()


# --- masks ---------------------------------------------------------------------------------------


def same_triangle(pair: TensorPair) -> Sentence | None:
    """Report a triangle of True whose edge is off by two diagonals or more."""
    theirs, ours = _edge(pair.theirs), _edge(pair.ours)
    if not pair.is_bool or theirs is None or ours is None or theirs[1] != ours[1]:
        return None
    shift = theirs[0] - ours[0]
    if abs(shift) < 2:
        return None  # `one_diagonal` reports an edge that is off by one diagonal
    far = f"{abs(shift)} diagonals too far to the {'right' if shift > 0 else 'left'}"
    return Sentence(f"the same triangle, with its edge {far}")


def _edge(matrix: Tensor) -> tuple[int, bool] | None:
    """The diagonal at which the upper triangle begins, and whether that triangle is True."""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 4:
        return None
    size = matrix.shape[0]
    steps = torch.arange(size)
    along = torch.cat((matrix[:, 0].flip(0), matrix[0, 1:]))  # a value of each diagonal
    changes = along.diff().nonzero().flatten()
    if changes.numel() != 1 or not torch.equal(matrix, along[steps - steps[:, None] + size - 1]):
        return None
    return int(changes[0]) + 2 - size, bool(along[-1])


def inverted(pair: TensorPair) -> Sentence | None:
    """Report that True and False are swapped everywhere."""
    if not pair.is_bool or not pair.moved or not bool(pair.wrong.all()):
        return None
    return Sentence("every value is inverted: True where False is expected, and the reverse")


def one_diagonal(pair: TensorPair) -> Sentence | None:
    """Report that a mask differs in a single diagonal.

    Must run before `shifted`, since a triangle shifted by one also differs in a single diagonal.
    """
    if not pair.is_bool or diagonals(pair.wrong) is None:
        return None
    return located(pair) if true_where_wrong(pair) else None
