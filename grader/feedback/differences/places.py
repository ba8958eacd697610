"""Names parts of a tensor, such as "the last row", and finds expected values at wrong places."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

from grader.feedback.differences.pair import MOST_SLICES, Axis, Sentence, TensorPair
from grader.records.rows import listed

ORDINALS = ("", "first", "second", "third")
FIRST_OF_A_SEQUENCE = {"token", "time step", "query"}


@dataclass(frozen=True)
class Position:
    """A part of a tensor in words: "the last row"."""

    text: str
    plural: bool
    only: bool = True  # False if the part is nearly the whole tensor
    listed: bool = False  # the text names single indices, not a range
    ask: str = ""  # a question for a student in whose answer only this part is wrong


def positions_of(mask: Tensor, axes: tuple[Axis, ...]) -> Position | None:
    """The part of a tensor that a mask fills; None if this part has no name."""
    if bool(mask.all()):
        return None
    return diagonals(mask) or _block(mask, axes)


def diagonals(mask: Tensor) -> Position | None:
    """The triangle or diagonal that the mask fills exactly, in each of its square matrices."""
    if mask.dim() < 2 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 3:
        return None
    size = mask.shape[-1]
    matrix = mask.reshape(-1, size, size)
    if not bool(mask.any()) or not bool((matrix == matrix[0]).all()):
        return None
    full = torch.ones(size, size, dtype=torch.bool)
    diagonal = torch.eye(size, dtype=torch.bool)
    places = (
        (diagonal, Position("the diagonal", False)),
        (full.triu(1), Position("the part above the diagonal", False)),
        (full.tril(-1), Position("the part below the diagonal", False)),
        (full.triu(), Position("the part on and above the diagonal", False)),
        (full.tril(), Position("the part on and below the diagonal", False)),
        (~diagonal, Position("everything but the diagonal", False, only=False)),
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
    return Position(f"the {which} diagonal {side} the main one", False)


def _block(mask: Tensor, axes: tuple[Axis, ...]) -> Position | None:
    """The slices that the mask mostly fills, along one axis or two: "the last row of head 1"."""
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
        # For a statement about rows, at least two values in each row must be wrong.
        each = 1 if mask.dim() == 1 else 2
        return inner if inner.only or count >= each * int(hits[limited[0]].sum()) else None
    if not (inner.only and outer.only) or inner.listed or outer.listed or count < 3:
        return None  # such a description would fit any few elements of a row
    return Position(f"{inner.text} of {outer.text}", inner.plural)


def _indices(hit: Tensor, axis: Axis) -> Position | None:
    """The marked indices of an axis in words: the first row, heads 1 and 2, every second token."""
    size = hit.numel()
    inside: list[int] = hit.nonzero().flatten().tolist()
    outside: list[int] = (~hit).nonzero().flatten().tolist()
    count, first, last = len(inside), inside[0], inside[-1]
    if count == 1:
        ask = ""
        if first == 0 and size > 2 and axis.one in FIRST_OF_A_SEQUENCE:
            ask = "what may the first token see?"
        return Position(single(first, size, axis), False, ask=ask)
    if len(outside) == 1:
        but = single(outside[0], size, axis, short=True)
        return Position(f"every {axis.one}{axis.of} but {but}", False, only=False)
    if last - first + 1 == count:
        if first == 0 or last == size - 1:
            end = "first" if first == 0 else "last"
            return Position(f"the {end} {count} of {size} {axis.many}{axis.of}", True)
        return Position(f"{axis.many} {first} to {last}{axis.of}", True)
    if inside == list(range(first, size, 2)) and first < 2 and count > 2:
        return Position(f"every second {axis.one}{axis.of}, from {first} on,", False, listed=True)
    if count <= 3:
        return Position(
            f"{axis.many} {listed([*map(str, inside)], 'and')}{axis.of}", True, listed=True
        )
    return None


def single(index: int, size: int, axis: Axis, short: bool = False) -> str:
    """An index in words: the first row, the last row, row 2."""
    noun = "" if short else f" {axis.one}{axis.of}"
    if size > 2 and index in (0, size - 1):
        return f"the {'first' if index == 0 else 'last'}{noun}"
    return axis.at(index)


def room_of(mask: Tensor) -> int:
    """The size of the smallest block of slices that contains the mask."""
    return math.prod(int(hit.sum()) for hit in _hits(mask))


def _hits(mask: Tensor) -> list[Tensor]:
    """For each axis, the slices that contain part of the mask."""
    return [mask.movedim(axis, 0).reshape(size, -1).any(1) for axis, size in enumerate(mask.shape)]


# --- moved ---------------------------------------------------------------------------------------
#
# Finds the expected numbers at wrong places: axes, heads or slices in another order.


def rearranged(pair: TensorPair) -> Sentence | None:
    """Report the expected numbers in another order; name the order if exactly one order fits."""
    # Reordering keeps the sum and the sum of squares; most other mistakes change them.
    for moment in (1, 2):
        theirs, ours = pair.theirs.nan_to_num() ** moment, pair.ours.nan_to_num() ** moment
        tolerance = pair.precision.rtol * float(ours.abs().sum())
        if not abs(float(theirs.sum() - ours.sum())) <= tolerance:
            return None
    for orders in map(list, (_permuted(pair), _heads(pair), _slices_permuted(pair))):
        if len(orders) == 1:
            return orders[0]
        if orders:
            break
    if not pair.is_bool and _same_numbers(pair):
        return Sentence("the same numbers in another order")
    return None


def _same_numbers(pair: TensorPair) -> bool:
    theirs, ours = pair.theirs.flatten().sort().values, pair.ours.flatten().sort().values
    if pair.levels(pair.ours[pair.wrong]) < 4 or not pair.same(theirs, ours):
        return False
    # If most successive values are equal up to rounding, the sorted values may agree by chance.
    gaps = ours[ours.isfinite()].diff()
    distinct = gaps > 4 * pair.precision.rtol * pair.scale
    return 2 * int(distinct.sum()) >= int((gaps > 0).sum())


def _permuted(pair: TensorPair) -> Iterator[Sentence]:
    """Report that the axes are in another order, or that a view replaced a transpose."""
    shape, dims = pair.ours.shape, pair.ours.dim()
    movable = [axis for axis in range(dims) if shape[axis] > 1]
    if len(movable) > 4 or not _enough_moved(pair):
        return
    for order in permutations(movable):
        full = list(range(dims))
        for axis, source in zip(movable, order, strict=True):
            full[axis] = source
        moved = pair.ours.permute(full)
        if full == sorted(full) or not pair.same(pair.theirs, moved.reshape(shape)):
            continue
        swapped = [axis for axis in movable if full[axis] != axis]
        if moved.shape == shape:
            yield _axes_swapped(swapped, full, dims)
        else:
            needed = [full.index(axis) for axis in range(dims)]
            call = (
                f"transpose({swapped[0]}, {swapped[1]})"
                if len(swapped) == 2
                else f"permute{tuple(needed)}"
            )
            yield Sentence(
                f"the same numbers in another order, as from a view or reshape where {call} "
                "was needed"
            )


def _enough_moved(pair: TensorPair) -> bool:
    """Whether an order of the elements cannot fit by chance."""
    return pair.moved and (pair.is_bool or pair.levels(pair.ours) >= pair.precision.levels)


def _axes_swapped(swapped: list[int], full: list[int], dims: int) -> Sentence:
    if len(swapped) != 2:
        return Sentence(
            f"the axes are in another order: this is permute{tuple(full)} of the result"
        )
    if dims == 2:
        return Sentence("it is transposed")
    if swapped == [dims - 2, dims - 1]:
        return Sentence("it is transposed: the last two axes are swapped")
    return Sentence(f"axes {swapped[0]} and {swapped[1]} are swapped")


def _heads(pair: TensorPair) -> Iterator[Sentence]:
    """Report heads merged without a transpose, or features split into heads in the wrong order."""
    shape = pair.ours.shape
    if len(shape) < 2 or pair.is_bool or not _enough_moved(pair):
        return
    again = "the same numbers in another order, as from "
    features = shape[-1]
    for heads in (n for n in range(2, min(features, MOST_SLICES)) if features % n == 0):
        split = pair.ours.reshape(*shape[:-1], heads, features // heads)
        if shape[-2] > 1 and pair.same(pair.theirs, split.transpose(-3, -2).reshape(shape)):
            yield Sentence(
                f"{again}merging {heads} heads by a view or reshape, without a transpose before it"
            )
        width = features // heads
        if features > 4 and pair.same(pair.theirs, split.transpose(-2, -1).reshape(shape)):
            yield Sentence(
                f"{again}a last axis laid out as ({width}, {heads}) where ({heads}, {width}) was "
                "needed"
            )
    if len(shape) == 4 and shape[1] > 1 and shape[3] > 1:
        batch, heads, tokens, width = shape
        features_of = pair.ours.transpose(1, 2).reshape(batch, tokens, width, heads)
        if pair.same(pair.theirs, features_of.permute(0, 3, 1, 2)):
            yield Sentence(
                f"{again}a view that ends in ({width}, {heads}) where ({heads}, {width}) was needed"
            )


def _slices_permuted(pair: TensorPair) -> Iterator[Sentence]:
    """Report that slices, such as rows or heads, are in another order along an axis."""
    for axis, word in enumerate(pair.axes):
        matches = pair.matches[axis]
        if matches is None:
            continue
        size = matches.shape[0]
        once = torch.ones(size, dtype=torch.int64)
        if not torch.equal(matches.sum(0), once) or not torch.equal(matches.sum(1), once):
            continue
        order = [int(source) for source in matches.long().argmax(1)]
        moved = [index for index, source in enumerate(order) if index != source]
        if moved and pair.moved:
            yield Sentence(_order(order, moved, word))


def _order(order: list[int], moved: list[int], word: Axis) -> str:
    size = len(order)
    if len(moved) == 2:
        return f"{word.many} {moved[0]} and {moved[1]}{word.of} are swapped"
    if order == list(range(size))[::-1]:
        return f"the {word.many}{word.of} are in reverse order"
    for step, way in ((1, "after"), (-1, "before")):
        if order == [(index + step) % size for index in range(size)]:
            values = f"the values of the {word.one} {way} it"
            return f"the {word.many}{word.of} are rolled: each holds {values}"
    place = moved[0]
    return (
        f"the {word.many}{word.of} are in another order: {word.at(place)} holds the values of "
        f"{word.at(order[place])}"
    )


def shifted(pair: TensorPair) -> Sentence | None:
    """Report that each slice holds the values of the next slice, or of the previous slice."""
    sentences = []
    for axis, word in enumerate(pair.axes):
        matches = pair.matches[axis]
        size = pair.ours.shape[axis]
        if matches is None or size < (3 if pair.ours.dim() > 1 else 4) or not pair.moved:
            continue
        for step, way in ((-1, "before"), (1, "after")):
            rows = matches[1:] if step < 0 else matches[:-1]
            if bool(matches.diagonal(step).all()) and bool((rows.sum(1) == 1).all()):
                moved = f"each {word.one}{word.of} holds the values of the {word.one} {way} it"
                sentences.append(Sentence(f"off by one: {moved}"))
    return sentences[0] if len(sentences) == 1 else None


def repeated(pair: TensorPair) -> Sentence | None:
    """Report that every slice holds the expected values of the same slice."""
    for axis, word in enumerate(pair.axes):
        matches = pair.matches[axis]
        if matches is None or matches.shape[0] < 3 or pair.ours.dim() < 2:
            continue
        sources = matches.all(0).nonzero().flatten().tolist()
        if len(sources) == 1 and pair.has_evidence:
            source = single(sources[0], matches.shape[0], word)
            return Sentence(f"every {word.one}{word.of} holds the expected values of {source}")
    return None
