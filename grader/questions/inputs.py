"""The inputs on which an answer runs: those of its public checks, and others made from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import torch
from torch import Tensor

from grader import wire
from grader.course.contract import Contract, Signature
from grader.proxies.facts import Example
from grader.questions.texts import in_python
from grader.wire import payload

MOST_INPUTS = 8
MOST_OTHERS = 40
MOST_NUMBERS = 400  # of the tensors of an input
MOST_EDGES = 2  # inputs of checks from which edge cases are made
FEW_NUMBERS = 16  # of the tensors of an input whose result a person can compute
FEW_ARGUMENTS = 4
# What an input beside those of the checks shows. `ROUND` is no edge case: see `_round`.
LARGE, ZERO, DOUBLE, SINGLE, MASKS, TRAINING, FRESH, ROUND = (
    "large numbers", "zeros", "float64", "size one", "masks", "training mode", "own weights",
    "round numbers",
)  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
HUGE = 1000.0
USUAL = 20.0  # larger numbers are named in a question
PATTERNS: Sequence[Sequence[float]] = (
    (1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 2.0), (2.0, 1.0, 3.0, 0.0, 4.0),
)  # fmt: skip


@dataclass(frozen=True)
class Input:
    """The calls of a check to an answer: to its class, if it is one, and to the function."""

    call: wire.Invoke
    made: wire.Invoke | None = None
    only: str = ""  # for an input beside those of the checks: what it shows

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments of the call."""
        return list(payload.tensors_of([payload.unpack(value) for value in self.call.arguments]))

    @property
    def as_example(self) -> Example | None:
        """The call as one that facts can be about; None for one with arguments by name."""
        if self.call.keywords or (self.made and self.made.keywords):
            return None
        return Example(self.made.arguments if self.made else [], self.call.arguments)

    @property
    def with_other_masks(self) -> Input:
        """The call with the opposite of each mask."""
        return replace(self, call=_changed(self.call, torch.logical_not, ["bool"]))

    @property
    def is_readable(self) -> bool:
        """Whether the call can be written in a sentence, for a person to compute its result."""
        tensors = self.tensors
        floats = any(tensor.is_floating_point() for tensor in tensors)
        return (
            self.made is None
            and (self.only == ROUND or (not self.only and not floats))
            and len(self.call.arguments) <= FEW_ARGUMENTS
            and sum(tensor.numel() for tensor in tensors) <= FEW_NUMBERS
            and all(in_python(value) for value in self.call.arguments)
        )

    @property
    def is_worded(self) -> bool:
        """Whether a sentence can tell all sizes; not those of a model, for instance."""
        made = self.made.arguments if self.made else []
        plain = (type(None), bool, int, float, str, wire.TensorData, wire.Items)
        return all(isinstance(value, plain) for value in (*made, *self.call.arguments))

    @property
    def is_clear(self) -> bool:
        """Whether all sizes differ, so that a shape shows where each size comes from."""
        tensors = self.tensors
        if not tensors or any(1 in tensor.shape for tensor in tensors):
            return False
        made = self.made.arguments if self.made else []
        first = [*tensors[0].shape]
        new = [value for value in made if type(value) is int and value not in first]
        return len({*first}) == len(first) and len({*new}) == len(new)


def inputs_of(name: str, calls: Sequence[wire.Call]) -> tuple[list[Input], list[Input]]:
    """Inputs for a study, and the other inputs of the checks.

    Those of a study are some of the checks, those with distinct sizes first, then edge cases and
    round numbers.
    """
    made: dict[int, wire.Invoke] = {}
    found: list[Input] = []
    for call in calls:
        if isinstance(call, wire.Seed):
            made.clear()
        if not isinstance(call, wire.Invoke) or call.result == wire.TRIAL:
            continue
        plain = msgspec.structs.replace(
            call, leaves=[], keep_graph=False, observe=False, altered=()
        )
        if call.construct and call.target == name:
            made[call.result] = plain
        elif call.target == name:
            found.append(Input(plain))
        elif isinstance(call.target, int) and call.target in made:
            found.append(Input(plain, made[call.target]))
    distinct: dict[bytes, Input] = {}
    for one in found:
        if sum(tensor.numel() for tensor in one.tensors) <= MOST_NUMBERS:
            key = msgspec.msgpack.encode(
                [one.made.arguments if one.made else [], one.call.arguments]
            )
            distinct.setdefault(key, one)
    ranked = sorted(distinct.values(), key=_rank, reverse=True)
    inputs = ranked[:MOST_INPUTS]
    edges = [edge for one in inputs[:MOST_EDGES] for edge in _edges(one)]
    return [*inputs, *edges, *_round(inputs)], ranked[MOST_INPUTS:][:MOST_OTHERS]


def _rank(one: Input) -> tuple[bool, int, int, int]:
    """Distinct sizes above 1 first, then few that a module's numbers repeat, then few numbers.

    The last size repeats a number of the module by right.
    """
    sizes = [size for tensor in one.tensors[:1] for size in tensor.shape]
    clear = len(set(sizes)) == len(sizes) and 1 not in sizes and bool(sizes)
    made = [value for value in (one.made.arguments if one.made else []) if type(value) is int]
    repeated = len(made) - len({*made}) + sum(value in sizes[:-1] for value in made)
    return clear, -repeated, len(sizes), -sum(tensor.numel() for tensor in one.tensors)


def _edges(one: Input) -> Iterator[Input]:
    """Inputs on which a change may show its effect, although it shows none on those of checks."""
    tensors = [tensor for tensor in one.tensors if not tensor.dtype.is_complex]
    floats = any(tensor.is_floating_point() for tensor in tensors)
    if floats:
        yield _with(one, LARGE, lambda tensor: tensor * HUGE)
        yield _with(one, ZERO, torch.zeros_like)
    if floats and one.made is None:
        yield _with(one, DOUBLE, lambda tensor: tensor.double())
    for size in sorted({size for tensor in tensors[:1] for size in tensor.shape} - {1}):
        yield replace(one, call=_shortened(one.call, size), only=SINGLE)
    if any(tensor.dtype == torch.bool for tensor in tensors):
        yield replace(one, call=_masked(one.call), only=MASKS)
    if one.made is not None:
        # A rate of 0.0 would hide dropout.
        arguments = [0.5 if value == 0.0 and type(value) is float else value
                     for value in one.made.arguments]  # fmt: skip
        made = msgspec.structs.replace(one.made, arguments=arguments)
        yield replace(one, made=made, only=TRAINING)
        yield replace(one, only=FRESH)


def _round(inputs: Sequence[Input]) -> Iterator[Input]:
    """Inputs with round numbers, of the sizes of the first input that has few numbers."""
    whole = [one for one in inputs if one.made is None]
    cut = [replace(one, call=_changed(one.call, _corner)) for one in whole]
    for one in (*whole, *cut):
        numbers = sum(tensor.numel() for tensor in one.tensors)
        floats = any(tensor.is_floating_point() for tensor in one.tensors)
        if floats and 1 < numbers <= FEW_NUMBERS:
            for pattern in PATTERNS:
                yield _with(one, ROUND, _Filling(pattern))
            return


def _corner(tensor: Tensor) -> Tensor:
    """The first two rows and columns of the first matrix of a tensor."""
    return tensor[
        tuple(slice(0, 2 if axis >= tensor.dim() - 2 else 1) for axis in range(tensor.dim()))
    ]


class _Filling:
    """Puts a pattern's numbers in place of a tensor's; each tensor begins at another number."""

    def __init__(self, pattern: Sequence[float]) -> None:
        self._pattern = pattern
        self._begun = 0

    def __call__(self, tensor: Tensor) -> Tensor:
        columns = tensor.shape[-1] if tensor.dim() else 1
        # Rows as long as the pattern would all be the same.
        shift = int(columns % len(self._pattern) == 0)
        at = [
            (n + shift * (n // columns) + self._begun) % len(self._pattern)
            for n in range(tensor.numel())
        ]
        self._begun += 1
        return torch.tensor([self._pattern[n] for n in at], dtype=tensor.dtype).reshape(
            tensor.shape
        )


def _with(one: Input, only: str, change: Callable[[Tensor], Tensor]) -> Input:
    """The input with its tensors of floats changed."""
    return replace(one, call=_changed(one.call, change, FLOATS), only=only)


def _masked(call: wire.Invoke) -> wire.Invoke:
    """The call with masks that are the same everywhere."""
    return _changed(call, torch.zeros_like, ["bool"])


def _shortened(call: wire.Invoke, size: int) -> wire.Invoke:
    """The call with the first position alone of each axis of this size."""

    def shorten(tensor: Tensor) -> Tensor:
        return tensor[tuple(slice(0, 1 if n == size else None) for n in tensor.shape)]

    return _changed(call, shorten)


def _changed(
    call: wire.Invoke, change: Callable[[Tensor], Tensor], dtypes: Collection[str] = ()
) -> wire.Invoke:
    """The call with other tensors as arguments, or only with others for those of some dtypes."""
    arguments = [
        payload.pack_tensor(change(payload.unpack_tensor(value)))
        if isinstance(value, wire.TensorData)
        and not value.array
        and (not dtypes or value.dtype in dtypes)
        else value
        for value in call.arguments
    ]
    return msgspec.structs.replace(call, arguments=arguments)


# --- in words ------------------------------------------------------------------------------------


def shapes_in_words(contract: Contract, one: Input) -> str:
    """The arguments of a call, such as "`x` has the shape (2, 5, 3), `context_length` is 8"."""
    parts: list[str] = []
    for name, value in _named(contract, one):
        scalar = value is None or isinstance(value, bool | int | float | str)
        written = repr(value) if scalar else in_python(value)
        whole = not isinstance(value, wire.TensorData) or value.dtype in ("bool", "int64")
        if written and whole:  # positions and masks decide much
            parts.append(f"`{name}` is {written}")
        elif isinstance(value, wire.TensorData):
            dtype = "" if value.dtype == "float32" else f" and the dtype {value.dtype}"
            parts.append(f"`{name}` has the shape {value.shape}{dtype}{_extremes(value)}")
        elif isinstance(value, wire.Items):
            shapes = [part.shape for part in value.items if isinstance(part, wire.TensorData)]
            if shapes:
                parts.append(f"`{name}` holds tensors of the shapes {', '.join(map(str, shapes))}")
    parts += [f"`{name}` keeps its default" for name in _left_out(contract, one)]
    return ", ".join(parts)


def _extremes(value: wire.TensorData) -> str:
    """Words on a tensor's very large and infinite numbers, or on zeros, which decide much."""
    numbers = payload.unpack(value)
    if not isinstance(numbers, Tensor) or not numbers.is_floating_point():
        return ""
    if not numbers.any():
        return ", with zeros alone"
    finite = numbers[numbers.isfinite()].abs()
    words = f", with numbers up to {finite.max():,.0f}" if bool((finite > USUAL).any()) else ""
    return words + (", some of which are infinite" if finite.numel() < numbers.numel() else "")


def values_in_words(contract: Contract, one: Input) -> str:
    """The arguments of a readable call, such as "`x` = [1, 0] (float32), `p` = 0.5"."""
    parts = []
    for name, value in _named(contract, one):
        of_floats = isinstance(value, wire.TensorData) and value.dtype not in ("bool", "int64")
        dtype = f" ({value.dtype})" if of_floats else ""
        parts.append(f"`{name}` = {in_python(value)}{dtype}")
    parts += [f"`{name}` keeps its default" for name in _left_out(contract, one)]
    return ", ".join(parts)


def _left_out(contract: Contract, one: Input) -> Iterator[str]:
    """The parameters that get no argument."""
    for signature, call in _calls(contract, one):
        if not call.keywords:
            yield from (rest.name for rest in signature.parameters[len(call.arguments) :])


def _named(contract: Contract, one: Input) -> Iterator[tuple[str, Any]]:
    for signature, call in _calls(contract, one):
        names = call.keywords or [parameter.name for parameter in signature.parameters]
        yield from zip(names, call.arguments, strict=False)


def _calls(contract: Contract, one: Input) -> Iterator[tuple[Signature, wire.Invoke]]:
    if one.made is not None:
        yield contract.call, one.made
    yield contract.called, one.call
