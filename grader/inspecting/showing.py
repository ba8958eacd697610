"""What happens in the public checks of one exercise: inputs, the shapes along the way, results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.course import Course
from grader.inspecting.bench import (
    Ending,
    InProcess,
    forbidden,
    is_shown,
    obstacle,
    open_bench,
    run_cases,
)
from grader.inspecting.shown import Call, Named, Shown
from grader.inspecting.stepping import Trail, described
from grader.jail import payload, wire
from grader.jail.guest import Prints

MAX_NUMBERS = 36  # of a tensor that is shown with its values
MAX_CALLS = 8  # of one case


def show(course: Course, name: str, folder: Path | None = None) -> Iterator[Shown]:
    """Run the public tests of an exercise here, and tell of each case what happened in it.

    Student code runs in this process: on their own computer only. Raises `CallError` for a name
    or a folder that is not right.
    """
    with open_bench(course, name, folder) as bench:
        channel = _Telling()
        with bench.seat(channel) as seat:
            hindrance = obstacle(bench, seat)
            if hindrance is not None:
                yield _ending(hindrance)
                return
            for test, case, ran in run_cases(bench, seat):
                calls = channel.take()
                half = MAX_CALLS // 2
                some = calls if len(calls) <= MAX_CALLS else [*calls[:half], *calls[-half:]]
                message = (ran.message or "").removeprefix(f"[{case.label}] ")
                yield Shown(
                    test.title, test.rung, case.label, tuple(some), len(calls) - len(some),
                    ran.status, message, ran.picture,
                )  # fmt: skip
                if channel.stopped:
                    return
            used = forbidden(bench, seat)
            if used is not None:
                yield _ending(used)


def _ending(ending: Ending) -> Shown:
    return Shown(ending.title, "", "", (), 0, ending.status, ending.message)


class _Telling(InProcess):
    """A channel that tells what each call did."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = False  # by Ctrl-C
        self._calls: list[Call] = []
        self._classes: dict[int, str] = {}  # names by handle
        self._sent: dict[int, list[str]] = {}  # names of the tensors passed, by handle of a result

    def take(self) -> list[Call]:
        """The calls since the last time."""
        calls, self._calls = self._calls, []
        return calls

    def do(self, call: wire.Call) -> wire.Outcome:
        """One call, followed if a student would want to see it."""
        prints, trail = Prints(), Trail(self.submission.files)
        with redirect_stdout(prints), redirect_stderr(prints):
            if not is_shown(call):
                return super().do(call)
            with trail.following():
                outcome = super().do(call)
        raised = ""
        if isinstance(outcome, wire.Raised):
            self.stopped = outcome.kind == "KeyboardInterrupt"
            raised = f"{outcome.kind}: {outcome.text}".removesuffix(": ")
        name, inputs = self._what(call)
        self._calls.append(
            Call(
                name, tuple(inputs), trail.steps(), len(trail.left_out),
                tuple(self._results(call, outcome)), raised, prints.take(),
            )
        )  # fmt: skip
        return outcome

    def _what(self, call: wire.Call) -> tuple[str, list[Named]]:
        """What is called, and with what."""
        if isinstance(call, wire.Backward):
            given = [gradient for gradient in call.gradients if gradient is not None]
            return "backward", [_named("gradient of the result", gradient) for gradient in given]
        assert isinstance(call, wire.Invoke)
        name = call.target if isinstance(call.target, str) else self._classes[call.target]
        if call.construct:
            self._classes[call.result] = name
        names: Sequence[str] = call.keywords or self._names(name, isinstance(call.target, int))
        spare = [f"argument {n + 1}" for n in range(len(names), len(call.arguments))]
        pairs = list(zip([*names, *spare], call.arguments, strict=False))
        self._sent[call.result] = [
            argument for argument, value in pairs for _ in payload.tensors_of(payload.unpack(value))
        ]
        return name, [_named(argument, value) for argument, value in pairs]

    def _names(self, name: str, forward: bool) -> list[str]:
        """The student's names of arguments that are passed by position."""
        found = next((f for f in self.listing.found if f.name == name), None)
        listed = (found.forward if forward else found.arguments) if found else None
        return [argument.name for argument in listed or () if argument.kind == "positional"]

    def _results(self, call: wire.Call, outcome: wire.Outcome) -> Iterator[Named]:
        match outcome:
            case wire.Returned(value):
                yield _named("result", value)
            case wire.Structure(parameters, buffers):
                for info in (*parameters, *buffers):
                    yield Named(info.path, f"{tuple(info.shape)} {info.dtype}")
            case wire.Gradients(inputs, parameters):
                assert isinstance(call, wire.Backward)
                names = [*self._sent[call.result], *parameters]
                for name, gradient in zip(names, (*inputs, *parameters.values()), strict=True):
                    if gradient is not None:
                        yield _named(f"gradient of {name}", gradient)


def _named(name: str, value: wire.Value) -> Named:
    if isinstance(value, wire.Odd):
        return Named(name, value.what)
    here = payload.unpack(value)
    return Named(name, described(here), _values(here))


def _values(value: Any) -> str:
    """A small tensor as torch prints it."""
    if not isinstance(value, Tensor) or value.numel() > MAX_NUMBERS or value.device.type == "meta":
        return ""
    with torch._tensor_str.printoptions(profile="default"):
        return str(value)
