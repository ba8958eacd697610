"""A call that went over the wire, in words: what was called, with what, and what came back.

Nothing is run here, and nothing that came back is believed: it may be a submission's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from grader import wire
from grader.course.collection import Case, Test
from grader.grading.desk import Ran
from grader.inspection.bench import Ending
from grader.inspection.shown import NamedValue, Shown, ShownCall
from grader.inspection.stepping import described
from grader.wire import payload

MAX_CALLS = 8  # of one case
MAX_NUMBERS = 36  # of a tensor that is shown with its values
FIRST = 4  # of the values of a larger one
WIDTH = 72  # columns that values are wrapped to
MAX_PARAMETERS = 20  # of a module that are listed
UNREADABLE = (wire.WireError, RuntimeError, ValueError, OverflowError)


def is_shown(call: wire.Call) -> bool:
    """Whether a call runs student code on a test's behalf; adoption only tries weights."""
    return isinstance(call, wire.Backward) or (isinstance(call, wire.Invoke) and call.result != 0)


class Teller:
    """Tells the calls of one submission, in the order in which they were made."""

    def __init__(self, listing: wire.Listing) -> None:
        """`listing` knows the student's names of arguments."""
        self._found = {found.name: found for found in listing.found}
        self._classes: dict[int, str] = {}  # names by handle
        self._sent: dict[int, list[str]] = {}  # names of the tensors passed, by handle of a result

    def called(self, call: wire.Call) -> tuple[str, list[NamedValue]]:
        """What is called, and with what; `call` is one that `is_shown`."""
        if isinstance(call, wire.Backward):
            given = [gradient for gradient in call.gradients if gradient is not None]
            return "backward", [named("gradient of the result", gradient) for gradient in given]
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
        return name, [named(argument, value) for argument, value in pairs]

    def _names(self, name: str, forward: bool) -> list[str]:
        """The student's names of arguments that are passed by position."""
        found = self._found.get(name)
        listed = (found.forward if forward else found.arguments) if found else None
        return [argument.name for argument in listed or () if argument.kind == "positional"]

    def came_back(self, call: wire.Call, outcome: wire.Outcome) -> Iterator[NamedValue]:
        """What a call gave, if it did not raise: a result, the parts of a module, gradients."""
        match outcome:
            case wire.Returned(value):
                yield named("result", value)
            case wire.Structure(parameters, buffers):
                infos = [*parameters, *buffers]
                for info in infos[:MAX_PARAMETERS]:
                    yield NamedValue(info.path, f"{tuple(info.shape)} {info.dtype}")
                if len(infos) > MAX_PARAMETERS:
                    yield NamedValue(
                        "…", f"{len(infos) - MAX_PARAMETERS} more parameters and buffers"
                    )
            case wire.Gradients(inputs, parameters):
                assert isinstance(call, wire.Backward)
                names = [*self._sent[call.result], *parameters]
                for name, gradient in zip(names, (*inputs, *parameters.values()), strict=False):
                    if gradient is not None:
                        yield named(f"gradient of {name}", gradient)


def case_shown(test: Test, case: Case, ran: Ran, calls: Sequence[ShownCall]) -> Shown:
    """One case of a test, with its first and its last calls."""
    half = MAX_CALLS // 2
    some = calls if len(calls) <= MAX_CALLS else [*calls[:half], *calls[-half:]]
    return Shown(
        test.title,
        test.rung,
        case.label,
        tuple(some),
        len(calls) - len(some),
        ran.status,
        ran.message or "",
        ran.picture,
    )


def ending_shown(ending: Ending) -> Shown:
    """What no case of a test tells: why there is nothing to run, or a forbidden operation."""
    return Shown(ending.title, "", "", (), 0, ending.status, ending.message)


def exception_text(outcome: wire.Outcome) -> str:
    """The exception that a call raised, or nothing."""
    if not isinstance(outcome, wire.Raised):
        return ""
    return f"{outcome.kind}: {outcome.text}".removesuffix(": ")


def named(name: str, value: wire.Value) -> NamedValue:
    """A value that went over the wire, under a name."""
    if isinstance(value, wire.Odd):
        return NamedValue(name, value.what)
    try:
        here = payload.unpack(value)
    except UNREADABLE as error:
        return NamedValue(name, f"nothing that can be read ({error})")
    return NamedValue(name, described(here), _values(here))


def _values(value: Any) -> str:
    """A small tensor as torch prints it; of a larger one where it begins, and its range."""
    if not isinstance(value, Tensor) or value.device.type == "meta":
        return ""
    with torch._tensor_str.printoptions(profile="default", linewidth=WIDTH):
        if value.numel() <= MAX_NUMBERS:
            return str(value)
    first = ", ".join(f"{number:.4g}" for number in value.flatten()[:FIRST].tolist())
    return f"{first}, …  from {value.min().item():.4g} to {value.max().item():.4g}"
