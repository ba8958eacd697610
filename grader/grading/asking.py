"""Finds out what a public check asks the references: its calls, with their results.

A student's bundle has these recordings in place of the references. Therefore a check is also played
on its own recording: it must pass there too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.collection import Case, Test
from grader.course.contract import Contract
from grader.course.tensors import Make
from grader.grading.desk import Desk
from grader.grading.diagnosis import shows_numbers
from grader.grading.play import replay
from grader.grading.recorded import Asked, Made, RecordedCall, RecordedReference, Weight
from grader.proxies.adoption import biases, probe, without_biases
from grader.records.faults import CallError
from grader.wire import payload

MOST_BIASES = 4  # with more biases, a module is recorded only with all of them
WRONG = 3  # mistakes on which a check runs again; its calls to references must stay the same


def asked_in(desk: Desk, test: Test, case: Case) -> Mapping[str, Asked]:
    """The calls that a case of a public check makes to each reference, with their results.

    Raises `CallError`, with the place of the check and the reason, if the check fails on the
    reference or on the recording of its calls, or if it passes on what a student's code returned.
    """
    notes = _Notes(desk.oracle.contracts)
    try:
        with desk.listening(lambda *_: notes):
            live = replay(desk, desk.definitions, test, case, words=True)
        if not live.passed:
            raise CallError(f"fails on the reference: {live.message}")
        for ending in notes.endings:
            ending()
        on_recording = replace(desk, oracle=_Rehearsal(desk.oracle.contracts, notes.asked))
        recorded = replay(on_recording, desk.definitions, test, case, words=True)
        if not recorded.passed:
            raise CallError(
                "passes on the reference, but fails on a recording of it, which a student's bundle "
                f"has in its place: {recorded.message} {NO_RECORDING}"
            )
        _refuse_answers_in_questions(desk, test, case, notes)
    except CallError as error:
        raise CallError(f"{test.place}: {test.name} {error}") from None
    return notes.asked


NO_RECORDING = (
    "A recording has the results of calls. A module that changes its own weights when it is "
    "called, or that computes gradients inside, cannot be recorded: test it in solutions/graders"
)


@dataclass(frozen=True)
class _Rehearsal:
    """An `Oracle` that has only the recorded calls of one case."""

    contracts: Mapping[str, Contract]
    _asked: Mapping[str, Asked]

    def reference(self, make: Make) -> RecordedReference:
        """See `Oracle`."""
        return RecordedReference(self, make)

    def asked(self, exercise: str, make: Make) -> Asked:
        """See `Recording`."""
        del make
        return self._asked.get(exercise, Asked([], []))


def _refuse_answers_in_questions(desk: Desk, test: Test, case: Case, notes: _Notes) -> None:
    """Raise `CallError` if a case passes results of a wrong answer on to a reference."""
    sheet = desk.sheet
    assert sheet is not None
    mistakes = (
        variant
        for variant in sheet.mistakes(test.exercise)
        if shows_numbers(sheet.given(variant, test.key, case.label).results)
    )
    for variant in islice(mistakes, WRONG):
        doubts = _Doubts(notes)
        with desk.listening(lambda *_, doubts=doubts: doubts):
            replay(desk, desk.replays.definitions(variant), test, case)
        if doubts.strange:
            raise CallError(
                f"passes on to the reference what a student's code gave (seen with "
                f"{variant.id}): a bundle has no reference to ask"
            )


# --- calls to references -------------------------------------------------------------------------
#
# A question is an exercise and the arguments of a call to its reference.


class _Notes:
    """A `Listener` that keeps the calls that one case makes to references, and their results."""

    def __init__(self, contracts: Mapping[str, Contract]) -> None:
        self._contracts = contracts
        self.asked: dict[str, Asked] = {}  # by exercise
        self.questions: set[bytes] = set()
        self.endings: list[Callable[[], None]] = []  # functions to call after the case

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`."""
        entry = Made(list(map(payload.pack_input, arguments)), list(_weights(module)))
        made = self._of(exercise).made
        if entry not in made:
            made.append(entry)
        self.endings.append(lambda: self._note_probes(exercise, module, arguments))

    def called(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        result: Any,
        models: Sequence[nn.Module] = (),
    ) -> None:
        """See `Listener`."""
        self.questions.add(_question(exercise, arguments))
        if module is None:
            call = _call(arguments, result)
            after = [payload.pack_model_state(model) for model in models]
            self._note(exercise, msgspec.structs.replace(call, models=after))
        else:
            self._note_silenced(exercise, module, arguments)
        if any(tensor.requires_grad for tensor in payload.tensors_of(result)):
            state = _state(module) if module is not None else {}
            self.endings.append(lambda: self._note_gradients(exercise, module, arguments, state))

    def _of(self, exercise: str) -> Asked:
        return self.asked.setdefault(exercise, Asked([], []))

    def _note_gradients(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        state: dict[str, wire.TensorData],
    ) -> None:
        """Keep the gradients of a call's tensors, if the check has called `backward`."""
        passed = [payload.pack_input(value) for value in arguments]
        gradients = [_gradient(tensor) for tensor in payload.tensors_of(arguments)]
        learned = {
            path: data
            for path, parameter in (module.named_parameters() if module is not None else ())
            if (data := _gradient(parameter)) is not None
        }
        calls = self._of(exercise).calls
        for at, call in enumerate(calls):
            known = call.arguments == passed and call.state == state
            if known and (learned or any(data is not None for data in gradients)):
                calls[at] = msgspec.structs.replace(call, gradients=gradients, learned=learned)

    def _note_probes(self, exercise: str, made: nn.Module, arguments: Sequence[Any]) -> None:
        """Record a module's results on the probe input, with which weights are matched by role.

        The results depend on the module's weights at the end of the case.
        """
        inputs = probe(self._contracts[exercise], arguments)
        self.questions.add(_question(exercise, inputs))
        # In float32, since weights are matched before a check converts the module to float64.
        self._note_silenced(exercise, copy.deepcopy(made).float(), inputs, evaluated=True)

    def _note_silenced(
        self, exercise: str, made: nn.Module, inputs: Sequence[Any], *, evaluated: bool = False
    ) -> None:
        for module in _silenced(made):
            try:
                with torch.no_grad():
                    result = (module.eval() if evaluated else module)(*inputs)
            except Exception as error:
                raise CallError(
                    f"calls the reference of {exercise}, which cannot be recorded: without "
                    f"gradients it raises {type(error).__name__}: {error}. {NO_RECORDING}"
                ) from None
            call = _call(inputs, result)
            self._note(exercise, RecordedCall(call.arguments, call.result, _state(module)))

    def _note(self, exercise: str, call: RecordedCall) -> None:
        """Keep a call, unless the same call is already kept."""
        calls = self._of(exercise).calls
        plain = [msgspec.structs.replace(one, gradients=[], learned={}) for one in calls]
        if call not in plain:
            calls.append(call)


@dataclass
class _Doubts:
    """A `Listener` that notices questions which the case does not ask if the answer is right."""

    notes: _Notes
    strange: bool = False

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`."""

    def called(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        result: Any,
        models: Sequence[nn.Module] = (),
    ) -> None:
        """See `Listener`."""
        del module, result, models
        self.strange |= _question(exercise, arguments) not in self.notes.questions


def _question(exercise: str, arguments: Sequence[Any]) -> bytes:
    return msgspec.msgpack.encode((exercise, list(map(payload.pack_input, arguments))))


def _silenced(module: nn.Module) -> Iterator[nn.Module]:
    """The module, then copies without some of its biases, in every combination.

    A student's module may lack any of these biases. If a module has more than `MOST_BIASES` biases,
    only the module itself is yielded. Then a check refuses an answer that lacks a bias.
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
