"""What goes wrong with weights: the softmax, sums that are not one, a triangle of zeros."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.differences.pair import Pair, Said
from grader.differences.places import diagonals


def softmax(pair: Pair) -> Said | None:
    """One softmax over the last axis too many, or too few."""
    if not pair.is_float or pair.ours.shape[-1] < 2 or not pair.tells:
        return None
    if pair.same(pair.theirs, pair.ours.softmax(-1)):
        return Said("it is the softmax of what it should be", "is there one softmax too many?")
    if sums_to_one(pair, pair.ours, -1) and pair.same(pair.theirs.softmax(-1), pair.ours):
        return Said("its softmax would be right", "is the softmax missing?")
    return None


def distribution(pair: Pair) -> Said | None:
    """What keeps the result from being weights, where the expected rows are."""
    if not pair.is_float:
        return None
    axes = [axis for axis in range(-1, -1 - pair.ours.dim(), -1)
            if sums_to_one(pair, pair.ours, axis)]  # fmt: skip
    if not axes or not pair.levels(pair.ours) >= 3:
        return None
    negative = int((pair.theirs < -pair.precision.rtol).sum())
    if negative:
        return Said(f"weights are never negative, and {negative} of {pair.ours.numel()} are here")
    expected = axes[0]
    if sums_to_one(pair, pair.theirs, expected):
        return None
    lines = _lines(expected, pair.ours.dim())
    for axis in range(-1, -1 - pair.ours.dim(), -1):
        if axis not in axes and sums_to_one(pair, pair.theirs, axis):
            return Said(
                f"the {_lines(axis, pair.ours.dim())} sum to one where the {lines} should",
                "over which axis does the softmax go?",
            )
    for dims, what in (((-2, -1), "matrix"), (tuple(range(pair.ours.dim())), "tensor")):
        if pair.ours.dim() >= len(dims) > 1 and _ones(pair, pair.theirs.sum(dims)):
            return Said(f"the whole {what} sums to one where each of the {lines} should")
    sums = pair.theirs.sum(expected)
    if pair.ours.dim() == 1:
        return Said(f"the values sum to {span(sums)}, not to one")
    return Said(f"the {lines} sum to {span(sums)}, not to one")


def triangle_of_zeros(pair: Pair) -> Said | None:
    """A triangle, or a diagonal, that should be zero and nowhere is; or the other way round."""
    for zero, other, text in (
        (pair.ours == 0, pair.theirs, "should be 0, and is not"),
        (pair.theirs == 0, pair.ours, "is 0, and should not be"),
    ):
        if not pair.is_float or torch.equal(zero, pair.wrong):
            continue  # what differs is described as a place
        place = diagonals(zero)
        # Some of the softmax's smallest weights may pass for zero.
        if place and bool((other[zero] != 0).all()) and 2 * pair.wrong[zero].sum() >= zero.sum():
            return Said(f"{place.text} {text}")
    return None


def _lines(axis: int, dims: int) -> str:
    """What it is that sums to one along an axis."""
    if dims == 1:
        return "values"
    return {-1: "rows", -2: "columns"}.get(axis, f"slices along axis {dims + axis}")


def sums_to_one(pair: Pair, tensor: Tensor, axis: int) -> bool:
    """Whether the slices along an axis could be weights."""
    if tensor.shape[axis] < 2 or float(tensor.min()) < 0:
        return False
    return _ones(pair, tensor.sum(axis))


def _ones(pair: Pair, sums: Tensor) -> bool:
    return bool(((sums - 1).abs() <= 5 * pair.precision.rtol).all())


def span(sums: Tensor) -> str:
    """Numbers by the least and the most of them."""
    least, most = f"{float(sums.min()):.4g}", f"{float(sums.max()):.4g}"
    return least if least == most else f"between {least} and {most}"
