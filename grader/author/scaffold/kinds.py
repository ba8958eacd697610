"""The kinds of arguments: how each is drawn in a test, shown in an example, and put into words.

A kind of tensor is one class here. All of them have the same functions. A NumPy array is a tensor
of its kind, converted: see `as_argument`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from grader.author.changes import quoted
from grader.course.forms import BOOL, FLOAT, INT, TensorSpec, dtype_of, wanted
from grader.course.tensors import Make
from grader.records.rows import listed
from grader.testing.values import as_tensor
from grader.wire.payload import fields_of

Sizes = Mapping[str, int]


class Kind(Protocol):
    """How a tensor of a kind is drawn."""

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """Draw a tensor of this shape; only numbers have the dtype."""

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """The same as the text of a test; `named` has the text of each dimension's size."""

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """A tensor of round numbers for an example; another `start` gives other numbers.

        Floats are float64.
        """

    def words(self) -> str:
        """The values, for a statement."""


@dataclass(frozen=True)
class Normal:
    """Numbers of either sign."""

    scale: float = 2.0

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """See `Kind`."""
        del sizes
        return make.normal(self.scale, dtype=dtype, **_numbered(shape))

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """See `Kind`."""
        del named
        return f"make.normal({self.scale}{_more(sizes)}{_more(dtype)})"

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """See `Kind`."""
        del sizes
        return _cycled((1.0, -2.0, 3.0, 0.5, 4.0, -1.0, 2.0, -3.0), shape, start)

    def words(self) -> str:
        """See `Kind`."""
        return "any numbers"


@dataclass(frozen=True)
class Uniform:
    """Numbers in a range."""

    low: float
    high: float

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """See `Kind`."""
        del sizes
        return make.uniform(self.low, self.high, dtype=dtype, **_numbered(shape))

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """See `Kind`."""
        del named
        return f"make.uniform({self.low}, {self.high}{_more(sizes)}{_more(dtype)})"

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """See `Kind`."""
        del sizes
        steps = (0.25, 0.5, 0.75, 0.125, 0.375, 0.875, 0.625)
        numbers = [round(self.low + step * (self.high - self.low), 6) for step in steps]
        return _cycled(numbers, shape, start)

    def words(self) -> str:
        """See `Kind`."""
        return f"numbers between {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class Among:
    """A few numbers, each drawn many times: for edges such as zero, infinity and equal numbers."""

    values: tuple[float, ...]

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """See `Kind`."""
        del sizes
        places = make.integers(0, len(self.values), **_numbered(shape))
        return torch.tensor(self.values, dtype=dtype)[places]

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """See `Kind`."""
        del named
        values = f"torch.tensor({_listed([*self.values], False)}{_more(dtype)})"
        return f"torch.take({values}, make.integers(0, {len(self.values)}{_more(sizes)}))"

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """See `Kind`."""
        del sizes
        twice = 2 * self.values
        return _cycled(random.Random(start).sample(twice, len(twice)), shape, 0)

    def words(self) -> str:
        """See `Kind`."""
        more = [str(value) for value in self.values if not math.isfinite(value)]
        return f"any numbers, also {listed(more, 'and')}" if more else "any numbers"


@dataclass(frozen=True)
class Integers:
    """Integers in a range; the end of the range may be a dimension's size."""

    low: int
    high: int | str

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """See `Kind`."""
        del dtype
        return make.integers(self.low, self._end(sizes), **_numbered(shape))

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """See `Kind`."""
        del dtype
        end = named[self.high] if isinstance(self.high, str) else self.high
        return f"make.integers({self.low}, {end}{_more(sizes)})"

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """See `Kind`."""
        count = self._end(sizes) - self.low
        steps = [(step * 2 + 1) % count + self.low for step in range(count)]
        return _cycled(steps, shape, start)

    def words(self) -> str:
        """See `Kind`."""
        last = f"{self.high} - 1" if isinstance(self.high, str) else self.high - 1
        return f"from {self.low} to {last}"

    def _end(self, sizes: Sizes) -> int:
        return sizes[self.high] if isinstance(self.high, str) else self.high


@dataclass(frozen=True)
class Booleans:
    """True and False; a mask may have to leave the first element of each row False."""

    keeps_first: bool = False
    share: float = 0.5  # of True

    def draw(self, make: Make, shape: Sequence[int], sizes: Sizes, dtype: torch.dtype) -> Tensor:
        """See `Kind`."""
        del sizes, dtype
        return self._kept(make.booleans(self.share, **_numbered(shape)))

    def code(self, sizes: str, dtype: str, named: Mapping[str, str]) -> str:
        """See `Kind`."""
        del dtype, named
        share = f"{self.share}, " if self.share != 0.5 else ""
        drawn = f"make.booleans({share}{sizes})"
        last = sizes.rpartition("=")[2]
        return f"{drawn} & (torch.arange({last}) > 0)" if self.keeps_first else drawn

    def round(self, shape: Sequence[int], sizes: Sizes, start: int) -> Tensor:
        """See `Kind`."""
        del sizes
        return self._kept(_cycled((True, False, True, True, False), shape, start))

    def words(self) -> str:
        """See `Kind`."""
        more = "; the first of each row is False" if self.keeps_first else ""
        return f"True or False{more}"

    def _kept(self, drawn: Tensor) -> Tensor:
        return drawn & (torch.arange(drawn.shape[-1]) > 0) if self.keeps_first else drawn


def as_argument(spec: TensorSpec, drawn: Tensor) -> Any:
    """A drawn tensor as the argument that an annotation asks for.

    Floats of arrays are float64, as NumPy makes them, if the annotation does not name float32.
    """
    if not spec.array:
        return drawn
    wide = drawn.is_floating_point() and is_wide(spec)
    return (drawn.double() if wide else drawn).numpy()


def code_of_argument(
    spec: TensorSpec, kind: Kind, sizes: str, dtype: str, named: Mapping[str, str]
) -> str:
    """The text that draws an argument in a test."""
    if not spec.array:
        return kind.code(sizes, dtype, named)
    # Numbers that float32 holds exactly would hide a detour through float32.
    text = kind.code(sizes, "dtype=torch.float64" if is_wide(spec) else "", named)
    return f"{f'({text})' if ' & ' in text else text}.numpy()"


def is_wide(spec: TensorSpec) -> bool:
    """Whether the floats of an argument are float64."""
    return spec.array and spec.kind != "float32"


def kinds_for(spec: TensorSpec, given: Any, sizes: Sequence[str]) -> list[Kind]:
    """The kinds to try for a tensor, the most general first.

    `given` is the author's example, or None; `sizes` are the names of the sizes that may bound
    integers. An example without negative numbers speaks of positive numbers.
    """
    given = as_tensor(given) if isinstance(given, Tensor | np.ndarray) else None
    if spec.kind == BOOL:
        masks = [Booleans(keeps_first=True)] if spec.dimensions else []
        return [Booleans(), *masks, Booleans(share=0.9), Booleans(share=0.1)]
    if spec.kind.removeprefix("u").startswith(INT):
        low = min(0, int(given.min())) if given is not None and given.numel() else 0
        high = int(given.max()) + 1 if given is not None and given.numel() else 5
        return [*(Integers(low, name) for name in sizes), Integers(low, max(high, low + 2))]
    positive: list[Kind] = [Uniform(0.1, 3.0), Uniform(0.05, 0.95)]
    if given is not None and given.numel() and bool((given >= 0).all()):
        return positive if bool((given > 1).any()) else [*positive[::-1], Normal()]
    return [Normal(), *positive]


def scalars_for(value: Any) -> list[Any]:
    """Values to try for a parameter that is no tensor, beginning with the given value."""
    match value:
        case bool():
            return [value, not value]
        case int():
            return list(dict.fromkeys((value, value + 1, value - 1, 0, 1, 2, 3, -1)))
        case float():
            return list(dict.fromkeys((value, 2 * value, value / 2, 0.25, 1.5)))
    return [value]


def unknown_scalars(annotation: Any) -> list[Any]:
    """Values to try for a parameter of which only the annotation is known."""
    known: dict[Any, list[Any]] = {
        int: [2, 3, 1, 4, 0, -1],
        float: [0.3, 2.0, 0.1],  # not 0.5, which every dtype holds exactly
        bool: [True, False],
    }
    return known.get(annotation, [])


def annotation_of(value: Any, dimensions: Iterator[str] | None = None) -> str:
    """The annotation of a value; `dimensions` yields the text of each tensor's dimensions."""
    match value:
        case Tensor() | np.ndarray():
            container = "Tensor" if isinstance(value, Tensor) else "np.ndarray"
            labels = next(dimensions, None) if dimensions is not None else None
            dtype = dtype_of(value)
            return f'{family(dtype)}[{container}, "{labels}"]' if labels and dtype else container
        case tuple() if value:
            return f"tuple[{', '.join(annotation_of(part, dimensions) for part in value)}]"
        case list() | set() if value:
            return f"{type(value).__name__}{_all_of(value, dimensions)}"
        case dict() if value:
            keys, values = _all_of(value, None), _all_of(value.values(), dimensions)
            return f"dict[{keys[1:-1]}, {values[1:-1]}]" if keys and values else "dict"
        case torch.nn.Module():
            return "nn.Module"
    return "None" if value is None else type(value).__name__


def _all_of(values: Iterable[Any], dimensions: Iterator[str] | None) -> str:
    """The annotation that all these values have, in brackets; else ""."""
    some = {annotation_of(value, dimensions) for value in values}
    return f"[{some.pop()}]" if len(some) == 1 else ""


def family(dtype: torch.dtype) -> str:
    """Jaxtyping's name for a dtype: ``Float`` for all floats, ``Int`` for int64."""
    if dtype.is_floating_point:
        return "Float"
    if dtype in (torch.bool, torch.int64):
        return {torch.bool: "Bool", torch.int64: "Int"}[dtype]
    return str(dtype).removeprefix("torch.").replace("uint", "UInt").replace("int", "Int")


def said(spec: TensorSpec) -> str:
    """A tensor's kind and shape, as a statement writes them."""
    if spec.dimensions is None:
        return wanted(spec)
    return f"{spec}" if spec.kind == FLOAT else f"{spec.kind} {spec}"


def literal(value: Any, classes: str = "") -> str:
    """A value as Python text; float32 is rounded to the digits that it has.

    `classes` comes before the name of a dataclass: ``reference.`` in a test.
    """
    text = partial(literal, classes=classes)
    match value:
        case Tensor():
            plain = {torch.float32, torch.int64, torch.bool}
            dtype = "" if value.dtype in plain else f", dtype={value.dtype}"
            return f"torch.tensor({_listed(value.tolist(), value.dtype != torch.float64)}{dtype})"
        case np.ndarray():
            name = value.dtype.name
            dtype = "" if name in ("float64", "int64", "bool") else f", dtype=np.{name}"
            return f"np.array({_listed(value.tolist(), name != 'float64')}{dtype})"
        case tuple():
            inner = ", ".join(map(text, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case list():
            return f"[{', '.join(map(text, value))}]"
        case dict():
            return f"{{{', '.join(f'{text(k)}: {text(v)}' for k, v in value.items())}}}"
        case str():
            return quoted(value)
    if (record := fields_of(value)) is not None:
        fields = ", ".join(f"{name}={text(part)}" for name, part in record[1].items())
        return f"{classes}{record[0]}({fields})"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _listed(value: Any, rounded: bool) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_listed(part, rounded) for part in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    short = isinstance(value, float) and rounded
    return repr(round(float(f"{value:.7g}"), 6) if short else value)


def _numbered(shape: Sequence[int]) -> dict[str, Any]:
    return {f"axis_{axis}": size for axis, size in enumerate(shape)}


def _more(text: str) -> str:
    return f", {text}" if text else ""


def _cycled(values: Sequence[Any], shape: Sequence[int], start: int) -> Tensor:
    numbers = itertools.islice(itertools.cycle(values), start, start + math.prod(shape))
    dtype = torch.float64 if isinstance(values[0], float) else None
    return torch.tensor(list(numbers), dtype=dtype).reshape(*shape)
