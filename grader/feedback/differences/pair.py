"""A wrong tensor and the expected tensor, with the names of their axes and the tolerances.

`theirs` is the student's tensor, which is wrong, and `ours` is the expected tensor.
"""

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

MOST_SLICES = 32  # slices along an axis; above this number, slices are not compared with each other
EXACT_INTEGER = 2.0**52  # float64 holds smaller integers exactly


@dataclass(frozen=True)
class Sentence:
    """A sentence about a difference, and a question to the student, which may end the message."""

    text: str
    ask: str = ""


@dataclass(frozen=True)
class TensorPair:
    """A wrong tensor and the expected tensor in float64, with a mask of the wrong elements."""

    theirs: Tensor
    ours: Tensor
    wrong: Tensor
    dtype: torch.dtype
    axes: tuple[Axis, ...]

    @property
    def precision(self) -> Precision:
        """The precision of the original dtype."""
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
        """The largest absolute value of the finite expected values."""
        return largest(self.ours)

    @property
    def is_comparable(self) -> bool:
        """Whether the tensors differ beyond rounding, and the expected values are not NaN."""
        if not bool(self.wrong.any()) or bool(self.ours.isnan().any()):
            return False
        if not self.is_float and max(self.scale, largest(self.theirs)) > EXACT_INTEGER:
            return False
        return not self.same(self.theirs, self.ours)

    def close(self, theirs: Tensor, ours: Tensor) -> Tensor:
        """A mask of the elements that agree up to rounding."""
        # The tensor with the smaller values sets the scale, since the rounding of the larger values
        # may exceed the smaller values.
        atol = self.precision.atol * min(largest(theirs), largest(ours))
        near = (theirs - ours).abs() <= atol + self.precision.rtol * ours.abs()
        return near & ours.isfinite() | (theirs == ours)

    def same(self, theirs: Tensor, ours: Tensor) -> bool:
        """Whether all elements agree up to rounding.

        The first 64 elements are compared first: if they differ, the others need no comparison.
        """
        first = slice(0, 64)
        if bool(self._far(theirs.flatten()[first], ours.flatten()[first]).any()):
            return False
        return bool(self.close(theirs, ours).all())

    def _far(self, theirs: Tensor, ours: Tensor) -> Tensor:
        """A mask of the elements that differ by more than ten times the rounding."""
        slack = self.precision.atol * self.scale + self.precision.rtol * ours.abs()
        return (theirs - ours).abs() > 10 * slack

    def explains(self, formula: Callable[[Tensor], Tensor]) -> bool:
        """Whether `formula`, applied elementwise to `ours`, gives `theirs`."""
        few = self.theirs.flatten()[:64], self.ours.flatten()[:64]
        if bool(self._far(few[0], formula(few[1])).any()):
            return False
        return self.same(self.theirs, formula(self.ours))

    @cached_property
    def has_evidence(self) -> bool:
        """Whether both tensors have so many distinct values that no formula fits by chance."""
        return all(
            self.levels(tensor) >= self.precision.levels for tensor in (self.theirs, self.ours)
        )

    def levels(self, tensor: Tensor) -> int:
        """The number of distinct values in a sample; values equal up to rounding count once."""
        values = tensor.flatten()[:: max(1, tensor.numel() // 512)]
        values = values[values.isfinite()].sort().values
        if not values.numel():
            return 0
        return 1 + int((values.diff() > 4 * self.precision.rtol * largest(values)).sum())

    @property
    def moved(self) -> bool:
        """Whether so many elements differ that no other order of the elements fits by chance."""
        return int(self.wrong.sum()) >= self.precision.chance

    @cached_property
    def matches(self) -> tuple[Tensor | None, ...]:
        """For each axis, a matrix: whether slice i of `theirs` equals slice j of `ours`.

        None for an axis with a single slice or more than `MOST_SLICES`.
        """
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
        """A value as text, with four digits."""
        if self.is_bool:
            return str(bool(value))
        return f"{value:.4g}"


def largest(tensor: Tensor) -> float:
    """The largest absolute value of the finite values; 0 if there are none."""
    finite = tensor.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(finite.abs().max()) if finite.numel() else 0.0


# --- axes ----------------------------------------------------------------------------------------
#
# The nouns for a tensor's axes in sentences.


@dataclass(frozen=True)
class Axis:
    """The noun for an index along an axis, singular and plural: row and rows.

    `of` follows the index: " of axis 0" in "index 2 of axis 0".
    """

    one: str
    many: str
    of: str = ""

    def at(self, index: int) -> str:
        """The noun with an index: "row 3", "index 2 of axis 0"."""
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
    """The nouns for the axes; the last two are row and column if `names` gives no known noun."""
    if dims == 1:
        axes = [Axis("value", "values")]
    else:
        leading = [Axis("index", "indices", f" of axis {axis}") for axis in range(dims - 2)]
        axes = [*leading, Axis("row", "rows"), Axis("column", "columns")]
    if names is None or len(names) != dims:
        return tuple(axes)
    called = [NAMED.get(name, axis) for name, axis in zip(names, axes, strict=True)]
    # If two axes have the same noun, as in tokens by tokens, call them row and column.
    return tuple(
        word if called.count(word) == 1 else axis for word, axis in zip(called, axes, strict=True)
    )


# --- precision -----------------------------------------------------------------------------------
#
# The rounding of each dtype, and the elements whose difference exceeds rounding.


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Precision:
    """The rounding of a dtype, and the evidence that an explanation needs."""

    rtol: float
    atol: float  # relative to the largest value
    levels: int  # the number of distinct values that a formula must explain
    chance: int  # fewer elements than this number may agree by chance


PRECISION = {
    torch.float64: Precision(1e-6, 1e-7, 3, 1),
    torch.float32: Precision(2e-5, 5e-6, 3, 1),
    torch.float16: Precision(1e-2, 2e-3, 6, 6),
    torch.bfloat16: Precision(4e-2, 1e-2, 8, 8),
    torch.bool: Precision(0.0, 0.0, 3, 12),
    **dict.fromkeys(INTEGERS, Precision(1e-12, 0.0, 3, 6)),
}
# A GPU adds in another order than the reference on the CPU, and rounds differently.
SLACK = {"cpu": 1, "cuda": 10}
_slack: ContextVar[int] = ContextVar("slack", default=1)


@contextmanager
def computed_on(device: str) -> Iterator[None]:
    """Inside the ``with`` block, allow for the rounding of this kind of device: cpu or cuda."""
    token = _slack.set(SLACK[device])
    try:
        yield
    finally:
        _slack.reset(token)


def differing(theirs: Tensor, ours: Tensor, within: Tolerance | None = None) -> Tensor:
    """A mask of the elements that differ beyond the tolerance; NaN differs from everything."""
    if ours.dtype not in ROUNDING:
        return theirs != ours
    within = within or ROUNDING[ours.dtype] * _slack.get()
    margins.note(theirs, ours, within)
    return ~torch.isclose(theirs, ours, rtol=within.rtol, atol=within.atol)
