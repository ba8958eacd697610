"""Finds facts about an answer: how its result changes with its input.

The inputs of a public check are changed in small ways, and the results compared. Does the result
depend on an argument, or on future positions? Does it sum to one? A fact is true or false of an
answer, whether the answer is right or wrong. A fact is left out if the results do not decide it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor

from grader import wire
from grader.course.contract import ContractBroken
from grader.course.references import WEIGHT_SCALE
from grader.course.tensors import Make
from grader.course.tolerances import UNMOVED
from grader.proxies.calls import StudentRaised
from grader.proxies.remote import RemoteClass, RemoteFunction, RemoteModule, Student
from grader.wire import payload

MOST_POSITIONS = 4  # most positions to change along an axis, one by one; half of them at each end
MOST_NUMBERS = 1_000  # most elements that the arguments of an example may have together
CLEAR = 1e-2  # a smaller change of the result is unclear, unless it is mere rounding
LIFT = 1.5  # the constant that is added to an argument
STEP = 1e-2  # how far an argument is moved, in both directions, to measure a slope
# Slopes are equal up to the first relative difference, and different from the second on.
SAME_SLOPE, OTHER_SLOPE = 0.02, 0.1

Kind = Literal[
    "repeats",  # the same call gives the same result
    "repeats in training",  # in training mode, the same call gives the same result
    "heeds",  # the result depends on an argument
    "reaches",  # changing an argument at a position changes the result at a position
    "sums",  # the result sums to one along an axis
    "bounded",  # the result has no negative number
    "shift",  # adding a constant to an argument does not change the result
    "lift",  # adding a constant to an argument adds the same constant to the result
    "scale",  # doubling an argument does not change the result
    "double",  # doubling an argument doubles the result
    "alike",  # if an argument's slices along an axis are equal, so are the result's slices
    "gradient",  # a gradient reaches an argument
    "slope",  # the gradient of an argument equals the measured slope of the result
    "weights",  # a gradient reaches every parameter
]


class Fact(msgspec.Struct, frozen=True, order=True):
    """A statement that is true or false of an answer.

    `argument` is the number of an argument, from 0. `at` holds axes of the argument and the result,
    counted from the end (-1 is the last), and positions on these axes.
    """

    kind: Kind
    argument: int = -1
    at: tuple[int, ...] = ()

    @property
    def subject(self) -> tuple[Kind, int, tuple[int, ...]]:
        """The fact without positions: in `at` of "reaches", each follows its axis."""
        return self.kind, self.argument, self.at[::2] if self.kind == "reaches" else self.at


Facts = dict[Fact, bool]


class Example(msgspec.Struct, frozen=True):
    """The arguments that a check passes to a function, or to a class and then to its module."""

    made_with: list[wire.Input]
    arguments: list[wire.Input]
    test: str = ""  # the key of the check
    case: str = ""  # the check's case, in words


# --- examples ------------------------------------------------------------------------------------


def examples(name: str, calls: Iterable[wire.Call]) -> list[Example]:
    """Among the calls of a test's case, find those to the exercise `name` that suit as examples."""
    made: dict[int, list[wire.Input]] = {}
    found: list[Example] = []
    for call in calls:
        if not isinstance(call, wire.Invoke):
            continue
        if call.construct:
            if call.target == name:
                made[call.result] = call.arguments
        elif call.target == name:
            found.append(Example([], call.arguments))
        elif isinstance(call.target, int) and call.target in made:
            found.append(Example(made[call.target], call.arguments))
    return list(filter(_is_fit, found))


def most_informative(found: Sequence[Example]) -> Example | None:
    """The example that can show the most facts; None if there is none."""
    return max(found, key=_value, default=None)


def uncontradicted(found: Facts, other: Facts) -> Facts:
    """The facts that other facts, about another answer or example, do not contradict.

    One position that contradicts a fact leaves nothing of those on the other positions.
    """
    wrong = {fact.subject for fact, holds in found.items() if other.get(fact, holds) is not holds}
    return {fact: holds for fact, holds in found.items() if fact.subject not in wrong}


def _is_fit(example: Example) -> bool:
    unfit = (wire.TableModelData, wire.ModelData, wire.Batches)
    if any(isinstance(value, unfit) for value in example.arguments):
        return False  # models and generators are not changed in small ways
    tensors = list(payload.tensors_of([payload.unpack(value) for value in example.arguments]))
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    return (
        bool(floating)
        and all(tensor.device.type == "cpu" for tensor in tensors)
        and sum(tensor.numel() for tensor in tensors) <= MOST_NUMBERS
        and all(tensor.dtype == torch.float32 for tensor in floating)
        and all(bool((tensor.abs() < 20).all()) for tensor in floating)
        # With small integers, two results may be equal by chance.
        and all(2 * len(set(tensor.flatten().tolist())) > tensor.numel() for tensor in floating)
        and any(bool((tensor != tensor.round()).any()) for tensor in floating)
    )


def _value(example: Example) -> tuple[int, int, int]:
    """Rank an example: by its number of partial masks, then of short axes, then by few elements.

    A partial mask hides some positions, but not all.
    """
    values = [payload.unpack(value) for value in example.arguments]
    masks = [v for v in values if isinstance(v, Tensor) and v.dtype == torch.bool]
    mixed = sum(bool(mask.any()) and not bool(mask.all()) for mask in masks)
    tensors = list(payload.tensors_of(values))
    axes = sum(2 <= size <= 6 for tensor in tensors for size in tensor.shape)
    return mixed, axes, -sum(tensor.numel() for tensor in tensors)


# --- facts ---------------------------------------------------------------------------------------


Key = tuple[str | int, ...]  # how an example was changed: the kind, the argument, the place
Variation = Mapping[int, Tensor]  # replacements of arguments, by number
Replies = Mapping[Key, Tensor | None]


@dataclass(frozen=True)
class _Answer:
    """An answer, from a student or the reference, and the example on which it is called."""

    call: RemoteFunction | RemoteModule
    arguments: list[Any]
    make: Make

    def results(self, variations: Mapping[Key, Variation]) -> Replies:
        """The first tensor of the result for each variation, or None; sends all calls together."""
        calls = [
            [_copied(changes.get(n, value)) for n, value in enumerate(self.arguments)]
            for changes in variations.values()
        ]
        try:
            found = map(_first_tensor, self.call.each(calls))
        except (StudentRaised, ContractBroken):  # ends the message: make each call alone
            found = map(self._alone, calls)
        return dict(zip(variations, found, strict=True))

    def _alone(self, arguments: Sequence[Any]) -> Tensor | None:
        try:
            return _first_tensor(self.call(*arguments))
        except (StudentRaised, ContractBroken):
            return None


def _first_tensor(result: Any) -> Tensor | None:
    first = next(iter(payload.tensors_of([result])), None)
    if first is None or not first.is_floating_point():
        return None
    # An empty tensor, and a tensor on meta, have no values to compare.
    return first.detach() if first.numel() and first.device.type != "meta" else None


def facts(student: Student, name: str, example: Example, make: Make) -> Facts:
    """Find the facts about the exercise `name` on an example; `make` draws a module's weights."""
    arguments = [payload.unpack(value) for value in example.arguments]
    definition = getattr(student, name)
    try:
        call = _made(definition, example, make)
    except (StudentRaised, ContractBroken):
        return {}
    answer = _Answer(call, arguments, make)
    results = answer.results(dict(_variations(arguments, make)))
    first, again = results["as it is",], results["again",]
    if first is None or again is None or not bool(first.isfinite().all()) or not first.ndim:
        return {}
    repeats = torch.equal(first, again)
    found: Facts = {Fact("repeats"): repeats}
    if not repeats:
        return found
    if not example.made_with:  # left out for a module: its weights decide these facts
        found |= _of_result(first)
    for number, value in enumerate(arguments):
        if isinstance(value, Tensor) and value.numel():
            found |= _of_argument(results, first, number, value)
    found |= _of_gradients(answer, first, results)
    if isinstance(call, RemoteModule):  # last, since training mode may change a module's state
        found |= _in_training(answer, call)
    return found


def _variations(arguments: Sequence[Any], make: Make) -> Iterator[tuple[Key, Variation]]:
    """Yield the example unchanged, and changed in many ways."""
    yield ("as it is",), {}
    yield ("again",), {}
    for number, value in enumerate(arguments):
        if not isinstance(value, Tensor) or not value.numel():
            continue
        if value.dtype == torch.bool:
            yield ("other", number), {number: _other_mask(value)}
        if not value.is_floating_point():
            continue
        yield ("other", number), {number: _elsewhere(value, make)}
        yield ("lifted", number), {number: value + LIFT}
        yield ("doubled", number), {number: value * 2}
        for way in (STEP, -STEP, STEP / 2, -STEP / 2):
            yield ("moved", number, str(way)), {number: value + way * _towards(value, make)}
        for axis in range(-value.ndim, 0):
            size = value.shape[axis]
            if size < 2:
                continue
            alike = value.narrow(axis, 0, 1).expand(value.shape).contiguous()
            yield ("alike", number, axis), {number: alike}
            for position in _some(size):
                changed = value.clone()
                part = changed.select(axis, position)
                part.copy_(_elsewhere(part, make))
                yield ("at", number, axis, position), {number: changed}


def _in_training(answer: _Answer, module: RemoteModule) -> Facts:
    module.train()
    one, other = answer.results({("one",): {}, ("other",): {}}).values()
    module.eval()
    if one is None or other is None:
        return {}
    return {Fact("repeats in training"): torch.equal(one, other)}


def _made(
    definition: RemoteFunction | RemoteClass, example: Example, make: Make
) -> RemoteFunction | RemoteModule:
    if isinstance(definition, RemoteFunction):
        return definition
    module = definition(*[payload.unpack(value) for value in example.made_with])
    if module.is_lazy:
        module.call_first([payload.unpack(value) for value in example.arguments])
    module.eval()
    floating = {p: t for p, t in module.parameters().items() if t.is_floating_point()}
    module.assign(
        {
            path: make.normal_like(t.detach(), WEIGHT_SCALE, name=path)
            for path, t in floating.items()
        }
    )
    return module


def _of_result(result: Tensor) -> Facts:
    found: Facts = {Fact("bounded"): bool((result > -UNMOVED.atol).all())}
    for axis in range(-result.ndim, 0):
        sums = result.sum(dim=axis)
        if result.shape[axis] > 1 and (holds := _same(sums, torch.ones_like(sums))) is not None:
            found[Fact("sums", at=(axis,))] = holds
    return found


def _of_argument(results: Replies, first: Tensor, number: int, value: Tensor) -> Facts:
    found: Facts = {}

    def note(fact: Fact, holds: bool | None) -> None:
        if holds is not None:
            found[fact] = holds

    if value.dtype != torch.bool and not value.is_floating_point():
        return found
    same = _same(first, results["other", number])
    note(Fact("heeds", number), None if same is None else not same)
    if value.dtype == torch.bool:
        return found
    lifted, doubled = results["lifted", number], results["doubled", number]
    note(Fact("shift", number), _same(first, lifted))
    note(Fact("lift", number), _same(first + LIFT, lifted))
    note(Fact("scale", number), _same(first, doubled))
    note(Fact("double", number), _same(first * 2, doubled))
    for axis in range(-value.ndim, 0):
        size = value.shape[axis]
        if size < 2:
            continue
        alike = results["alike", number, axis]
        for over in range(-first.ndim, 0):
            if alike is not None and alike.shape == first.shape and first.shape[over] == size:
                note(Fact("alike", number, (axis, over)), _same(alike, alike.roll(1, over)))
        for position in _some(size):
            for over, to, moved in _moved(first, results["at", number, axis, position]):
                note(Fact("reaches", number, (axis, position, over, to)), moved)
    return found


def _of_gradients(answer: _Answer, first: Tensor, results: Replies) -> Facts:
    leaves = [
        value.clone().requires_grad_()
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for value in answer.arguments
    ]
    mixed = answer.make.normal_like(first, name="mixed")
    try:
        result = answer.call(*leaves)
        again = next(iter(payload.tensors_of([result])))
        if again.requires_grad and again.shape == first.shape and again.device == first.device:
            torch.autograd.backward((again * mixed).sum())
    except (StudentRaised, ContractBroken, StopIteration):
        return {}
    found: Facts = {}
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.is_floating_point():
            found[Fact("gradient", number)] = leaf.grad is not None
            if leaf.grad is not None:
                found |= _of_slope(answer, mixed, number, leaf.grad, results)
    if isinstance(answer.call, RemoteModule):
        mirrors = answer.call.parameters().values()
        found[Fact("weights")] = all(m.grad is not None for m in mirrors if m.requires_grad)
    return found


def _of_slope(
    answer: _Answer, mixed: Tensor, number: int, gradient: Tensor, results: Replies
) -> Facts:
    """Whether a gradient agrees with the measured slope of the result."""
    towards = _towards(answer.arguments[number], answer.make)
    measured = []
    for step in (STEP, STEP / 2):  # the two slopes differ if the result is curved or jumps
        up, down = (results["moved", number, str(way)] for way in (step, -step))
        if up is None or down is None or not up.shape == down.shape == mixed.shape:
            return {}
        measured.append(float(((up - down) * mixed).sum()) / (2 * step))
    claimed = float((gradient * towards).sum())
    size = max(abs(claimed), *map(abs, measured))
    gap, unsure = abs(measured[1] - claimed), abs(measured[1] - measured[0])
    if not math.isfinite(gap + unsure) or size < CLEAR or unsure > SAME_SLOPE * size:
        return {}
    if SAME_SLOPE * size < gap < OTHER_SLOPE * size:
        return {}
    return {Fact("slope", number): gap <= SAME_SLOPE * size}


def _elsewhere(value: Tensor, make: Make) -> Tensor:
    """Draw other numbers of about the same size, all positive if `value` has no negative number."""
    drawn = make.normal_like(value, max(float(value.abs().mean()), 0.5), name="elsewhere")
    return drawn.abs() + 0.1 if bool((value >= 0).all()) else drawn


def _other_mask(mask: Tensor) -> Tensor:
    """The opposite mask; a shifted mask if the opposite would hide a whole row, which gives NaN."""
    if mask.ndim and bool((mask.all(-1) | ~mask.any(-1)).any()):
        shifted = mask.roll(1, -1)
        return ~mask if torch.equal(shifted, mask) else shifted
    return ~mask


def _towards(value: Tensor, make: Make) -> Tensor:
    """The direction in which an argument is changed to measure a slope."""
    return make.normal_like(value, name="towards")


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _some(size: int) -> list[int]:
    """All positions of a short axis, or two at each end of a long axis."""
    if size <= MOST_POSITIONS:
        return list(range(size))
    return [0, 1, size - 2, size - 1]


def _moved(first: Tensor, after: Tensor | None) -> Iterator[tuple[int, int, bool | None]]:
    """For each axis and position: whether the result changed there; None if unclear."""
    if after is None or after.shape != first.shape:
        return
    off = (first - after).abs()
    off[first.isnan() & after.isnan()] = 0.0
    near = (first == after) | (off <= UNMOVED.atol + UNMOVED.rtol * after.abs()) & off.isfinite()
    for over in range(-first.ndim, 0):
        others = [axis for axis in range(-first.ndim, 0) if axis != over]
        furthest = off.amax(others) if others else off
        still = ~(~near).any(others) if others else near
        for to in _some(first.shape[over]):
            far = float(furthest[to])
            unclear = not still[to] and not far >= CLEAR
            yield over, to, None if unclear else not bool(still[to])


def _same(one: Tensor, other: Tensor | None) -> bool | None:
    """Whether two results are equal; None if their difference is unclear (see `CLEAR`)."""
    if other is None or one.shape != other.shape:
        return None
    if UNMOVED.holds(one, other):
        return True
    off = (one - other).abs()
    return None if not bool(off.isfinite().all()) or float(off.max()) < CLEAR else False
