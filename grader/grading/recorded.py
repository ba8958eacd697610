"""Recorded results of the references, which replace the references in a student's bundle.

A bundle has no solutions. A SQLite file holds the results of all calls that public checks make to
references: these are public rows of the sheet, see `grader.grading.rows`. `release.recording`
writes the file; `asking` finds the calls.

Recorded inputs are compared with a tolerance and not by a hash, since checks compute some inputs
with torch, which rounds differently on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract, dataclasses_in
from grader.course.course import Course
from grader.course.references import Reference, draw_weights
from grader.course.tensors import Make
from grader.course.tolerances import RECOGNISED
from grader.grading.rows import BundledRows, Key
from grader.grading.sheet import Entry
from grader.proxies.adoption import roles_at_zero
from grader.records.faults import CallError
from grader.wire import payload
from grader.wire.models import set_state, training_of


class Weight(msgspec.Struct, frozen=True):
    """A parameter of a reference's module."""

    path: str
    owner: str  # the class of the module that holds the parameter
    shape: tuple[int, ...]
    dtype: str


class Made(msgspec.Struct, frozen=True):
    """A reference's module that a check constructs, with the arguments of the construction."""

    arguments: list[wire.Input]
    weights: list[Weight]


class RecordedCall(msgspec.Struct, frozen=True):
    """A call of a reference in one case of a check."""

    arguments: list[wire.Input]
    result: wire.Value
    state: dict[str, wire.TensorData] = {}  # a module's weights during the call
    models: list[wire.ModelState] = []  # the models among the arguments after the call
    # The gradients of the check's backward pass, if there is one.
    gradients: list[wire.TensorData | None] = []  # of each tensor among the arguments
    learned: dict[str, wire.TensorData] = {}  # of the module's weights


class Asked(msgspec.Struct, frozen=True):
    """The calls that one case of a check makes to one reference, with the recorded results."""

    made: list[Made]
    calls: list[RecordedCall]


def asked_key(make: Make, exercise: str) -> Key:
    """The key of the `Asked` row for the case of a public check whose inputs `make` draws."""
    test, _, label = make.case.partition("[")
    return Key("asked", exercise, f"public {test}", label.removesuffix("]"))


class Recorded:
    """An `Oracle` that reads the references' results from a bundle."""

    def __init__(self, course: Course) -> None:
        self.rows = BundledRows(course.sheet)
        self._contracts: dict[str, Contract] = {}
        self._asked: dict[Key, Asked] = {}
        for name in course.exercises:
            entry = self.rows.get(Key("exercise", name), Entry)
            if entry is None:
                raise CallError(
                    f"{course.recorded} was made for another course than {course.folder}"
                )
            self._contracts[name] = entry.contract

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """See `Oracle`."""
        return self._contracts

    def reference(self, make: Make) -> Reference:
        """See `Oracle`."""
        return RecordedReference(self, make)

    def asked(self, exercise: str, make: Make) -> Asked:
        """See `Recording`."""
        key = asked_key(make, exercise)
        if key not in self._asked:
            self._asked[key] = self.rows.get(key, Asked) or Asked([], [])
        return self._asked[key]


class Recording(Protocol):
    """The recorded calls to references, by case."""

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """The contract of each exercise."""

    def asked(self, exercise: str, make: Make) -> Asked:
        """The recorded calls to a reference in the case whose inputs `make` draws."""


class RecordedReference:
    """A `Reference` that returns recorded results."""

    def __init__(self, recorded: Recording, make: Make) -> None:
        self._recorded = recorded
        self._make = make
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._recorded.contracts:
            if any(name in dataclasses_in(one) for one in self._recorded.contracts.values()):
                return lambda **fields: payload.Record(name, fields)
            raise AttributeError(f"the course has no exercise {name!r}")
        if self._recorded.contracts[name].kind == "module":
            return lambda *arguments: self._construct(name, arguments)
        return lambda *arguments: _result(self._recorded, name, self._make, arguments)

    def _construct(self, name: str, arguments: Sequence[Any]) -> nn.Module:
        packed = list(map(payload.pack_input, arguments))
        for made in self._recorded.asked(name, self._make).made:
            if made.arguments == packed:
                module = _RecordedModule(self._recorded, name, self._make, made.weights)
                number, self._made = self._made, self._made + 1
                draw_weights(module, self._make, f"{name} {number}")
                return module
        raise _unknown(name, self._make)


class _RecordedModule(nn.Module):
    """A reference's module: it has the parameters, and returns recorded results."""

    def __init__(
        self, recorded: Recording, name: str, make: Make, weights: Sequence[Weight]
    ) -> None:
        super().__init__()
        self._known = (recorded, name, make)
        for weight in weights:
            holder: nn.Module = self
            *steps, last = weight.path.split(".")
            for step in steps:
                if step not in holder._modules:
                    # `grader.proxies.adoption` reads the layout of a matrix from this class's name.
                    kind = weight.owner if step == steps[-1] else "Module"
                    holder.add_module(step, type(kind, (nn.Module,), {})())
                holder = holder.get_submodule(step)
            empty = torch.empty(weight.shape, dtype=payload.DTYPES[weight.dtype])
            holder.register_parameter(last, nn.Parameter(empty))

    def __deepcopy__(self, memo: dict[int, Any]) -> _RecordedModule:
        recorded, name, make = self._known
        weights = [
            Weight(
                path,
                type(self.get_submodule(path.rpartition(".")[0])).__name__,
                tuple(p.shape),
                payload.NAMES[p.dtype],
            )
            for path, p in self.named_parameters()
        ]
        copied = _RecordedModule(recorded, name, make, weights)
        copied.load_state_dict(self.state_dict())
        return copied.train(self.training)

    def forward(self, *arguments: Any) -> Any:
        """The recorded result for these arguments and the module's current weights."""
        return _result(*self._known, arguments, self)


def _result(
    recorded: Recording,
    name: str,
    make: Make,
    arguments: Sequence[Any],
    module: nn.Module | None = None,
) -> Any:
    known = False
    for call in recorded.asked(name, make).calls:
        if not _alike([payload.unpack(value) for value in call.arguments], list(arguments)):
            continue
        known = True
        state = {path: payload.unpack_tensor(value) for path, value in call.state.items()}
        if module is None or _alike(state, dict(module.state_dict())):
            return _answer(call, arguments, module)
    if not known or module is None:
        raise _unknown(name, make)
    lacking = " and ".join(roles_at_zero(module)) or "some of its weights"
    raise AssertionError(
        f"no place was found in your module for {lacking}: does it have a parameter for each?"
    )


def _answer(call: RecordedCall, arguments: Sequence[Any], module: nn.Module | None) -> Any:
    """The recorded result; a backward pass from it gives the recorded gradients.

    The models among the arguments get the weights and modes that the call left in them.
    """
    models = (value for value in arguments if isinstance(value, nn.Module))
    for model, after in zip(models, call.models, strict=False):
        weights = {path: payload.unpack_tensor(data) for path, data in after.state.items()}
        set_state(model, weights, after.training)
    weights = dict(module.named_parameters()) if module is not None else {}
    brought = [
        *zip(payload.tensors_of(arguments), call.gradients, strict=False),
        *((weights[path], data) for path, data in call.learned.items() if path in weights),
    ]
    into = [
        (leaf, payload.unpack_tensor(data))
        for leaf, data in brought
        if data is not None and leaf.requires_grad
    ]
    if not into or not torch.is_grad_enabled():
        return payload.unpack(call.result)
    leaves, gradients = zip(*into, strict=True)
    results = list(payload.tensors_of(payload.unpack(call.result)))
    floating = [result for result in results if result.is_floating_point()]
    joined = iter(_Brought.apply(gradients, len(floating), *floating, *leaves))  # type: ignore[no-untyped-call]
    whole = iter([next(joined) if one.is_floating_point() else one for one in results])
    return payload.unpack(call.result, lambda _: next(whole))


class _Brought(torch.autograd.Function):
    """Returns recorded results; a backward pass from them gives recorded gradients."""

    @staticmethod
    def forward(ctx: Any, gradients: Sequence[Tensor], count: int, *tensors: Tensor) -> Any:
        ctx.gradients, ctx.count = gradients, count
        return tuple(result.clone() for result in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        return None, None, *[None] * ctx.count, *ctx.gradients


def _unknown(name: str, make: Make) -> CallError:
    return CallError(
        f"public {make.case} asks the reference of {name} for something that is not recorded: "
        "were the checks changed?"
    )


def _alike(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal, up to rounding; they may be nested tuples, lists or dicts."""
    if isinstance(ours, np.ndarray):
        arrays = isinstance(theirs, np.ndarray | np.generic)
        return arrays and _alike(*(torch.from_numpy(np.array(one)) for one in (ours, theirs)))
    if isinstance(ours, Tensor):
        return (
            isinstance(theirs, Tensor)
            and (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            and RECOGNISED.holds(ours.double(), theirs.detach().double())
        )
    if isinstance(ours, nn.Module):
        return (
            isinstance(theirs, nn.Module)
            and training_of(ours) == training_of(theirs)
            and _alike(dict(ours.state_dict()), dict(theirs.state_dict()))
        )
    if isinstance(ours, (list, tuple)):
        return (
            isinstance(theirs, (list, tuple))
            and len(ours) == len(theirs)
            and all(map(_alike, ours, theirs))
        )
    if isinstance(ours, dict):
        return (
            isinstance(theirs, dict)
            and ours.keys() == theirs.keys()
            and all(_alike(ours[key], theirs[key]) for key in ours)
        )
    if (record := payload.fields_of(ours)) is not None:
        got = payload.fields_of(theirs)
        return got is not None and got[0] == record[0] and _alike(record[1], got[1])
    if isinstance(ours, float) and isinstance(theirs, float):
        return RECOGNISED.holds(torch.tensor(ours), torch.tensor(theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)
