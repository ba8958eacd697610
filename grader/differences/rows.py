"""Rows that are right but for a factor, a constant or a vector."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.differences.pair import Pair, Said, largest
from grader.differences.weights import span, sums_to_one


def row_factors(pair: Pair) -> Said | None:
    """Each row times a number of its own, as when rows are not normalised."""
    theirs, ours = (tensor.reshape(-1, tensor.shape[-1]) for tensor in (pair.theirs, pair.ours))
    if not pair.is_float or ours.shape[0] < 3 or not bool(ours.isfinite().all()):
        return None
    factors = (theirs * ours).sum(-1, keepdim=True) / (ours * ours).sum(-1, keepdim=True)
    if not bool(factors.isfinite().all()) or not pair.same(theirs, ours * factors):
        return None
    # A row of zeros, or of one value, is a multiple of any other such row.
    sizes = ours.abs()
    most = sizes.amax(-1, keepdim=True)
    counted = sizes > 0.01 * most
    least = sizes.masked_fill(~counted, torch.inf).amin(-1, keepdim=True)
    telling = ((counted.sum(-1, keepdim=True) > 2) & (least < 0.95 * most)).flatten()
    # Two factors, one of them 1: then some rows are right, and the place says more.
    if pair.levels(factors[telling]) < 3 or bool((factors == 0).any()):
        return None
    return Said(f"each row is right but for a factor of its own{_row_sums(pair)}")


def _row_sums(pair: Pair) -> str:
    if not sums_to_one(pair, pair.ours, -1):
        return ""
    return f", and sums to {span(pair.theirs.sum(-1))} where one is expected"


def row_offsets(pair: Pair) -> Said | None:
    """Each row plus a number of its own, which a softmax hides."""
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
    return Said(
        "each row is off by a constant of its own, which a softmax over the row would not notice"
    )


def one_vector(pair: Pair) -> Said | None:
    """Every row plus the same vector, as when a bias is missing."""
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
    return Said("every row is off by the same vector", "is a bias missing, or added twice?")


def _gaps(pair: Pair) -> tuple[Tensor | None, float]:
    """Differences as rows, and how much of one is rounding."""
    if not pair.is_float or not bool((pair.ours.isfinite() & pair.theirs.isfinite()).all()):
        return None, 0.0
    slack = pair.precision.atol * max(pair.scale, largest(pair.theirs))
    return (pair.theirs - pair.ours).reshape(-1, pair.ours.shape[-1]), slack


def _varies(rows: Tensor, dim: int, least: float) -> bool:
    """Whether most slices hold values that differ."""
    spread = rows.amax(dim) - rows.amin(dim)
    return 2 * int((spread > least).sum()) > spread.numel()
