"""Runs the tests of an exercise on a submission, and describes each case as data.

Values from student code are not trusted: this module decodes and describes them, and never calls
their methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader import wire
from grader.course.collection import Case, Test
from grader.course.course import Course
from grader.grading.desk import Desk, Seat
from grader.grading.ladder import Climb
from grader.grading.order import Order
from grader.grading.play import Transcript
from grader.intake import Submission
from grader.intake.own import read_answers
from grader.records.grade import Picture, TestResult, TestStatus
from grader.sandbox.session import Channel, Limits, Nowhere, Session, StudentCall
from grader.wire import payload

UNLIMITED = Limits(math.inf, math.inf)
NO_ANSWER = "no answer came"
MAX_CALLS = 8  # the most calls of a case that are shown
MAX_PARAMETERS = 20  # the most parameters and buffers of a module that are listed
MAX_NUMBERS = 36  # elements of the largest tensor that is printed whole
FIRST = 4  # elements of a larger tensor that are shown
WIDTH = 72  # columns for a printed tensor
MAX_TEXT = 60  # the most characters of a string, or of a type's name, that are shown
FEW = 4  # the most items of a list, or tensors of a module, that are shown
DEEP = 2  # nested levels that are shown: enough for a result with a cache of two tensors
HUGE = 10**18  # integers of this size and above are shown without their digits
UNREADABLE = (wire.WireError, RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class NamedValue:
    """A value with its name, a description such as shape and dtype, and its numbers if few."""

    name: str
    what: str
    values: str = ""


@dataclass(frozen=True)
class Step:
    """A statement that ran, and the values that it assigned when it first ran."""

    file: str
    line: int
    text: str
    depth: int  # the number of nested calls: 0 in the function that the test called
    bound: Sequence[NamedValue]
    times: int


@dataclass(frozen=True)
class CallTrace:
    """One call to the student's function or module."""

    name: str
    inputs: Sequence[NamedValue]
    steps: Sequence[Step] = ()
    steps_left_out: int = 0
    result: Sequence[NamedValue] = ()  # several values for a new module or a backward pass
    raised: str = ""
    prints: str = ""


@dataclass(frozen=True)
class CaseTrace:
    """One case of a test: its calls and its status."""

    title: str
    rung: str
    case: str  # "" for a test with a single case
    calls: Sequence[CallTrace]
    calls_left_out: int  # the number of calls left out from the middle
    status: TestStatus
    message: str
    picture: Picture | None = None


# --- running tests along the ladder, as a grading does -------------------------------------------


@dataclass(frozen=True)
class Bench:
    """The tests of an exercise, and the submission to run them on."""

    desk: Desk
    name: str
    submission: Submission

    @contextmanager
    def seat(self, channel: Channel) -> Iterator[Seat]:
        """Load the submission through `channel`; the seat keeps the calls of each case."""
        opening = wire.Open(self.submission.sources, tuple(self.desk.wanted))
        with closing(Session(lambda _: channel, opening, UNLIMITED)) as session:
            session.listens = True
            yield Seat(self.desk, session)


@contextmanager
def open_bench(course: Course, name: str, folder: Path | None = None) -> Iterator[Bench]:
    """Load an exercise's public checks, and the answers in `folder` or in the course folder.

    Answers run in this process, without isolation or time limits, and forbidden operations work:
    use this on the student's own computer only. Raises `CallError` for a wrong name or folder.
    """
    course.one(name, "name one exercise of it")
    answers = folder or course.folder
    submission = read_answers(answers, course)
    order = Order(
        course,
        course.seed,
        course.checks_of([name]),
        only=(name,),
        stubs=course.has_stubs_beside(answers),
        isolation="weak",
        backend=nullcontext(Nowhere()),
    )
    with order.desk() as desk:
        yield Bench(desk, name, submission)


def run_cases(bench: Bench, climb: Climb) -> Iterator[tuple[Test, Case, Transcript]]:
    """Play the exercise's tests as a grading does; yield each case with its transcript."""
    for test, case, played in climb.cases(bench.desk.tests[bench.name]):
        yield test, case, climb.unless_evaded(test, played)


# --- what happened in a case ---------------------------------------------------------------------


def without_calls(title: str, status: TestStatus, message: str) -> CaseTrace:
    """The trace of a fault outside any case, such as a missing answer or a forbidden operation."""
    return CaseTrace(title, "", "", (), 0, status, message)


def check_trace(check: TestResult | None) -> CaseTrace | None:
    """The trace of a failed check by the engine itself; None if the check passed."""
    if check is None or check.status == "passed":
        return None
    return without_calls(check.title, check.status, check.message or "")


def case_trace(test: Test, case: Case, played: Transcript, calls: Sequence[CallTrace]) -> CaseTrace:
    """The trace of a case; of many calls, it has only the first and the last calls."""
    half = MAX_CALLS // 2
    some = calls if len(calls) <= MAX_CALLS else [*calls[:half], *calls[-half:]]
    return CaseTrace(
        test.title,
        test.rung,
        case.label,
        tuple(some),
        len(calls) - len(some),
        played.status,
        played.message or "",
        played.picture,
    )


def runs_answer(call: wire.Call) -> bool:
    """Whether a test made this call to run student code; trial calls by `adopt` do not count."""
    return isinstance(call, wire.Backward) or (
        isinstance(call, wire.Invoke) and call.result != wire.TRIAL
    )


def calls_of(played: Transcript) -> list[StudentCall]:
    """A case's calls to the student's answer, in order."""
    return [one for one in played.calls if isinstance(one, StudentCall) and runs_answer(one.call)]


class CallReader:
    """Describes the calls to a submission; pass them in the order in which they were made."""

    def __init__(self, listing: wire.Listing) -> None:
        """`listing` has the names that the student gave to arguments."""
        self._found = {found.name: found for found in listing.found}
        self._classes: dict[int, str] = {}  # class names, by the handle of a module
        self._sent: dict[int, list[str]] = {}  # names of tensor arguments, by the result's handle

    def trace(self, asked: StudentCall) -> CallTrace:
        """The name, inputs and result of a call for which `runs_answer` is true."""
        name, inputs = self._describe_call(asked.call)
        match asked.outcome:
            case None:
                return CallTrace(name, inputs, raised=NO_ANSWER)
            case wire.Raised(kind, text):
                return CallTrace(name, inputs, raised=f"{kind}: {text}".removesuffix(": "))
            case outcome:
                return CallTrace(
                    name, inputs, result=(*self._describe_outcome(asked.call, outcome),)
                )

    def _describe_call(self, call: wire.Call) -> tuple[str, Sequence[NamedValue]]:
        if isinstance(call, wire.Backward):
            given = [gradient for gradient in call.gradients if gradient is not None]
            return "backward", tuple(named("gradient of the result", one) for one in given)
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
        return name, tuple(named(argument, value) for argument, value in pairs)

    def _names(self, name: str, forward: bool) -> list[str]:
        """The names that the student gave to the positional arguments of a function or class."""
        found = self._found.get(name)
        listed = (found.forward if forward else found.arguments) if found else None
        return [argument.name for argument in listed or () if argument.kind == "positional"]

    def _describe_outcome(self, call: wire.Call, outcome: wire.Outcome) -> Iterator[NamedValue]:
        """Describe the result of a call: a value, the parameters of a new module, or gradients."""
        match outcome:
            case wire.Returned(value, models=models):
                yield named("result", value)
                for model in models:
                    for path, weight in model.state.items():
                        yield named(f"{path} after the call", weight)
            case wire.Structure(parameters, buffers):
                infos = [*parameters, *buffers]
                for info in infos[:MAX_PARAMETERS]:
                    yield NamedValue(info.path, f"{tuple(info.shape)} {info.dtype}")
                if len(infos) > MAX_PARAMETERS:
                    more = f"{len(infos) - MAX_PARAMETERS} more parameters and buffers"
                    yield NamedValue("…", more)
            case wire.Gradients(inputs, parameters) if isinstance(call, wire.Backward):
                names = [*self._sent[call.result], *parameters]
                for name, gradient in zip(names, (*inputs, *parameters.values()), strict=False):
                    if gradient is not None:
                        yield named(f"gradient of {name}", gradient)
            case _:  # student code forged the reply, which ended the test
                yield NamedValue("result", "an answer of the wrong type")


# --- describing values ---------------------------------------------------------------------------


def named(name: str, value: wire.Input) -> NamedValue:
    """Describe a value from the wire, under a name."""
    if isinstance(value, wire.Odd):
        return NamedValue(name, value.what)
    try:
        here = payload.unpack(value)
    except UNREADABLE as error:
        return NamedValue(name, f"cannot be read ({error})")
    return NamedValue(name, described(here), _values(here))


def _values(value: Any) -> str:
    """The numbers of a small tensor; the first numbers and the range of a larger tensor."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, max_line_width=WIDTH, precision=4, threshold=MAX_NUMBERS)
    if not isinstance(value, Tensor) or value.device.type == "meta":
        return ""
    with torch._tensor_str.printoptions(profile="default", linewidth=WIDTH):
        if value.numel() <= MAX_NUMBERS:
            return str(value)
    first = ", ".join(f"{number:.4g}" for number in value.flatten()[:FIRST].tolist())
    return f"{first}, …  from {value.min().item():.4g} to {value.max().item():.4g}"


def described(value: Any) -> str:
    """Describe a value: a tensor by shape and dtype, a number by itself, others by their type."""
    with torch._C.DisableTorchFunction():  # so that no trace or subclass sees these accesses
        try:
            return _described(value)
        except Exception:  # a tensor without a usual shape, such as a nested tensor
            return _type_name(value)


def _described(value: Any, depth: int = 0) -> str:
    kind = type(value)
    if issubclass(kind, Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        device = "" if value.device.type == "cpu" else f" on {value.device.type}"
        return f"{tuple(value.shape)} {dtype}{device}"
    if issubclass(kind, np.ndarray):
        plain = np.ndarray.view(value, np.ndarray)
        return f"{plain.shape if plain.ndim else plain} {plain.dtype} array"
    if value is None or kind in (bool, float, complex, torch.dtype, torch.Size):
        return str(tuple(value) if kind is torch.Size else value)
    if kind is int:
        return str(value) if abs(value) < HUGE else "int"
    if kind is str:
        text = repr(value[:MAX_TEXT])
        return text if len(value) <= MAX_TEXT else f"{text}…"
    if kind in (tuple, list) and depth < DEEP:
        inside = ", ".join(_described(item, depth + 1) for item in value[:FEW])
        more = ", …" if len(value) > FEW else ""
        if kind is list:
            return f"[{inside}{more}]"
        return f"({inside}{more or (',' if len(value) == 1 else '')})"
    if kind in (dict, set) and depth < DEEP:
        items = [_described(item, depth + 1) for item in islice(value, FEW)]
        if kind is dict:
            shown = zip(items, islice(value.values(), FEW), strict=True)
            items = [f"{key}: {_described(item, depth + 1)}" for key, item in shown]
        more = ", …" if len(value) > FEW else ""
        return f"{{{', '.join(items)}{more}}}" if value else _type_name(value)
    if issubclass(kind, nn.Module) and depth == 0:
        slots = object.__getattribute__(value, "__dict__").get("_parameters") or {}
        sizes = [f"{n} {tuple(p.shape)}" for n, p in slots.items() if isinstance(p, Tensor)]
        return f"{_type_name(value)} {', '.join(sizes[:FEW])}".rstrip()
    return _type_name(value)


def _type_name(value: Any) -> str:
    # Bypass the metaclass: its `__name__` could be student code.
    return str(type.__dict__["__name__"].__get__(type(value)))[:MAX_TEXT]
