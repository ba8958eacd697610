"""Parts of a tensor that have a name: a triangle, the last row, heads 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grader.differences.axes import Axis

ORDINALS = ("", "first", "second", "third")
FIRST_OF_A_SEQUENCE = {"token", "time step", "query"}


@dataclass(frozen=True)
class Place:
    """A part of a tensor: "the last row", and what to ask of whom only that is wrong."""

    text: str
    plural: bool
    only: bool = True  # or is it nearly everything
    listed: bool = False  # by single indices
    ask: str = ""


def find(mask: Tensor, axes: tuple[Axis, ...]) -> Place | None:
    """The place that a mask fills, if it has a name."""
    if bool(mask.all()):
        return None
    return diagonals(mask) or _block(mask, axes)


def diagonals(mask: Tensor) -> Place | None:
    """A triangle or a diagonal of square matrices, filled exactly and in each of them."""
    if mask.dim() < 2 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 3:
        return None
    size = mask.shape[-1]
    matrix = mask.reshape(-1, size, size)
    if not bool(mask.any()) or not bool((matrix == matrix[0]).all()):
        return None
    full = torch.ones(size, size, dtype=torch.bool)
    diagonal = torch.eye(size, dtype=torch.bool)
    places = (
        (diagonal, Place("the diagonal", False)),
        (full.triu(1), Place("what is above the diagonal", False)),
        (full.tril(-1), Place("what is below the diagonal", False)),
        (full.triu(), Place("what is on and above the diagonal", False)),
        (full.tril(), Place("what is on and below the diagonal", False)),
        (~diagonal, Place("everything but the diagonal", False, only=False)),
    )
    for shape, place in places:
        if torch.equal(matrix[0], shape):
            return place
    row, column = (int(step) for step in matrix[0].nonzero()[0])
    offset = column - row
    if size - abs(offset) < 3 or not torch.equal(matrix[0], full.triu(offset).tril(offset)):
        return None
    side = "above" if offset > 0 else "below"
    which = ORDINALS[abs(offset)] if abs(offset) < len(ORDINALS) else f"{abs(offset)}th"
    return Place(f"the {which} diagonal {side} the main one", False)


def _block(mask: Tensor, axes: tuple[Axis, ...]) -> Place | None:
    """Some indices along one axis or two, if the mask fills most of them."""
    hits = _hits(mask)
    limited = [axis for axis, hit in enumerate(hits) if not bool(hit.all())]
    count, room = int(mask.sum()), math.prod(int(hit.sum()) for hit in hits)
    if len(limited) not in (1, 2) or 2 * count < room or count < (2 if count == room else 3):
        return None
    places = [_indices(hits[axis], axes[axis]) for axis in limited]
    inner, outer = places[-1], places[0]
    if inner is None or outer is None or (inner.only and 4 * count < 3 * room):
        return None
    if len(limited) == 1:
        # One value a row: that is no statement about rows.
        each = 1 if mask.dim() == 1 else 2
        return inner if inner.only or count >= each * int(hits[limited[0]].sum()) else None
    if not (inner.only and outer.only) or inner.listed or outer.listed or count < 3:
        return None  # any three elements of a row could be said to be those
    return Place(f"{inner.text} of {outer.text}", inner.plural)


def _indices(hit: Tensor, axis: Axis) -> Place | None:
    """Indices in words: the first row, heads 1 and 2, every token but the last."""
    size = hit.numel()
    inside: list[int] = hit.nonzero().flatten().tolist()
    outside: list[int] = (~hit).nonzero().flatten().tolist()
    count, first, last = len(inside), inside[0], inside[-1]
    if count == 1:
        ask = ""
        if first == 0 and size > 2 and axis.one in FIRST_OF_A_SEQUENCE:
            ask = "what may the first token see?"
        return Place(single(first, size, axis), False, ask=ask)
    if len(outside) == 1:
        but = single(outside[0], size, axis, short=True)
        return Place(f"every {axis.one}{axis.of} but {but}", False, only=False)
    if last - first + 1 == count:
        if first == 0 or last == size - 1:
            end = "first" if first == 0 else "last"
            return Place(f"the {end} {count} of {size} {axis.many}{axis.of}", True)
        return Place(f"{axis.many} {first} to {last}{axis.of}", True)
    if inside == list(range(first, size, 2)) and first < 2 and count > 2:
        return Place(f"every second {axis.one}{axis.of}, from {first} on,", False, listed=True)
    if count <= 3:
        return Place(f"{axis.many} {_and(inside)}{axis.of}", True, listed=True)
    return None


def single(index: int, size: int, axis: Axis, short: bool = False) -> str:
    """One index in words: the first row, the last, row 2."""
    noun = "" if short else f" {axis.one}{axis.of}"
    if size > 2 and index in (0, size - 1):
        return f"the {'first' if index == 0 else 'last'}{noun}"
    return axis.at(index)


def _and(numbers: Sequence[object]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def room_of(mask: Tensor) -> int:
    """The size of the smallest block of slices that holds all of a mask."""
    return math.prod(int(hit.sum()) for hit in _hits(mask))


def _hits(mask: Tensor) -> list[Tensor]:
    """For each axis which slices hold any of a mask."""
    return [mask.movedim(axis, 0).reshape(size, -1).any(1) for axis, size in enumerate(mask.shape)]
