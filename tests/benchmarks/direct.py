"""A lower bound for the cost of a grading: only the student's calls and the comparisons.

A grading is recorded behind the wire, in this process. Then a plain loop makes its calls again on
the bare definitions, without jail, wire, pytest, contracts, references or trace. It compares each
result once with the recorded one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from grader import wire
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.guest import loader
from grader.guest.server import Guest, Prints, convert, parameters_of
from grader.intake import Submission
from grader.sandbox.budget import Left
from grader.sandbox.session import Channel, Limits
from grader.wire import payload

Step = tuple[wire.Call, wire.Outcome]


@dataclass
class Recorder:
    """A back end in this process that writes down what is asked and answered."""

    steps: list[Step] = field(default_factory=list)
    layers: tuple[str, ...] = ()

    def open(self, limits: Limits) -> Channel:
        """A guest that is not locked in."""
        del limits
        return _Recording(self.steps)


class _Recording:
    idle_seconds = 0.0

    def __init__(self, steps: list[Step]) -> None:
        self._guest = Guest()
        self._steps = steps

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Answer, and write both down."""
        del left
        if isinstance(request, wire.Open):
            # Forbidden operations would be removed from torch for good: not in this process.
            request = wire.Open(request.sources, request.wanted, (), request.others)
        reply = self._guest.answer(request)
        if isinstance(request, wire.Run) and isinstance(reply, wire.Outcomes):
            self._steps += zip(request.calls, reply.outcomes, strict=False)
        return reply

    def cpu_seconds(self) -> float:
        """Not limited."""
        return 0.0

    def close(self) -> None:
        """Nothing to end."""


Kept = dict[int, Any]  # modules and graphs, by handle
Script = Sequence[Callable[[Kept], None]]


def script_of(desk: Desk, submission: Submission) -> Script:
    """The calls that grading a right submission makes, one function for each.

    One must have been graded at this desk: whatever the grader imports, it has imported.
    """
    recorder = Recorder()
    behind, desk.backend = desk.backend, recorder
    path, sys.path = sys.path, [place for place in sys.path if not _is_project(place)]
    try:
        graded = grade_submission(desk, submission)
        assert graded.total == graded.max, "a script of half the calls is no measure"
        wanted = tuple(wire.Wanted(name, unit, "") for name, unit in desk.course.unit_of.items())
        text = loader.LoadedSubmission(submission.sources, wanted)
        loader.install(text)
        return list(_script(recorder.steps, text.definition))
    finally:
        desk.backend, sys.path = behind, path


def _is_project(place: str) -> bool:
    """Whether a submission that imports ``exercises.U`` would find our stubs there, not its own."""
    return (Path(place) / "exercises").is_dir()


def seconds_of(script: Script) -> float:
    """How long it takes to make all calls, and to compare what they give."""
    kept: Kept = {}
    started = time.perf_counter()
    with redirect_stdout(Prints()):
        for step in script:
            with suppress(Exception):  # a wrong answer may raise, as it did when it was recorded
                step(kept)
    return time.perf_counter() - started


def _script(
    steps: Sequence[Step], definition: Callable[[str], Any]
) -> Iterator[Callable[[Kept], None]]:
    """One function for each call, with its arguments and its result ready."""
    for call, outcome in steps:
        match call:
            case wire.Seed(seed):
                yield _seeded(seed)
            case wire.Invoke():
                target = definition(call.target) if isinstance(call.target, str) else call.target
                yield _called(call, target, outcome)
            case wire.Assign(handle, values):
                yield _assigned(handle, {path: payload.unpack(v) for path, v in values.items()})
            case wire.Convert():
                yield _converted(call)
            case wire.Backward():
                yield _pushed_back(call, outcome)
            case wire.Describe(handle):
                yield _described(handle)


def _seeded(seed: int) -> Callable[[Kept], None]:
    def step(kept: Kept) -> None:
        kept.clear()
        torch.manual_seed(seed)

    return step


def _called(call: wire.Invoke, target: Any, outcome: wire.Outcome) -> Callable[[Kept], None]:
    leaves: list[Tensor] = []

    def take(data: wire.TensorData) -> Tensor:
        wanted = len(leaves) in call.leaves
        leaves.append(payload.unpack_tensor(data).requires_grad_(wanted))
        return leaves[-1]

    arguments = [payload.unpack(value, take) for value in call.arguments]
    given = dict(zip(call.keywords, arguments, strict=True)) if call.keywords else {}
    expected = _tensors(outcome.value) if isinstance(outcome, wire.Returned) else []

    def step(kept: Kept) -> None:
        function = kept[target] if isinstance(target, int) else target
        value = function(**given) if given else function(*arguments)
        if isinstance(value, nn.Module):
            kept[call.result] = value
            return
        if call.keep_graph:
            module = function if isinstance(function, nn.Module) else None
            kept[call.result] = value, leaves, module
        _compare(list(payload.tensors_of(value)), expected)

    return step


def _assigned(handle: int, values: Mapping[str, Tensor]) -> Callable[[Kept], None]:
    def step(kept: Kept) -> None:
        parameters = parameters_of(kept[handle])
        with torch.no_grad():
            for path, value in values.items():
                parameters[path].copy_(value)

    return step


def _converted(call: wire.Convert) -> Callable[[Kept], None]:
    return lambda kept: convert(kept[call.handle], call.method, call.argument)


def _described(handle: int) -> Callable[[Kept], None]:
    def step(kept: Kept) -> None:
        for parameter in parameters_of(kept[handle]).values():
            parameter.detach().clone()

    return step


def _pushed_back(call: wire.Backward, outcome: wire.Outcome) -> Callable[[Kept], None]:
    given = [None if g is None else payload.unpack_tensor(g) for g in call.gradients]
    expected: list[Tensor] = []
    if isinstance(outcome, wire.Gradients):
        expected = _tensors([*outcome.inputs, *outcome.parameters.values()])

    def step(kept: Kept) -> None:
        value, leaves, module = kept[call.result]
        pairs = [
            (tensor, gradient)
            for tensor, gradient in zip(payload.tensors_of(value), given, strict=True)
            if gradient is not None and tensor.requires_grad
        ]
        parameters = [] if module is None else list(module.parameters())
        wanted = [tensor for tensor in (*leaves, *parameters) if tensor.requires_grad]
        found = torch.autograd.grad(
            [tensor for tensor, _ in pairs],
            wanted,
            [gradient for _, gradient in pairs],
            retain_graph=True,
            allow_unused=True,
        )
        _compare([gradient for gradient in found if gradient is not None], expected)

    return step


def _tensors(value: Any) -> list[Tensor]:
    values = value if isinstance(value, list) else [value]
    return [t for one in values if one is not None for t in payload.tensors_of(payload.unpack(one))]


def _compare(theirs: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for tensor, other in zip(theirs, expected, strict=True):
        torch.allclose(tensor, other, equal_nan=True)
