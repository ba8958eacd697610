"""A wrong tensor beside the expected one, and what both are compared by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from grader.course.tolerances import ROUNDING, Tolerance
from grader.feedback import margins

MOST_SLICES = 32  # each is compared with each
EXACT_INTEGER = 2.0**52  # float64 holds smaller ones exactly


@dataclass(frozen=True)
class Sentence:
    """A sentence, and a question that may end the message."""

    text: str
    ask: str = ""


@dataclass(frozen=True)
class TensorPair:
    """The two tensors in float64, where they differ, and what their axes are called."""

    theirs: Tensor
    ours: Tensor
    wrong: Tensor
    dtype: torch.dtype
    axes: tuple[Axis, ...]

    @property
    def precision(self) -> Precision:
        """What rounding may do to values of this dtype."""
        return PRECISION[self.dtype]

    @property
    def is_float(self) -> bool:
        """Whether the values are floating-point numbers."""
        return self.dtype in ROUNDING

    @property
    def is_bool(self) -> bool:
        """Whether the values are truth values."""
        return self.dtype == torch.bool

    @cached_property
    def scale(self) -> float:
        """The largest finite expected value, without its sign."""
        return largest(self.ours)

    @property
    def speaks(self) -> bool:
        """Whether there is a difference beyond rounding, and an expectation to compare with."""
        if not bool(self.wrong.any()) or bool(self.ours.isnan().any()):
            return False
        if not self.is_float and max(self.scale, largest(self.theirs)) > EXACT_INTEGER:
            return False
        return not self.same(self.theirs, self.ours)

    def close(self, theirs: Tensor, ours: Tensor) -> Tensor:
        """Which elements agree up to rounding. Tensors whose sizes differ hardly agree."""
        # Of the smaller tensor: what is rounding to the larger one may be everything to it.
        atol = self.precision.atol * min(largest(theirs), largest(ours))
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
        return 1 + int((values.diff() > 4 * self.precision.rtol * largest(values)).sum())

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

    def part(self) -> TensorPair:
        """The elements that differ, as two vectors."""
        theirs, ours = self.theirs[self.wrong], self.ours[self.wrong]
        everywhere = torch.ones_like(ours, dtype=torch.bool)
        return TensorPair(theirs, ours, everywhere, self.dtype, named_axes(1, None))

    def show(self, value: float) -> str:
        """A value as a sentence names it."""
        if self.is_bool:
            return str(bool(value))
        return f"{value:.4g}"


def largest(tensor: Tensor) -> float:
    """The largest finite value, without its sign."""
    finite = tensor.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(finite.abs().max()) if finite.numel() else 0.0


# --- axes ----------------------------------------------------------------------------------------
#
# What the axes of a tensor are called.


@dataclass(frozen=True)
class Axis:
    """What one index along an axis is called: a row, a head, an index of axis 0."""

    one: str
    many: str
    of: str = ""

    def at(self, index: int) -> str:
        """One of them by its index: "row 3", "index 2 of axis 0"."""
        return f"{self.one} {index}{self.of}"


NAMED = {
    "batch": Axis("batch row", "batch rows"),
    "heads": Axis("head", "heads"), "num_heads": Axis("head", "heads"),
    "tokens": Axis("token", "tokens"), "num_tokens": Axis("token", "tokens"),
    "time": Axis("time step", "time steps"),
    "queries": Axis("query", "queries"), "keys": Axis("key", "keys"),
    "channels": Axis("channel", "channels"),
}  # fmt: skip


def named_axes(dims: int, names: Sequence[str] | None) -> tuple[Axis, ...]:
    """What the axes are called. Rows and columns are never false; a batch or a head may be."""
    if dims == 1:
        axes = [Axis("value", "values")]
    else:
        leading = [Axis("index", "indices", f" of axis {axis}") for axis in range(dims - 2)]
        axes = [*leading, Axis("row", "rows"), Axis("column", "columns")]
    if names is None or len(names) != dims:
        return tuple(axes)
    called = [NAMED.get(name, axis) for name, axis in zip(names, axes, strict=True)]
    # Tokens by tokens: which of the two is meant, only rows and columns say.
    return tuple(
        word if called.count(word) == 1 else axis for word, axis in zip(called, axes, strict=True)
    )


# --- precision -----------------------------------------------------------------------------------
#
# What each dtype's rounding may do, and which elements differ beyond it.


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Precision:
    """How far rounding may carry two values apart, and what counts as evidence."""

    rtol: float
    atol: float  # times the largest value
    levels: int  # so many distinct values a formula must explain
    chance: int  # fewer elements than this may well agree by chance


PRECISION = {
    torch.float64: Precision(1e-6, 1e-7, 3, 1),
    torch.float32: Precision(2e-5, 5e-6, 3, 1),
    torch.float16: Precision(1e-2, 2e-3, 6, 6),
    torch.bfloat16: Precision(4e-2, 1e-2, 8, 8),
    torch.bool: Precision(0.0, 0.0, 3, 12),
    **dict.fromkeys(INTEGERS, Precision(1e-12, 0.0, 3, 6)),
}
# What adds up in another order than the reference does rounds otherwise.
SLACK = {"cpu": 1, "cuda": 10}
_slack: ContextVar[int] = ContextVar("slack", default=1)


@contextmanager
def computed_on(device: str) -> Iterator[None]:
    """Meanwhile, one of two tensors that are compared comes from this kind of device."""
    token = _slack.set(SLACK[device])
    try:
        yield
    finally:
        _slack.reset(token)


def differing(theirs: Tensor, ours: Tensor, within: Tolerance | None = None) -> Tensor:
    """Which elements differ, as a bool tensor of the same shape; NaN differs from everything."""
    if ours.dtype not in ROUNDING:
        return theirs != ours
    within = within or ROUNDING[ours.dtype] * _slack.get()
    margins.note(theirs, ours, within)
    return ~torch.isclose(theirs, ours, rtol=within.rtol, atol=within.atol)
