"""What a student's bundle has instead of solutions: the results of the public checks, recorded.

Per unit a JSON file and a safetensors file. The JSON says which calls of the references a check
makes and what came back, how each known mistake ends in each check, and what the mistake is called;
a tensor in it is a digest, under which the safetensors file holds the tensor itself. `recording`
writes all this; here it is read, and answers in place of the references.

Inputs are compared with a tolerance, and not by a hash: checks compute some of them with torch,
whose last digits differ from machine to machine.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import safetensors
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract
from grader.course.course import Course
from grader.course.references import Reference, draw_weights
from grader.course.tensors import Make
from grader.course.tolerances import RECOGNISED
from grader.grading.diagnosis import NOTHING, Given
from grader.mistakes import Variant
from grader.proxies.adoption import roles_at_zero
from grader.proxies.calls import Heard
from grader.proxies.facts import Example, Fact
from grader.records.faults import CallError
from grader.wire import payload
from grader.wire.models import TableModel

SCHEMA = 2
PASSED = -1  # in place of the number of what was heard


class Head(msgspec.Struct, frozen=True):
    """``course.json``: what is asked of every exercise."""

    schema: int
    course: str
    contracts: dict[str, Contract]
    tests: dict[str, str]  # the unit of each test, by the test's key


class Weight(msgspec.Struct, frozen=True):
    """A parameter of a reference's module."""

    path: str
    owner: str  # the class of the module that holds it
    shape: tuple[int, ...]
    dtype: str


class Made(msgspec.Struct, frozen=True):
    """A module that a check makes of a reference: its arguments, and its parameters."""

    arguments: list[wire.Input]
    weights: list[Weight]


class RecordedCall(msgspec.Struct, frozen=True):
    """A call of a reference in one case of a check."""

    arguments: list[wire.Input]
    result: wire.Value
    state: dict[str, wire.TensorData] = {}  # a module's weights as they were
    # What the check's backward brought to the tensors among the arguments, and to weights by path.
    gradients: list[wire.TensorData | None] = []
    learned: dict[str, wire.TensorData] = {}


def with_tensors(call: RecordedCall, other: Callable[[Any], Any]) -> RecordedCall:
    """The same call, with every value in it replaced."""
    return RecordedCall(
        [other(value) for value in call.arguments],
        other(call.result),
        {path: other(value) for path, value in call.state.items()},
        [None if value is None else other(value) for value in call.gradients],
        {path: other(value) for path, value in call.learned.items()},
    )


class NamedMistake(msgspec.Struct, frozen=True):
    """A mistake, or a pair of two, without its text."""

    slug: str
    title: str
    hint: str
    pair: bool = False
    same_as: tuple[str, ...] = ()


class Behaviour(msgspec.Struct, frozen=True):
    """What is true of all right answers, on an example."""

    example: Example
    facts: list[tuple[Fact, bool]]


def on_example(behaviour: Behaviour, replaced: Callable[[wire.Input], wire.Input]) -> Behaviour:
    """The same, with other values in the example's place."""
    made_with = list(map(replaced, behaviour.example.made_with))
    arguments = list(map(replaced, behaviour.example.arguments))
    return Behaviour(Example(made_with, arguments), behaviour.facts)


class UnitSheet(msgspec.Struct, frozen=True):
    """``U.json``: the recordings of one unit.

    A case is called ``test[label]``.
    """

    made: dict[str, list[Made]]  # by exercise
    calls: dict[str, dict[str, list[RecordedCall]]]  # by case, then exercise
    heard: list[list[Heard]]
    references: dict[str, int]  # what the reference gives, by case
    mistakes: dict[str, list[NamedMistake]]  # by exercise
    outcomes: dict[str, dict[str, int]]  # by mistake, then case
    # The same where all references stand on the mistake, and give wrong numbers by it.
    built: dict[str, dict[str, int]]
    behaviours: dict[str, Behaviour] = {}  # of right answers, by exercise
    uses: dict[str, dict[str, tuple[str, ...]]] = {}  # of what is forbidden, by mistake, then case


def case_name(test: str, case: str) -> str:
    """``public test_x[5]``: one case of a test, by the test's key and the case's label."""
    return f"{test}[{case}]"


def public_case(make: Make) -> str:
    """The same of the public check whose inputs are drawn here."""
    return f"public {make.case}"


# --- tensors apart from the rest -----------------------------------------------------------------


def digest(data: wire.TensorData) -> bytes:
    """What stands for a tensor's bytes in the JSON."""
    text = f"{data.dtype} {data.shape} {data.device}".encode()
    return hashlib.blake2b(text + data.data, digest_size=9).digest()


def key_of(name: bytes) -> str:
    """The name of a tensor in the safetensors file."""
    return base64.urlsafe_b64encode(name).decode()


Nest = TypeVar("Nest")


def swapped(value: Nest, swap: Callable[[wire.TensorData], wire.TensorData]) -> Nest:
    """A nest with every tensor in it replaced."""
    match value:
        case wire.TensorData():
            return swap(value)  # type: ignore[return-value]
        case wire.Items(kind, items):
            return wire.Items(kind, [swapped(item, swap) for item in items])  # type: ignore[return-value]
        case wire.Entries(entries):
            within = {name: swapped(item, swap) for name, item in entries.items()}
            return wire.Entries(within)  # type: ignore[return-value]
        case wire.TableModelData(table, steps):
            return wire.TableModelData(swap(table), swap(steps))  # type: ignore[return-value]
    return value


class _Unit:
    """The recordings of one unit, read when they are first asked for."""

    def __init__(self, folder: Path, unit: str) -> None:
        self._json = folder / f"{unit}.json"
        self._tensors = folder / f"{unit}.safetensors"
        self._restored: dict[bytes, wire.TensorData] = {}

    @cached_property
    def sheet(self) -> UnitSheet:
        return _read(self._json, UnitSheet)

    @cached_property
    def _open(self) -> Any:
        try:
            return safetensors.safe_open(self._tensors, framework="pt")
        except (OSError, safetensors.SafetensorError):
            raise _damaged(self._tensors) from None

    def read_all(self) -> None:
        for number in range(len(self.sheet.heard)):
            self.heard(number)

    def restored(self, value: Nest) -> Nest:
        """A nest with its tensors in it again."""
        return swapped(value, self._restore)

    def _restore(self, data: wire.TensorData) -> wire.TensorData:
        if data.device == "meta":  # it has no numbers, and stands in the sheet as it is
            return data
        name = data.data
        if name not in self._restored:
            try:
                whole = payload.pack_tensor(self._open.get_tensor(key_of(name)))
            except safetensors.SafetensorError:
                raise _damaged(self._tensors) from None
            if digest(whole) != name:
                raise _damaged(self._tensors)
            self._restored[name] = whole
        return self._restored[name]

    def heard(self, number: int | None) -> Given:
        """What stands under a number of the sheet."""
        if number is None:
            return NOTHING
        if number == PASSED:
            return Given(passed=True, heard=("passed",))
        try:
            return Given(False, tuple(map(self.restored, self.sheet.heard[number])))
        except IndexError:
            raise _damaged(self._json) from None


AnySheet = TypeVar("AnySheet")


def _read(path: Path, kind: type[AnySheet]) -> AnySheet:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        raise _damaged(path) from None


def _damaged(path: Path) -> CallError:
    return CallError(
        f"{path} is damaged or missing: put the folder {path.parent.name}/ of a fresh copy of the "
        "course in its place; your answers are elsewhere and stay as they are"
    )


# --- in place of the references ------------------------------------------------------------------


class Recorded:
    """Answers in place of references and mistakes: an `Oracle`, and what is `Known`."""

    def __init__(self, course: Course) -> None:
        folder = course.recorded
        self._course = course
        self._head = _read(folder / "course.json", Head)
        if self._head.schema != SCHEMA:
            raise CallError(
                f"{folder} was made for another version of the kit: get the course and the kit "
                "from one place"
            )
        if set(self._head.contracts) != set(course.exercises):
            raise CallError(f"{folder} was made for another course than {course.folder}")
        self._units = {unit.name: _Unit(folder, unit.name) for unit in course.units}
        self._variants: dict[str, list[tuple[Variant, bool]]] = {}

    def read_all(self) -> None:
        """Raise `CallError` if a file is damaged or missing, asked for or not."""
        for unit in self._units.values():
            unit.read_all()

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """See `Oracle`."""
        return self._head.contracts

    def reference(self, make: Make) -> Reference:
        """See `Oracle`."""
        return _RecordedReference(self, make)

    def calls(self, exercise: str, case: str) -> Iterator[RecordedCall]:
        """What is known of a reference in one case of a check."""
        unit = self._unit_of(case)
        for call in unit.sheet.calls.get(case, {}).get(exercise, []):
            yield with_tensors(call, unit.restored)

    def made(self, exercise: str, case: str) -> list[Made]:
        """The modules that checks make of a reference."""
        return self._unit_of(case).sheet.made.get(exercise, [])

    def _unit_of(self, case: str) -> _Unit:
        unit = self._head.tests.get(case.partition("[")[0])
        if unit is None:
            raise CallError(f"{case.partition('[')[0]} is not recorded: were the checks changed?")
        return self._units[unit]

    # --- what is known of wrong answers ----------------------------------------------------------

    def mistakes(self, exercise: str) -> Sequence[Variant]:
        """See `Known`."""
        return [variant for variant, pair in self._of(exercise) if not pair]

    def pairs(self, exercise: str) -> Sequence[Variant]:
        """See `Known`."""
        return [variant for variant, pair in self._of(exercise) if pair]

    def _of(self, exercise: str) -> list[tuple[Variant, bool]]:
        if exercise not in self._variants:
            sheet = self._units[self._course.unit_of[exercise]].sheet
            self._variants[exercise] = [
                (
                    Variant(
                        exercise,
                        named.slug,
                        "mistake",
                        named.title,
                        named.hint,
                        "",
                        same_as=dict.fromkeys(named.same_as, ""),
                    ),
                    named.pair,
                )
                for named in sheet.mistakes.get(exercise, [])
            ]
        return self._variants[exercise]

    def given(self, variant: Variant | None, test: str, case: str) -> Given:
        """See `Known`."""
        name = case_name(test, case)
        unit = self._unit_of(name)
        if variant is None:
            number = unit.sheet.references.get(name)
            return Given(passed=True, heard=unit.heard(number).heard)
        given = unit.heard(unit.sheet.outcomes.get(variant.id, {}).get(name))
        return replace(given, uses=unit.sheet.uses.get(variant.id, {}).get(name, ()))

    def behaviour(self, exercise: str) -> Behaviour | None:
        """What is true of all right answers, on an example of the public checks."""
        unit = self._units[self._course.unit_of[exercise]]
        found = unit.sheet.behaviours.get(exercise)
        return None if found is None else on_example(found, unit.restored)

    def built_on(self, base: Variant, test: str, case: str) -> Given:
        """See `Known`."""
        name = case_name(test, case)
        unit = self._unit_of(name)
        return unit.heard(unit.sheet.built.get(base.id, {}).get(name, PASSED))


class _RecordedReference:
    """See `grader.course.references.Reference`."""

    def __init__(self, recorded: Recorded, make: Make) -> None:
        self._recorded = recorded
        self._make = make
        self._case = public_case(make)
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._recorded.contracts:
            raise AttributeError(f"the course has no exercise {name!r}")
        if self._recorded.contracts[name].kind == "module":
            return lambda *arguments: self._construct(name, arguments)
        return lambda *arguments: _result(self._recorded, name, self._case, arguments)

    def _construct(self, name: str, arguments: Sequence[Any]) -> nn.Module:
        packed = list(map(payload.pack_input, arguments))
        for made in self._recorded.made(name, self._case):
            if made.arguments == packed:
                module = _RecordedModule(self._recorded, name, self._case, made.weights)
                number, self._made = self._made, self._made + 1
                draw_weights(module, self._make, f"{name} {number}")
                return module
        raise _unknown(name, self._case)


class _RecordedModule(nn.Module):
    """A reference's parameters, and recorded results."""

    def __init__(self, recorded: Recorded, name: str, case: str, weights: Sequence[Weight]) -> None:
        super().__init__()
        self._known = (recorded, name, case)
        for weight in weights:
            holder: nn.Module = self
            *steps, last = weight.path.split(".")
            for step in steps:
                if step not in holder._modules:
                    # Its class tells how a matrix lies in it: see `grader.proxies.adoption`.
                    kind = weight.owner if step == steps[-1] else "Module"
                    holder.add_module(step, type(kind, (nn.Module,), {})())
                holder = holder.get_submodule(step)
            empty = torch.empty(weight.shape, dtype=payload.DTYPES[weight.dtype])
            holder.register_parameter(last, nn.Parameter(empty))

    def __deepcopy__(self, memo: dict[int, Any]) -> _RecordedModule:
        recorded, name, case = self._known
        weights = [
            Weight(
                path,
                type(self.get_submodule(path.rpartition(".")[0])).__name__,
                tuple(p.shape),
                payload.NAMES[p.dtype],
            )
            for path, p in self.named_parameters()
        ]
        copied = _RecordedModule(recorded, name, case, weights)
        copied.load_state_dict(self.state_dict())
        return copied.train(self.training)

    def forward(self, *arguments: Any) -> Any:
        """The recorded result for these arguments, under these weights."""
        return _result(*self._known, arguments, self)


def _result(
    recorded: Recorded,
    name: str,
    case: str,
    arguments: Sequence[Any],
    module: nn.Module | None = None,
) -> Any:
    known = False
    for call in recorded.calls(name, case):
        if not _alike([payload.unpack(value) for value in call.arguments], list(arguments)):
            continue
        known = True
        state = {path: payload.unpack_tensor(value) for path, value in call.state.items()}
        if module is None or _alike(state, dict(module.state_dict())):
            return _answer(call, arguments, module)
    if not known or module is None:
        raise _unknown(name, case)
    lacking = " and ".join(roles_at_zero(module)) or "some of its weights"
    raise AssertionError(
        f"no place was found in your module for {lacking}: does it have a parameter for each?"
    )


def _answer(call: RecordedCall, arguments: Sequence[Any], module: nn.Module | None) -> Any:
    """The recorded result; a backward from it brings the recorded gradients."""
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
    """Results as they are; whatever is pushed back from them, their leaves get these gradients."""

    @staticmethod
    def forward(ctx: Any, gradients: Sequence[Tensor], count: int, *tensors: Tensor) -> Any:
        ctx.gradients, ctx.count = gradients, count
        return tuple(result.clone() for result in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        return None, None, *[None] * ctx.count, *ctx.gradients


def _unknown(name: str, case: str) -> CallError:
    return CallError(
        f"{case} asks the reference of {name} for something that is not recorded: were the checks "
        "changed?"
    )


def _alike(ours: Any, theirs: Any) -> bool:
    """Whether two nests hold the same, but for what one machine computes unlike another."""
    if isinstance(ours, Tensor):
        return (
            isinstance(theirs, Tensor)
            and (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            and RECOGNISED.holds(ours.double(), theirs.detach().double())
        )
    if isinstance(ours, TableModel):
        return isinstance(theirs, TableModel) and _alike(
            [*ours.parameters()], [*theirs.parameters()]
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
    return type(ours) is type(theirs) and bool(ours == theirs)
