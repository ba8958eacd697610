"""Says in words how a wrong tensor differs from the expected one, before any numbers.

It knows arithmetic and nothing of exercises. A sentence is said only when it is exactly true, up to
rounding, and when the values carry enough evidence: that one number is twice another says nothing,
that twenty different ones are says much. Where two explanations of the same kind fit, neither is
said. Silence is better than a false trail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import torch
from torch import Tensor

MOST_ELEMENTS = 100_000
MOST_SLICES = 32  # each is compared with each
MOST_SENTENCES = 2
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
EXACT_INTEGER = 2.0**52  # float64 holds smaller ones exactly


@dataclass(frozen=True)
class _Precision:
    """How far rounding may carry two values apart, and what counts as evidence."""

    rtol: float
    atol: float  # times the largest value
    levels: int  # so many distinct values a formula must explain
    chance: int  # fewer elements than this may well agree by chance


PRECISION = {
    torch.float64: _Precision(1e-6, 1e-7, 3, 1),
    torch.float32: _Precision(2e-5, 5e-6, 3, 1),
    torch.float16: _Precision(1e-2, 2e-3, 6, 6),
    torch.bfloat16: _Precision(4e-2, 1e-2, 8, 8),
    torch.bool: _Precision(0.0, 0.0, 3, 12),
    **dict.fromkeys(INTEGERS, _Precision(1e-12, 0.0, 3, 6)),
}
# Those of `torch.testing.assert_close`; 16 bits get more.
AGREEMENT = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-2, 1e-3), torch.bfloat16: (1e-2, 1e-3),
}  # fmt: skip


@dataclass(frozen=True)
class _Said:
    """A sentence, and a question that may end the message."""

    text: str
    ask: str = ""


@dataclass(frozen=True)
class _Axis:
    """What one index along an axis is called: a row, a head, an index of axis 0."""

    one: str
    many: str
    of: str = ""

    def at(self, index: int) -> str:
        return f"{self.one} {index}{self.of}"


NAMED = {
    "batch": _Axis("batch row", "batch rows"),
    "heads": _Axis("head", "heads"), "num_heads": _Axis("head", "heads"),
    "tokens": _Axis("token", "tokens"), "num_tokens": _Axis("token", "tokens"),
    "time": _Axis("time step", "time steps"),
    "queries": _Axis("query", "queries"), "keys": _Axis("key", "keys"),
    "channels": _Axis("channel", "channels"),
}  # fmt: skip
ORDINALS = ("", "first", "second", "third")
FIRST_OF_A_SEQUENCE = {"token", "time step", "query"}


def in_words(
    theirs: Tensor,
    ours: Tensor,
    *,
    names: Sequence[str] | None = None,
    wrong: Tensor | None = None,
) -> str | None:
    """How `theirs` differs from `ours`, in one or two sentences; None when nothing simple fits.

    Both are plain CPU tensors of the same shape and dtype; nothing is raised for such. `names` are
    the names of the axes, like ("batch", "tokens", "d_out"). `wrong`, a bool tensor of the same
    shape, says which elements differ; without it the tolerances of `torch.testing` do.
    """
    if theirs.dtype not in PRECISION or theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return None
    if not 2 <= ours.numel() <= MOST_ELEMENTS:
        return None
    with torch.no_grad():
        wrong = differing(theirs, ours) if wrong is None else wrong
        pair = _Pair(
            theirs.detach().double(), ours.detach().double(), wrong, theirs.dtype,
            _axes(ours.dim(), names),
        )  # fmt: skip
        said = _say(pair)[:MOST_SENTENCES] if pair.speaks else []
    if not said:
        return None
    ask = next((sentence.ask for sentence in said if sentence.ask), "")
    return "; ".join(sentence.text for sentence in said) + (f": {ask}" if ask else "")


def differing(
    theirs: Tensor, ours: Tensor, rtol: float | None = None, atol: float | None = None
) -> Tensor:
    """Which elements differ, as a bool tensor of the same shape; NaN differs from everything."""
    if ours.dtype not in AGREEMENT:
        return theirs != ours
    relative, absolute = AGREEMENT[ours.dtype]
    return ~torch.isclose(
        theirs, ours,
        rtol=relative if rtol is None else rtol, atol=absolute if atol is None else atol,
    )  # fmt: skip


@dataclass(frozen=True)
class _Pair:
    """The two tensors in float64, where they differ, and what their axes are called."""

    theirs: Tensor
    ours: Tensor
    wrong: Tensor
    dtype: torch.dtype
    axes: tuple[_Axis, ...]

    @property
    def precision(self) -> _Precision:
        return PRECISION[self.dtype]

    @property
    def is_float(self) -> bool:
        return self.dtype in AGREEMENT

    @property
    def is_bool(self) -> bool:
        return self.dtype == torch.bool

    @cached_property
    def scale(self) -> float:
        """The largest finite expected value, without its sign."""
        return _largest(self.ours)

    @property
    def speaks(self) -> bool:
        """Whether there is a difference beyond rounding, and an expectation to compare with."""
        if not bool(self.wrong.any()) or bool(self.ours.isnan().any()):
            return False
        if not self.is_float and max(self.scale, _largest(self.theirs)) > EXACT_INTEGER:
            return False
        return not self.same(self.theirs, self.ours)

    def close(self, theirs: Tensor, ours: Tensor) -> Tensor:
        """Which elements agree up to rounding. Tensors whose sizes differ hardly agree."""
        # Of the smaller tensor: what is rounding to the larger one may be everything to it.
        atol = self.precision.atol * min(_largest(theirs), _largest(ours))
        near = (theirs - ours).abs() <= atol + self.precision.rtol * ours.abs()
        return near & ours.isfinite() | (theirs == ours)

    def same(self, theirs: Tensor, ours: Tensor) -> bool:
        """Whether all elements agree up to rounding. Most formulas fail on the first few."""
        first = slice(0, 64)
        if bool(self._far(theirs.flatten()[first], ours.flatten()[first]).any()):
            return False
        return bool(self.close(theirs, ours).all())

    def _far(self, theirs: Tensor, ours: Tensor) -> Tensor:
        """Which elements differ whatever the scale, by ten times what rounding may do."""
        slack = self.precision.atol * self.scale + self.precision.rtol * ours.abs()
        return (theirs - ours).abs() > 10 * slack

    def explains(self, formula: Callable[[Tensor], Tensor]) -> bool:
        """Whether `theirs` is an elementwise formula of `ours`. A few are tried before all."""
        few = self.theirs.flatten()[:64], self.ours.flatten()[:64]
        if bool(self._far(few[0], formula(few[1])).any()):
            return False
        return self.same(self.theirs, formula(self.ours))

    @cached_property
    def tells(self) -> bool:
        """Whether both have enough distinct values for a formula to be no accident."""
        return all(
            self.levels(tensor) >= self.precision.levels for tensor in (self.theirs, self.ours)
        )

    def levels(self, tensor: Tensor) -> int:
        """How many values can be told apart in a sample of a tensor."""
        values = tensor.flatten()[:: max(1, tensor.numel() // 512)]
        values = values[values.isfinite()].sort().values
        if not values.numel():
            return 0
        return 1 + int((values.diff() > 4 * self.precision.rtol * _largest(values)).sum())

    @property
    def moved(self) -> bool:
        """Whether enough elements differ for an order that fits to be no accident."""
        return int(self.wrong.sum()) >= self.precision.chance

    @cached_property
    def matches(self) -> tuple[Tensor | None, ...]:
        """For each axis which slices of `theirs` are which of `ours`; None where too many."""
        return tuple(self._matches(axis) for axis in range(self.ours.dim()))

    def _matches(self, axis: int) -> Tensor | None:
        size = self.ours.shape[axis]
        if not 2 <= size <= MOST_SLICES:
            return None
        theirs, ours = (
            tensor.nan_to_num().movedim(axis, 0).reshape(size, -1)
            for tensor in (self.theirs, self.ours)
        )
        return torch.cdist(theirs, ours, p=float("inf")) <= self.precision.rtol * self.scale

    def part(self) -> _Pair:
        """The elements that differ, as two vectors."""
        theirs, ours = self.theirs[self.wrong], self.ours[self.wrong]
        everywhere = torch.ones_like(ours, dtype=torch.bool)
        return _Pair(theirs, ours, everywhere, self.dtype, _axes(1, None))

    def show(self, value: float) -> str:
        if self.is_bool:
            return str(bool(value))
        return f"{value:.4g}"


def _say(pair: _Pair) -> list[_Said]:
    """All that is to be said, the most telling first."""
    nan = pair.theirs.isnan()
    if bool(nan.any()):
        return _not_finite(pair, nan, "NaN")
    infinite = pair.theirs.isinf() & (pair.theirs != pair.ours)
    if bool(infinite.any()):
        said = _formula(pair) or _softmax(pair)  # the logarithm of a weight of 0 is right to be so
        value = _one_value(pair.theirs[infinite])
        what = "infinite" if value is None else pair.show(value)
        return [said] if said else _not_finite(pair, infinite, what)
    finders: tuple[Callable[[_Pair], _Said | None], ...] = (
        _constant, _same_triangle, _inverted, _one_diagonal, _rearranged, _shifted, _repeated,
        _scaled, _offset, _formula, _softmax, _row_factors, _row_offsets, _one_vector,
    )  # fmt: skip
    for finder in finders:
        said = finder(pair)
        if said:
            return [said]
    return [said for said in (_distribution(pair), _triangle_of_zeros(pair), _place(pair)) if said]


# --- axes and places -----------------------------------------------------------------------------


def _axes(dims: int, names: Sequence[str] | None) -> tuple[_Axis, ...]:
    """What the axes are called. Rows and columns are never false; a batch or a head may be."""
    if dims == 1:
        axes = [_Axis("value", "values")]
    else:
        leading = [_Axis("index", "indices", f" of axis {axis}") for axis in range(dims - 2)]
        axes = [*leading, _Axis("row", "rows"), _Axis("column", "columns")]
    if names is None or len(names) != dims:
        return tuple(axes)
    called = [NAMED.get(name, axis) for name, axis in zip(names, axes, strict=True)]
    # Tokens by tokens: which of the two is meant, only rows and columns say.
    return tuple(
        word if called.count(word) == 1 else axis for word, axis in zip(called, axes, strict=True)
    )


@dataclass(frozen=True)
class _Place:
    """A part of a tensor: "the last row", and what to ask of whom only that is wrong."""

    text: str
    plural: bool
    only: bool = True  # or is it nearly everything
    listed: bool = False  # by single indices
    ask: str = ""


def _find(mask: Tensor, axes: tuple[_Axis, ...]) -> _Place | None:
    """The place that a mask fills, if it has a name."""
    if bool(mask.all()):
        return None
    return _diagonals(mask) or _block(mask, axes)


def _diagonals(mask: Tensor) -> _Place | None:
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
        (diagonal, _Place("the diagonal", False)),
        (full.triu(1), _Place("what is above the diagonal", False)),
        (full.tril(-1), _Place("what is below the diagonal", False)),
        (full.triu(), _Place("what is on and above the diagonal", False)),
        (full.tril(), _Place("what is on and below the diagonal", False)),
        (~diagonal, _Place("everything but the diagonal", False, only=False)),
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
    return _Place(f"the {which} diagonal {side} the main one", False)


def _block(mask: Tensor, axes: tuple[_Axis, ...]) -> _Place | None:
    """Some indices along one axis or two, if the mask fills most of them."""
    hits = [mask.movedim(axis, 0).reshape(size, -1).any(1) for axis, size in enumerate(mask.shape)]
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
    return _Place(f"{inner.text} of {outer.text}", inner.plural)


def _indices(hit: Tensor, axis: _Axis) -> _Place | None:
    """Indices in words: the first row, heads 1 and 2, every token but the last."""
    size = hit.numel()
    inside: list[int] = hit.nonzero().flatten().tolist()
    outside: list[int] = (~hit).nonzero().flatten().tolist()
    count, first, last = len(inside), inside[0], inside[-1]
    if count == 1:
        ask = ""
        if first == 0 and size > 2 and axis.one in FIRST_OF_A_SEQUENCE:
            ask = "what may the first token see?"
        return _Place(_single(first, size, axis), False, ask=ask)
    if len(outside) == 1:
        but = _single(outside[0], size, axis, short=True)
        return _Place(f"every {axis.one}{axis.of} but {but}", False, only=False)
    if last - first + 1 == count:
        if first == 0 or last == size - 1:
            end = "first" if first == 0 else "last"
            return _Place(f"the {end} {count} of {size} {axis.many}{axis.of}", True)
        return _Place(f"{axis.many} {first} to {last}{axis.of}", True)
    if inside == list(range(first, size, 2)) and first < 2 and count > 2:
        return _Place(f"every second {axis.one}{axis.of}, from {first} on,", False, listed=True)
    if count <= 3:
        return _Place(f"{axis.many} {_and(inside)}{axis.of}", True, listed=True)
    return None


def _single(index: int, size: int, axis: _Axis, short: bool = False) -> str:
    noun = "" if short else f" {axis.one}{axis.of}"
    if size > 2 and index in (0, size - 1):
        return f"the {'first' if index == 0 else 'last'}{noun}"
    return axis.at(index)


def _and(numbers: Sequence[object]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def _place(pair: _Pair) -> _Said | None:
    """Where the two differ, and what is true of the values there."""
    place = _find(pair.wrong, pair.axes)
    there = "" if bool(pair.wrong.all()) else _there(pair)
    if pair.wrong.numel() - _room(pair.wrong) < pair.precision.chance:
        place = _diagonals(pair.wrong)  # the few values elsewhere may be right by chance
    if place is None:
        # Without a place it takes more to be worth saying.
        enough = int(pair.wrong.sum()) >= 6
        return _Said(f"every value that differs {there}") if there and enough else None
    text = f"only {place.text}" if place.only else place.text
    text += " differ" if place.plural else " differs"
    if there:
        where = ", where every value" if _filled(pair.wrong) else "; every value that differs"
        text += f"{where} {there}"
    return _Said(text, place.ask)


def _filled(mask: Tensor) -> bool:
    """Whether a mask is all of its place: of a diagonal, a triangle or a block of slices."""
    return int(mask.sum()) == _room(mask) or _diagonals(mask) is not None


def _there(pair: _Pair) -> str:
    """What is true of all elements that differ: "is 0 and should be 1"; empty if nothing is."""
    part = pair.part()
    if part.ours.numel() < 3:
        return ""
    theirs, ours = _one_value(part.theirs), _one_value(part.ours)
    if theirs is not None and ours is not None:
        return f"is {pair.show(theirs)} and should be {pair.show(ours)}"
    if theirs is not None:
        return f"is {pair.show(theirs)}"
    if ours is not None:
        return f"should be {pair.show(ours)}"
    said = _scaled(part) or _offset(part)
    return said.text.removeprefix("every value ") if said else ""


def _not_finite(pair: _Pair, mask: Tensor, what: str) -> list[_Said]:
    """NaN or infinities where there should be none."""
    right = " and the rest is right" if torch.equal(mask, pair.wrong) else ""
    if bool(mask.all()):
        return [_Said(f"every value is {what}")]
    place = _find(mask, pair.axes)
    if place is None or not _filled(mask):
        return []
    verb = "are" if place.plural else "is"
    return [_Said(f"{place.text} {verb} {what}{right}", place.ask)]


def _room(mask: Tensor) -> int:
    """The size of the smallest block of slices that holds all of a mask."""
    return math.prod(
        int(mask.movedim(axis, 0).reshape(size, -1).any(1).sum())
        for axis, size in enumerate(mask.shape)
    )


# --- values that all are the same, and masks -----------------------------------------------------


def _constant(pair: _Pair) -> _Said | None:
    theirs, ours = _one_value(pair.theirs), _one_value(pair.ours)
    if theirs is None or pair.theirs.numel() < 3:
        return None
    should = f" and should be {pair.show(ours)}" if ours is not None else ""
    return _Said(f"every value is {pair.show(theirs)}{should}")


def _one_value(tensor: Tensor) -> float | None:
    first = tensor.flatten()[0]
    return float(first) if bool((tensor == first).all()) else None


def _inverted(pair: _Pair) -> _Said | None:
    if not pair.is_bool or not pair.moved or not bool(pair.wrong.all()):
        return None
    return _Said("every value is inverted: True where False is expected, and the reverse")


def _one_diagonal(pair: _Pair) -> _Said | None:
    """For masks, before all that moves: a triangle moved by a row is one diagonal more."""
    if not pair.is_bool or _diagonals(pair.wrong) is None:
        return None
    return _place(pair) if _there(pair) else None


def _same_triangle(pair: _Pair) -> _Said | None:
    """A triangle of True whose edge stands elsewhere by two diagonals or more."""
    theirs, ours = _edge(pair.theirs), _edge(pair.ours)
    if not pair.is_bool or theirs is None or ours is None or theirs[1] != ours[1]:
        return None
    shift = theirs[0] - ours[0]
    if abs(shift) < 2:
        return None  # one diagonal differs, and is named as such
    far = f"{abs(shift)} diagonals too far to the {'right' if shift > 0 else 'left'}"
    return _Said(f"the same triangle, with its edge {far}")


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


# --- the same numbers elsewhere ------------------------------------------------------------------


def _rearranged(pair: _Pair) -> _Said | None:
    """The same numbers in another order: which one, if just one fits."""
    # What no order changes, and most mistakes do.
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
        return _Said("the same numbers in another order")
    return None


def _same_numbers(pair: _Pair) -> bool:
    theirs, ours = pair.theirs.flatten().sort().values, pair.ours.flatten().sort().values
    if pair.levels(pair.ours[pair.wrong]) < 4 or not pair.same(theirs, ours):
        return False
    # Many values from one distribution lie so close that any two samples would agree.
    gaps = ours[ours.isfinite()].diff()
    apart = gaps > 4 * pair.precision.rtol * pair.scale
    return 2 * int(apart.sum()) >= int((gaps > 0).sum())


def _permuted(pair: _Pair) -> Iterator[_Said]:
    """Axes in another order, or a view in place of a transpose."""
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
                f"transpose({swapped[0]}, {swapped[1]})" if len(swapped) == 2
                else f"permute{tuple(needed)}"
            )  # fmt: skip
            yield _Said(
                f"the same numbers in another order, as from a view or reshape where {call} "
                "was needed"
            )


def _enough_moved(pair: _Pair) -> bool:
    """Whether an order that fits is evidence; for truth values it takes more of them."""
    return pair.moved and (pair.is_bool or pair.levels(pair.ours) >= pair.precision.levels)


def _axes_swapped(swapped: list[int], full: list[int], dims: int) -> _Said:
    if len(swapped) != 2:
        return _Said(f"the axes are in another order: this is permute{tuple(full)} of the result")
    if dims == 2:
        return _Said("it is transposed")
    if swapped == [dims - 2, dims - 1]:
        return _Said("it is transposed: the last two axes are swapped")
    return _Said(f"axes {swapped[0]} and {swapped[1]} are swapped")


def _heads(pair: _Pair) -> Iterator[_Said]:
    """Heads merged without a transpose, or features dealt to heads in turn."""
    shape = pair.ours.shape
    if len(shape) < 2 or pair.is_bool or not _enough_moved(pair):
        return
    again = "the same numbers in another order, as from "
    features = shape[-1]
    for heads in (n for n in range(2, min(features, MOST_SLICES)) if features % n == 0):
        split = pair.ours.reshape(*shape[:-1], heads, features // heads)
        if shape[-2] > 1 and pair.same(pair.theirs, split.transpose(-3, -2).reshape(shape)):
            yield _Said(
                f"{again}merging {heads} heads by a view or reshape, without a transpose before it"
            )
        width = features // heads
        if features > 4 and pair.same(pair.theirs, split.transpose(-2, -1).reshape(shape)):
            yield _Said(
                f"{again}a last axis of {width} times {heads} where {heads} times {width} was "
                "needed"
            )
    if len(shape) == 4 and shape[1] > 1 and shape[3] > 1:
        batch, heads, tokens, width = shape
        features_of = pair.ours.transpose(1, 2).reshape(batch, tokens, width, heads)
        if pair.same(pair.theirs, features_of.permute(0, 3, 1, 2)):
            yield _Said(
                f"{again}a view that ends in ({width}, {heads}) where ({heads}, {width}) was needed"
            )


def _slices_permuted(pair: _Pair) -> Iterator[_Said]:
    """Rows, columns, heads … in another order along one axis."""
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
            yield _Said(_order(order, moved, word))


def _order(order: list[int], moved: list[int], word: _Axis) -> str:
    size = len(order)
    if len(moved) == 2:
        return f"{word.many} {moved[0]} and {moved[1]}{word.of} are swapped"
    if order == list(range(size))[::-1]:
        return f"the {word.many}{word.of} are in reverse order"
    for step, way in ((1, "later"), (-1, "earlier")):
        if order == [(index + step) % size for index in range(size)]:
            return f"the {word.many}{word.of} are rolled: each holds what belongs one {way}"
    place = moved[0]
    return (
        f"the {word.many}{word.of} are in another order: {word.at(place)} holds what belongs in "
        f"{word.at(order[place])}"
    )


def _shifted(pair: _Pair) -> _Said | None:
    """Off by one: each row holds what belongs in the row before, or after."""
    said = []
    for axis, word in enumerate(pair.axes):
        matches = pair.matches[axis]
        size = pair.ours.shape[axis]
        if matches is None or size < (3 if pair.ours.dim() > 1 else 4) or not pair.moved:
            continue
        for step, way in ((-1, "earlier"), (1, "later")):
            rows = matches[1:] if step < 0 else matches[:-1]
            if bool(matches.diagonal(step).all()) and bool((rows.sum(1) == 1).all()):
                one = f"each {word.one}{word.of} holds what belongs one {way}"
                said.append(_Said(f"off by one: {one}"))
    return said[0] if len(said) == 1 else None


def _repeated(pair: _Pair) -> _Said | None:
    """Every row is the same one of the expected rows."""
    for axis, word in enumerate(pair.axes):
        matches = pair.matches[axis]
        if matches is None or matches.shape[0] < 3 or pair.ours.dim() < 2:
            continue
        sources = matches.all(0).nonzero().flatten().tolist()
        if len(sources) == 1 and pair.tells:
            source = _single(sources[0], matches.shape[0], word)
            return _Said(f"every {word.one}{word.of} is what only {source} should be")
    return None


# --- formulas ------------------------------------------------------------------------------------


def _scaled(pair: _Pair) -> _Said | None:
    if pair.is_bool or not pair.tells:
        return None
    finite = pair.ours.isfinite() & pair.theirs.isfinite()
    theirs, ours = pair.theirs[finite], pair.ours[finite]
    factor = float((theirs * ours).sum() / (ours * ours).sum())
    if not math.isfinite(factor) or factor == 0 or not pair.explains(lambda x: x * factor):
        return None
    if abs(factor + 1) <= pair.precision.rtol:
        return _Said("every value has the wrong sign")
    return _Said(f"every value is {_name(factor, pair.precision)} what it should be")


def _name(factor: float, precision: _Precision) -> str:
    """A factor in words: "2 times", "1/√8 (0.3536) of"."""
    sign, size = "-" if factor < 0 else "", abs(factor)
    most = min(256, int(1 / (8 * precision.rtol)))  # neighbours must be told apart
    for power, root in ((1.0, ""), (0.5, "√")):
        upward = round(size ** (1 / power)) if size < 1e6 else 0
        if 2 <= upward <= most and math.isclose(upward**power, size, rel_tol=precision.rtol):
            return f"{sign}{root}{upward}{f' ({factor:.4g})' if root else ''} times"
        downward = round((1 / size) ** (1 / power)) if size > 1e-6 else 0
        if 2 <= downward <= most and math.isclose(downward**-power, size, rel_tol=precision.rtol):
            return f"{sign}1/{root}{downward} ({factor:.4g}) of"
    return f"{factor:.4g} times"


def _offset(pair: _Pair) -> _Said | None:
    """The same amount too large or too small everywhere."""
    enough = pair.tells if pair.is_float else pair.ours.numel() > 3 and pair.levels(pair.ours) > 1
    if pair.is_bool or not enough:
        return None
    finite = pair.ours.isfinite() & pair.theirs.isfinite()
    gaps = (pair.theirs - pair.ours)[finite]
    if not gaps.numel() or not bool((finite | (pair.theirs == pair.ours)).all()):
        return None
    amount = float(gaps.mean())
    slack = pair.precision.atol * pair.scale
    if abs(amount) <= 50 * slack or float((gaps - amount).abs().max()) > slack:
        return None
    way = "large" if amount > 0 else "small"
    return _Said(f"every value is {abs(amount):.4g} too {way}")


def _formula(pair: _Pair) -> _Said | None:
    """An elementwise function of what was expected."""
    if not pair.is_float or not pair.tells:
        return None
    for formula, text in (
        (torch.reciprocal, "1 divided by what it should be"),
        (torch.log, "the logarithm of what it should be"),
        (torch.exp, "the exponential of what it should be"),
        (torch.square, "the square of what it should be"),
        (torch.sqrt, "the square root of what it should be"),
    ):
        if pair.explains(formula):
            return _Said(f"every value is {text}")
    if int((pair.ours < 0).sum()) > 2 and pair.explains(torch.abs):
        return _Said("every value is without its sign")
    return None


def _softmax(pair: _Pair) -> _Said | None:
    """One softmax over the last axis too many, or too few."""
    if not pair.is_float or pair.ours.shape[-1] < 2 or not pair.tells:
        return None
    if pair.same(pair.theirs, pair.ours.softmax(-1)):
        return _Said("it is the softmax of what it should be", "is there one softmax too many?")
    if _sums_to_one(pair, pair.ours, -1) and pair.same(pair.theirs.softmax(-1), pair.ours):
        return _Said("its softmax would be right", "is the softmax missing?")
    return None


def _row_factors(pair: _Pair) -> _Said | None:
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
    return _Said(f"each row is right but for a factor of its own{_row_sums(pair)}")


def _row_sums(pair: _Pair) -> str:
    if not _sums_to_one(pair, pair.ours, -1):
        return ""
    return f", and sums to {_span(pair.theirs.sum(-1))} where one is expected"


def _row_offsets(pair: _Pair) -> _Said | None:
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
    return _Said(
        "each row is off by a constant of its own, which a softmax over the row would not notice"
    )


def _one_vector(pair: _Pair) -> _Said | None:
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
    return _Said("every row is off by the same vector", "is a bias missing, or added twice?")


def _gaps(pair: _Pair) -> tuple[Tensor | None, float]:
    """Differences as rows, and how much of one is rounding."""
    if not pair.is_float or not bool((pair.ours.isfinite() & pair.theirs.isfinite()).all()):
        return None, 0.0
    slack = pair.precision.atol * max(pair.scale, _largest(pair.theirs))
    return (pair.theirs - pair.ours).reshape(-1, pair.ours.shape[-1]), slack


def _varies(rows: Tensor, dim: int, least: float) -> bool:
    """Whether most slices hold values that differ."""
    spread = rows.amax(dim) - rows.amin(dim)
    return 2 * int((spread > least).sum()) > spread.numel()


# --- weights -------------------------------------------------------------------------------------


def _distribution(pair: _Pair) -> _Said | None:
    """What keeps the result from being weights, where the expected rows are."""
    if not pair.is_float:
        return None
    axes = [axis for axis in range(-1, -1 - pair.ours.dim(), -1)
            if _sums_to_one(pair, pair.ours, axis)]  # fmt: skip
    if not axes or not pair.levels(pair.ours) >= 3:
        return None
    negative = int((pair.theirs < -pair.precision.rtol).sum())
    if negative:
        return _Said(f"weights are never negative, and {negative} of {pair.ours.numel()} are here")
    expected = axes[0]
    if _sums_to_one(pair, pair.theirs, expected):
        return None
    lines = _lines(expected, pair.ours.dim())
    for axis in range(-1, -1 - pair.ours.dim(), -1):
        if axis not in axes and _sums_to_one(pair, pair.theirs, axis):
            return _Said(
                f"the {_lines(axis, pair.ours.dim())} sum to one where the {lines} should",
                "over which axis does the softmax go?",
            )
    for dims, what in (((-2, -1), "matrix"), (tuple(range(pair.ours.dim())), "tensor")):
        if pair.ours.dim() >= len(dims) > 1 and _ones(pair, pair.theirs.sum(dims)):
            return _Said(f"the whole {what} sums to one where each of the {lines} should")
    sums = pair.theirs.sum(expected)
    if pair.ours.dim() == 1:
        return _Said(f"the values sum to {_span(sums)}, not to one")
    return _Said(f"the {lines} sum to {_span(sums)}, not to one")


def _triangle_of_zeros(pair: _Pair) -> _Said | None:
    """A triangle, or a diagonal, that should be zero and nowhere is; or the other way round."""
    for zero, other, text in (
        (pair.ours == 0, pair.theirs, "should be 0, and is not"),
        (pair.theirs == 0, pair.ours, "is 0, and should not be"),
    ):
        if not pair.is_float or torch.equal(zero, pair.wrong):
            continue  # what differs is described as a place
        place = _diagonals(zero)
        # Some of the softmax's smallest weights may pass for zero.
        if place and bool((other[zero] != 0).all()) and 2 * pair.wrong[zero].sum() >= zero.sum():
            return _Said(f"{place.text} {text}")
    return None


def _lines(axis: int, dims: int) -> str:
    """What it is that sums to one along an axis."""
    if dims == 1:
        return "values"
    return {-1: "rows", -2: "columns"}.get(axis, f"slices along axis {dims + axis}")


def _sums_to_one(pair: _Pair, tensor: Tensor, axis: int) -> bool:
    if tensor.shape[axis] < 2 or float(tensor.min()) < 0:
        return False
    return _ones(pair, tensor.sum(axis))


def _ones(pair: _Pair, sums: Tensor) -> bool:
    return bool(((sums - 1).abs() <= 5 * pair.precision.rtol).all())


def _span(sums: Tensor) -> str:
    least, most = f"{float(sums.min()):.4g}", f"{float(sums.max()):.4g}"
    return least if least == most else f"between {least} and {most}"


def _largest(tensor: Tensor) -> float:
    finite = tensor.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(finite.abs().max()) if finite.numel() else 0.0
