"""Records what the public checks ask of references and mistakes, for a student's bundle.

Each check is run on the reference and on every known mistake; `grader.grading.recorded` says what
is kept of it. Nothing of a reference's or a mistake's text goes into a recording, and no hidden
test.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract
from grader.course.course import Course
from grader.course.references import open_oracle
from grader.grading.behaviour import right_behaviour
from grader.grading.desk import Desk
from grader.grading.diagnosis import shows_numbers
from grader.grading.order import Order
from grader.grading.play import replay
from grader.grading.recorded import (
    PASSED,
    SCHEMA,
    Behaviour,
    Head,
    Made,
    NamedMistake,
    RecordedCall,
    UnitSheet,
    Weight,
    case_name,
    digest,
    key_of,
    on_example,
    public_case,
    swapped,
    with_tensors,
)
from grader.mistakes import Variant
from grader.proxies.adoption import biases, probe, without_biases
from grader.proxies.calls import Heard
from grader.records.faults import CallError
from grader.run.workers import share
from grader.sandbox.session import Nowhere
from grader.wire import payload

MOST_BIASES = 4  # of a module whose biases a student's may lack, in any combination


def record_course(
    course: Course, to: Path, report: Callable[[str], None] = lambda _: None, jobs: int = 1
) -> None:
    """Write a course's recordings and untouched stubs into a folder, which is made.

    `report` is told of each unit that is done. Raises `CallError` where a check is not fit for
    a bundle: it passes something of a student's on to the reference, or fails on the reference.
    """
    course.require_solutions("release")
    to.mkdir(parents=True, exist_ok=True)
    files = dict.fromkeys(course.check_files(), False)
    order = Order(course, course.seed, files, isolation="weak", backend=nullcontext(Nowhere()))
    tests: dict[str, str] = {}
    for done in share(order, _record_unit, [unit.name for unit in course.units], jobs):
        (to / f"{done.unit}.json").write_bytes(done.sheet)
        (to / f"{done.unit}.safetensors").write_bytes(done.tensors)
        tests |= dict.fromkeys(done.tests, done.unit)
        report(done.unit)
    head = Head(SCHEMA, course.name, dict(open_oracle(course).contracts), tests)
    (to / "course.json").write_bytes(msgspec.json.encode(head, order="sorted"))
    (to / "stubs").mkdir(exist_ok=True)
    for unit in course.units:
        shutil.copyfile(course.stub_file(unit.name), to / "stubs" / f"{unit.name}.py")


@dataclass(frozen=True)
class _Done:
    """The files of one unit."""

    unit: str
    sheet: bytes
    tensors: bytes
    tests: list[str]


def _record_unit(desk: Desk, unit: str) -> _Done:
    names = [name for name, home in desk.course.unit_of.items() if home == unit]
    notes = _Notes(desk.oracle.contracts)
    with desk.listening(lambda make, _: _OfCase(notes, public_case(make))):
        sheet, tensors = _Recorder(desk, notes, names).record()
    tests = [test.key for name in names for test in desk.tests[name]]
    return _Done(unit, msgspec.json.encode(sheet), safetensors.torch.save(tensors), tests)


# --- what references are asked -------------------------------------------------------------------


@dataclass
class _Notes:
    """What the references of a unit were asked."""

    contracts: Mapping[str, Contract]
    calls: dict[tuple[str, str], list[RecordedCall]] = field(
        default_factory=dict
    )  # by case, exercise
    made: dict[str, list[Made]] = field(default_factory=dict)  # by exercise
    # On a mistake, checks may ask for nothing that they do not ask for on the reference.
    open: bool = True
    asked: set[bytes] = field(default_factory=set)
    endings: list[Callable[[], None]] = field(default_factory=list)  # to be done after a case
    strange: list[str] = field(default_factory=list)  # cases that did


@dataclass(frozen=True)
class _OfCase:
    """Takes notes of one case of a check: a `Listener`."""

    notes: _Notes
    case: str

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`."""
        if not self.notes.open:
            return
        entry = Made(list(map(payload.pack_input, arguments)), list(_weights(module)))
        if entry not in self.notes.made.setdefault(exercise, []):
            self.notes.made[exercise].append(entry)
        self.notes.endings.append(lambda: self._note_probes(exercise, module, arguments))

    def consulted(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """See `Listener`."""
        question = self._question(exercise, arguments)
        if not self.notes.open:
            if question not in self.notes.asked:
                self.notes.strange.append(self.case)
            return
        self.notes.asked.add(question)
        if module is None:
            self._note(exercise, _call(arguments, result))
        else:
            self._note_silenced(exercise, module, arguments)
        if any(tensor.requires_grad for tensor in payload.tensors_of(result)):
            state = _state(module) if module is not None else {}
            self.notes.endings.append(
                lambda: self._note_gradients(exercise, module, arguments, state)
            )

    def _note_gradients(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        state: dict[str, wire.TensorData],
    ) -> None:
        """What the check's backward brought to the tensors of a call, if there was one."""
        passed = [payload.pack_input(value) for value in arguments]
        gradients = [_gradient(tensor) for tensor in payload.tensors_of(arguments)]
        learned = {
            path: data
            for path, parameter in (module.named_parameters() if module is not None else ())
            if (data := _gradient(parameter)) is not None
        }
        calls = self.notes.calls[self.case, exercise]
        for at, call in enumerate(calls):
            known = call.arguments == passed and call.state == state
            if known and (learned or any(data is not None for data in gradients)):
                calls[at] = msgspec.structs.replace(call, gradients=gradients, learned=learned)

    def _question(self, exercise: str, arguments: Sequence[Any]) -> bytes:
        return msgspec.msgpack.encode(
            (self.case, exercise, list(map(payload.pack_input, arguments)))
        )

    def _note_probes(self, exercise: str, made: nn.Module, arguments: Sequence[Any]) -> None:
        """What a search for weights will compare with, whatever the check has put into `made`."""
        inputs = probe(self.notes.contracts[exercise], arguments)
        self.notes.asked.add(self._question(exercise, inputs))
        # Weights are given before a check asks for float64.
        self._note_silenced(exercise, copy.deepcopy(made).float(), inputs, evaluated=True)

    def _note_silenced(
        self, exercise: str, made: nn.Module, inputs: Sequence[Any], *, evaluated: bool = False
    ) -> None:
        for module in _silenced(made):
            with torch.no_grad():
                result = (module.eval() if evaluated else module)(*inputs)
            call = _call(inputs, result)
            self._note(exercise, RecordedCall(call.arguments, call.result, _state(module)))

    def _note(self, exercise: str, call: RecordedCall) -> None:
        """Keep a call, once."""
        calls = self.notes.calls.setdefault((self.case, exercise), [])
        plain = [msgspec.structs.replace(one, gradients=[], learned={}) for one in calls]
        if call not in plain:
            calls.append(call)


def _silenced(module: nn.Module) -> Iterator[nn.Module]:
    """A module without some of its biases, in all combinations; the module itself comes first.

    A model has too many: there it is the module alone, and who lacks a bias hears of that.
    """
    plain = copy.deepcopy(module)
    plain._forward_hooks.clear()
    roles = biases(plain)
    roles = roles if len(roles) <= MOST_BIASES else []
    for gone in chain.from_iterable(combinations(roles, n) for n in range(len(roles) + 1)):
        yield without_biases(plain, gone)


def _weights(module: nn.Module) -> Iterator[Weight]:
    for path, parameter in module.named_parameters():
        owner = module.get_submodule(path.rpartition(".")[0])
        dtype = payload.NAMES[parameter.dtype]
        yield Weight(path, type(owner).__name__, tuple(parameter.shape), dtype)


def _state(module: nn.Module) -> dict[str, wire.TensorData]:
    return {path: payload.pack_tensor(p) for path, p in module.named_parameters()}


def _gradient(tensor: Tensor) -> wire.TensorData | None:
    if not tensor.is_leaf or tensor.grad is None:
        return None
    return payload.pack_tensor(tensor.grad)


def _call(arguments: Sequence[Any], result: Any) -> RecordedCall:
    return RecordedCall([payload.pack_input(value) for value in arguments], payload.pack(result))


# --- a unit --------------------------------------------------------------------------------------


class _Recorder:
    """Records the exercises of one unit."""

    def __init__(self, desk: Desk, notes: _Notes, names: Sequence[str]) -> None:
        self._desk = desk
        self._notes = notes
        self._names = names
        self._tensors: dict[str, Tensor] = {}
        self._heard: list[list[Heard]] = []
        self._numbers: dict[bytes, int] = {}
        self._uses: dict[str, dict[str, tuple[str, ...]]] = {}

    def record(self) -> tuple[UnitSheet, dict[str, Tensor]]:
        """The unit's sheet, and the tensors that it names."""
        references: dict[str, int] = {}
        named: dict[str, list[NamedMistake]] = {}
        outcomes: dict[str, dict[str, int]] = {}
        built: dict[str, dict[str, int]] = {}
        known = self._desk.live
        for name in self._names:
            self._note_reference(name)
            for test, case in self._cases(name):
                heard = known.given(None, test, case).heard
                references[case_name(test, case)] = self._number(heard)
            singles, pairs = known.mistakes(name), known.pairs(name)
            kept = [v for v in (*singles, *pairs) if self._outcomes(v, outcomes)]
            named[name] = [
                NamedMistake(v.slug, v.title, v.hint, v in pairs, tuple(v.same_as)) for v in kept
            ]
            # What is wrong further below is named by the checks of the exercises between.
            for base in self._desk.course.exercises[name].requires:
                standing = list(self._standing(name, base))
                for mistake in known.mistakes(base) if standing else ():
                    self._built(mistake, standing, built)
        sheet = UnitSheet(
            self._notes.made,
            self._calls(),
            self._heard,
            references,
            named,
            outcomes,
            built,
            dict(self._behaviours()),
            self._uses,
        )
        return sheet, self._tensors

    def _behaviours(self) -> Iterator[tuple[str, Behaviour]]:
        for name in self._names:
            if (known := right_behaviour(self._desk, name)) is not None:
                yield name, on_example(known, self._stored)

    def _cases(self, name: str) -> Iterator[tuple[str, str]]:
        for test in self._desk.tests[name]:
            for case in test.cases:
                yield test.key, case.label

    def _note_reference(self, name: str) -> None:
        """Run the checks on the reference: what they ask now is all that they may ask."""
        self._notes.open = True
        for test in self._desk.tests[name]:
            for case in test.cases:
                if not replay(self._desk, self._desk.definitions, test, case).passed:
                    raise CallError(f"{test.place}: {test.name} fails on the reference")
                for ending in self._notes.endings:
                    ending()
                self._notes.endings.clear()
        self._notes.open = False

    def _outcomes(self, variant: Variant, outcomes: dict[str, dict[str, int]]) -> bool:
        """Note how each case ends on a mistake; whether any fails."""
        found: dict[str, int] = {}
        for test, case in self._cases(variant.exercise):
            given = self._desk.live.given(variant, test, case)
            at = case_name(test, case)
            found[at] = PASSED if given.passed else self._number(given.heard)
            if given.uses and not given.passed:
                self._uses.setdefault(variant.id, {})[at] = given.uses
            if self._notes.strange:
                raise CallError(
                    f"{self._notes.strange[0]} passes on to the reference what a student's code "
                    f"gave (seen with {variant.id}): a bundle has no reference to ask"
                )
        failing = any(number != PASSED for number in found.values())
        if failing:
            outcomes[variant.id] = found
        return failing

    def _standing(self, name: str, base: str) -> Iterator[tuple[str, str]]:
        """The cases of an exercise that notice if one below it is gone."""
        gone = Variant(base, "gone", "mistake", "", "", f"def {base}(*_): raise RuntimeError")
        for test, case in self._cases(name):
            if not self._desk.live.built_on(gone, test, case).passed:
                yield test, case

    def _built(
        self, base: Variant, cases: Iterable[tuple[str, str]], built: dict[str, dict[str, int]]
    ) -> None:
        """Note what these cases give where they break, if the exercise below theirs is wrong.

        Not what raises: see `Diagnosis.follows`. And its text would tell how to feign it.
        """
        for test, case in cases:
            outcome = self._desk.live.built_on(base, test, case)
            if not outcome.passed and shows_numbers(outcome.heard):
                number = self._number(outcome.heard)
                built.setdefault(base.id, {})[case_name(test, case)] = number

    def _number(self, heard: Sequence[Heard]) -> int:
        """Where results stand in the sheet; they are kept once."""
        stored = [self._stored(_presentable(value)) for value in heard]
        key = msgspec.json.encode(stored)
        if key not in self._numbers:
            self._numbers[key] = len(self._heard)
            self._heard.append(stored)
        return self._numbers[key]

    def _calls(self) -> dict[str, dict[str, list[RecordedCall]]]:
        found: dict[str, dict[str, list[RecordedCall]]] = {}
        for (case, name), calls in self._notes.calls.items():
            found.setdefault(case, {})[name] = [with_tensors(call, self._stored) for call in calls]
        return found

    def _stored(self, value: Any) -> Any:
        return swapped(value, self._store)

    def _store(self, data: wire.TensorData) -> wire.TensorData:
        if data.device == "meta":
            return data
        name = digest(data)
        self._tensors.setdefault(key_of(name), payload.unpack_tensor(data))
        return msgspec.structs.replace(data, data=name)


def _presentable(value: Any) -> Any:
    """What a call gave, as JSON can say it, and without places in our own files."""
    if isinstance(value, wire.Raised):
        return msgspec.structs.replace(value, place=None, uses=[])
    if isinstance(value, float) and value - value != 0:
        return wire.Odd(f"the number {value}")
    return value
