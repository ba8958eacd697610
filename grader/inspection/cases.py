"""The tests of one exercise, run case by case on one submission, and what happened in each as data.

Nothing that came back from student code is believed: it is decoded and described, never called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from grader import wire
from grader.course.collection import Case, Test
from grader.course.course import Course
from grader.grading.desk import Desk, Seat
from grader.grading.ladder import Climb
from grader.grading.order import Order
from grader.grading.transcripts import Transcript
from grader.intake import Submission
from grader.intake.own import read_answers
from grader.records.grade import Picture, TestResult, TestStatus
from grader.sandbox.session import Asked, Channel, Limits, Nowhere, Session
from grader.wire import payload

UNLIMITED = Limits(math.inf, math.inf)
NO_ANSWER = "no answer came"
MAX_CALLS = 8  # of one case
MAX_PARAMETERS = 20  # of a module that are listed
MAX_NUMBERS = 36  # of a tensor that is shown with its values
FIRST = 4  # of the values of a larger one
WIDTH = 72  # columns that values are wrapped to
MAX_TEXT = 60  # characters of a value
FEW = 4  # items of a list, or tensors of a module, that are shown
DEEP = 2  # an output and, beside it, a cache of two tensors
HUGE = 10**18
UNREADABLE = (wire.WireError, RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class NamedValue:
    """A value under its name: shape and dtype, or what else describes it; numbers if few."""

    name: str
    what: str
    values: str = ""


@dataclass(frozen=True)
class Step:
    """A statement that ran, and what it bound when it first did."""

    file: str
    line: int
    text: str
    depth: int  # 0 in what the test called, 1 in a function that this calls, …
    bound: Sequence[NamedValue]
    times: int


@dataclass(frozen=True)
class CallTrace:
    """One call of the student's function or module."""

    name: str
    inputs: Sequence[NamedValue]
    steps: Sequence[Step] = ()
    steps_left_out: int = 0
    result: Sequence[NamedValue] = ()  # several, of a new module or of a backward pass
    raised: str = ""
    prints: str = ""


@dataclass(frozen=True)
class CaseTrace:
    """One case of a test: its calls, and how it ended."""

    title: str
    rung: str
    case: str  # "" for a test with one case
    calls: Sequence[CallTrace]
    calls_left_out: int  # between the first and the last ones
    status: TestStatus
    message: str
    picture: Picture | None = None


# --- running tests, along the ladder, as grading goes --------------------------------------------


@dataclass(frozen=True)
class Bench:
    """The tests of one exercise, and a submission."""

    desk: Desk
    name: str
    submission: Submission

    @contextmanager
    def seat(self, channel: Channel) -> Iterator[Seat]:
        """Load the student's text behind this channel; each test keeps the calls that it makes."""
        opening = wire.Open(self.submission.sources, tuple(self.desk.wanted))
        with closing(Session(lambda _: channel, opening, UNLIMITED)) as session:
            session.listens = True
            yield Seat(self.desk, session)


@contextmanager
def open_bench(course: Course, name: str, folder: Path | None = None) -> Iterator[Bench]:
    """Load the public checks of one exercise, and the answers in `folder` or in the course's.

    They are to run in this process, on the student's own computer: nothing is isolated or
    forbidden, and nothing ends what does not end by itself. Raises `CallError` for a name or a
    folder that is not right.
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
    """Play the exercise's tests as a grading does, and say what each case comes to."""
    for test, case, played in climb.cases(bench.desk.tests[bench.name]):
        yield test, case, climb.counted(test, played)


# --- what happened in a case ---------------------------------------------------------------------


def without_calls(title: str, status: TestStatus, message: str) -> CaseTrace:
    """What no case of a test shows: why there is nothing to run, or a forbidden operation."""
    return CaseTrace(title, "", "", (), 0, status, message)


def check_trace(check: TestResult | None) -> CaseTrace | None:
    """What a check of the engine's own shows, where it did not pass."""
    if check is None or check.status == "passed":
        return None
    return without_calls(check.title, check.status, check.message or "")


def case_trace(test: Test, case: Case, played: Transcript, calls: Sequence[CallTrace]) -> CaseTrace:
    """One case of a test, with its first and its last calls."""
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
    """Whether a call runs student code on a test's behalf; adoption only tries weights."""
    return isinstance(call, wire.Backward) or (
        isinstance(call, wire.Invoke) and call.result != wire.TRIAL
    )


def calls_of(played: Transcript) -> list[Asked]:
    """The calls of the answer in a case, in the order in which they were made."""
    return [one for one in played.said if isinstance(one, Asked) and runs_answer(one.call)]


class CallReader:
    """Describes the calls of one submission, which come in the order in which they were made."""

    def __init__(self, listing: wire.Listing) -> None:
        """`listing` knows the student's names of arguments."""
        self._found = {found.name: found for found in listing.found}
        self._classes: dict[int, str] = {}  # names by handle
        self._sent: dict[int, list[str]] = {}  # names of the tensors passed, by handle of a result

    def trace(self, asked: Asked) -> CallTrace:
        """What is called, with what, and what came back; the call is one that `runs_answer`."""
        name, inputs = self._called(asked.call)
        match asked.outcome:
            case None:
                return CallTrace(name, inputs, raised=NO_ANSWER)
            case wire.Raised(kind, text):
                return CallTrace(name, inputs, raised=f"{kind}: {text}".removesuffix(": "))
            case outcome:
                return CallTrace(name, inputs, result=(*self._came_back(asked.call, outcome),))

    def _called(self, call: wire.Call) -> tuple[str, Sequence[NamedValue]]:
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
        """The student's names of arguments that are passed by position."""
        found = self._found.get(name)
        listed = (found.forward if forward else found.arguments) if found else None
        return [argument.name for argument in listed or () if argument.kind == "positional"]

    def _came_back(self, call: wire.Call, outcome: wire.Outcome) -> Iterator[NamedValue]:
        """What a call gave, which did not raise: a result, the parts of a module, gradients."""
        match outcome:
            case wire.Returned(value):
                yield named("result", value)
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
            case _:  # forged: the test ended with it, too
                yield NamedValue("result", "an answer of the wrong type")


# --- what can be said of a value -----------------------------------------------------------------


def named(name: str, value: wire.Input) -> NamedValue:
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


def described(value: Any) -> str:
    """A tensor's shape and dtype; a small number or tuple itself; of all else, the type's name."""
    with torch._C.DisableTorchFunction():  # no trace and no subclass hears of this
        try:
            return _described(value)
        except Exception:  # an odd tensor that has no shape
            return _type_name(value)


def _described(value: Any, depth: int = 0) -> str:
    kind = type(value)
    if issubclass(kind, Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        device = "" if value.device.type == "cpu" else f" on {value.device.type}"
        return f"{tuple(value.shape)} {dtype}{device}"
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
    if issubclass(kind, nn.Module) and depth == 0:
        slots = object.__getattribute__(value, "__dict__").get("_parameters") or {}
        sizes = [f"{n} {tuple(p.shape)}" for n, p in slots.items() if isinstance(p, Tensor)]
        return f"{_type_name(value)} {', '.join(sizes[:FEW])}".rstrip()
    return _type_name(value)


def _type_name(value: Any) -> str:
    # Past a metaclass, which may answer with code of its own.
    return str(type.__dict__["__name__"].__get__(type(value)))[:MAX_TEXT]
