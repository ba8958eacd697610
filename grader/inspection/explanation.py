"""Runs one graded test again on the graded submission, and records every call.

Instructors use this to explain a lost point, so everything about a hidden test is shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from rich.console import Console
from rich.text import Text
from torch import nn

from grader import wire
from grader.course.collection import Test
from grader.course.references import ReferenceCall
from grader.feedback.excerpts import Excerpt, excerpts_of_answer
from grader.feedback.terminal import print_plain, safe
from grader.feedback.verdict import mistake_of
from grader.grades.corrections import at_stake, command
from grader.grades.lookup import Graded
from grader.grading.desk import Desk, Seat
from grader.grading.ladder import Climb
from grader.grading.play import AnyCall
from grader.inspection.cases import (
    Bench,
    CallReader,
    CallTrace,
    CaseTrace,
    case_trace,
    check_trace,
    named,
    run_cases,
    runs_answer,
    without_calls,
)
from grader.inspection.screen import show_cases
from grader.records.faults import CallError
from grader.records.grade import BASES, ENGINE_CHECKS, Grade, TestResult
from grader.records.rows import Adjustment, counted, number
from grader.sandbox.session import StudentCall, StudentLost
from grader.wire import payload

OTHER_TESTS = "graded with other tests or references: this shows today's result"
OTHER_TORCH = "graded with torch {}, but this is {}"
OTHER_PROCESSOR = "graded with the vector instructions {}, but this processor has {}"
OTHER_DEVICE = "graded on {}, but this ran on {}"
SKIPPED = "skipped in the grading, because an earlier test had failed"
OTHERWISE = (
    "the grading got another result ({}): earlier tests in the same process, or the machine, "
    "may be the reason"
)


@dataclass(frozen=True)
class Explanation:
    """Everything that explains a test's result: the test, the answer, and the calls of a case."""

    student: str
    exercise: str
    graded: TestResult  # from the gradebook
    also: tuple[str, ...]  # other tests of the exercise that did not pass
    notes: tuple[str, ...]  # wrong bases, and differences between this run and the grading
    statement: Excerpt | None  # the test's source; None if the engine itself found the fault
    answer: tuple[Excerpt, ...]
    shown: CaseTrace  # the first case that does not pass, or the last case
    cases_passed: int  # the number of passed cases before `shown`
    at_stake: Adjustment | None = None  # would give back points lost through an earlier mistake


def explain_test(desk: Desk, graded: Graded) -> Explanation:
    """Run a graded test again in a jail, up to the first case that does not pass.

    If a check by the engine itself failed (a missing answer, a forbidden operation), run the tests
    of the exercise until the fault shows. Raises `CallError` if the test does not exist any more.
    """
    name, result = graded.exercise.name, graded.test
    alone = replace(desk, tests={name: _tests(desk, graded)}, in_full=True)
    try:
        with (
            alone.listening(lambda _, seat: _Listener(seat)),
            alone.seat(graded.submission) as seat,
        ):
            ran = _run(Bench(alone, name, graded.submission), seat, result)
            definition = seat.calls.found[name].place
    except StudentLost as lost:  # the process ended while it loaded the submission
        ran = _Ran(without_calls(result.title, lost.status, lost.text))
        definition = None
    others = [test for test in graded.exercise.tests if test is not result]
    lost_through_another = result.follows or result.status == "skipped"
    return Explanation(
        graded.grade.student,
        name,
        result,
        tuple(
            f"{test.name} ({'hidden' if test.hidden else 'public'})"
            for test in others
            if test.status not in ("passed", "skipped", "missing")
        ),
        (
            *(test.message or "" for test in graded.exercise.tests if test.name == BASES),
            *_notes(desk, graded.grade),
            *_other_status(result, ran.shown),
        ),
        excerpt_of_test(ran.test.function, desk.course.folder.parent) if ran.test else None,
        excerpts_of_answer(graded.submission.sources, definition, ran.place),
        ran.shown,
        ran.cases_passed,
        at_stake(graded.exercise) if lost_through_another else None,
    )


def _tests(desk: Desk, graded: Graded) -> list[Test]:
    """The graded test; all tests of the exercise if the result is a check by the engine itself."""
    name, result = graded.exercise.name, graded.test
    tests = desk.tests[name]
    own = [test for test in tests if (test.name, test.hidden) == (result.name, result.hidden)]
    if not own and result.name not in ENGINE_CHECKS:
        raise CallError(
            f"this course has no test {name}/{result.name}: was it graded with another --course?"
        )
    if not own and result.status == "passed":
        raise CallError(f"{name}/{result.name} passed, and it runs no test: name a test")
    return list(own or tests)


def _notes(desk: Desk, grade: Grade) -> list[str]:
    here = torch.__version__.partition("+")[0]
    # Older grades do not name the processor.
    processor = torch.backends.cpu.get_cpu_capability() if grade.processor else ""
    return [
        note
        for note, differs in (
            (OTHER_TESTS, grade.course != desk.fingerprint),
            (OTHER_TORCH.format(grade.torch, here), grade.torch != here),
            (OTHER_PROCESSOR.format(grade.processor, processor), grade.processor != processor),
            (OTHER_DEVICE.format(grade.device, desk.device), grade.device != desk.device),
        )
        if differs
    ]


def _other_status(graded: TestResult, shown: CaseTrace) -> list[str]:
    if graded.status == "skipped":
        return [SKIPPED]
    return [] if graded.status == shown.status else [OTHERWISE.format(graded.status)]


# --- running the test ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ran:
    """The case to show, and the line of the submission at which it failed."""

    shown: CaseTrace
    place: wire.Place | None = None
    test: Test | None = None
    cases_passed: int = 0


def _run(bench: Bench, seat: Seat, result: TestResult) -> _Ran:
    """Run cases up to the first case that fails or uses a forbidden operation."""
    climb = Climb(bench.desk, seat, bench.name)
    if (hindrance := check_trace(climb.hindrance)) is not None:
        return _Ran(hindrance)
    reader = CallReader(seat.listing)
    for ended in run_cases(bench, climb):
        said, uses = ended[-1].calls, seat.calls.uses(bench.name)
        if uses or ended[-1].status != "passed":
            break
    test, case, ran = ended
    calls = _calls(said, reader)
    if calls and ran.status == "passed":  # the message of a failed case quotes the prints already
        calls[-1] = replace(calls[-1], prints=seat.session.printed)
    shown = case_trace(test, case, ran, calls)
    used, place = check_trace(climb.forbidden()), _raised_at(said)
    if used is not None and (result.name in ENGINE_CHECKS or ran.status in ("passed", "skipped")):
        shown = replace(shown, status=used.status, message=used.message)
        place = uses[0].place if uses else None
    return _Ran(shown, place, test, [one.label for one in test.cases].index(case.label))


def _raised_at(said: Sequence[AnyCall]) -> wire.Place | None:
    """The line of the submission at which the last exception was raised."""
    for one in reversed(said):
        if isinstance(one, StudentCall) and isinstance(one.outcome, wire.Raised):
            return one.outcome.place
    return None


class _Listener:
    """Records calls to references among the calls to the answer."""

    def __init__(self, seat: Seat) -> None:
        self._said = seat.session.calls

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`: do nothing, since a new module has no result to show."""

    def called(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        result: Any,
        models: Sequence[nn.Module] = (),
    ) -> None:
        """See `Listener`: record the call of a reference."""
        del module, models
        packed = [payload.pack_input(argument) for argument in arguments]
        self._said.append(ReferenceCall(exercise, packed, payload.pack(result)))


def _calls(said: Sequence[AnyCall], reader: CallReader) -> list[CallTrace]:
    """Describe the calls to the answer and to references.

    If a reference was called with the same inputs as the answer, the reference's result is shown
    in the call to the answer.
    """
    calls: list[CallTrace] = []
    unmatched: dict[bytes, list[int]] = {}  # calls without a reference's result, by `_key`
    for one in said:
        if isinstance(one, ReferenceCall):
            same = unmatched.get(_key(one.exercise, one.arguments))
            expected = named("reference", one.result)
            if same:
                number = same.pop(0)
                call = calls[number]
                calls[number] = replace(call, result=(*call.result, expected))
            else:
                given = [named(f"argument {n}", a) for n, a in enumerate(one.arguments, 1)]
                calls.append(CallTrace(f"reference.{one.exercise}", given, result=(expected,)))
        elif runs_answer(one.call):
            call = reader.trace(one)
            if isinstance(one.call, wire.Invoke) and not one.call.construct:
                key = _key(call.name, one.call.arguments)
                unmatched.setdefault(key, []).append(len(calls))
            calls.append(call)
    return calls


def _key(name: str, arguments: Sequence[wire.Input]) -> bytes:
    """A key for a call; it ignores the order of arguments, which students may choose."""
    plain = [payload.pack_input(payload.unpack(argument)) for argument in arguments]
    return msgspec.msgpack.encode((name, sorted(map(msgspec.msgpack.encode, plain))))


# --- the test's text ----------------------------------------------------------------------------


def excerpt_of_test(test: Callable[..., Any], folder: Path) -> Excerpt:
    """A test's source with its decorators; the file's name is relative to `folder`."""
    lines, first = inspect.getsourcelines(test)
    path = Path(inspect.getfile(test))
    name = path.relative_to(folder) if path.is_relative_to(folder) else path
    numbered = enumerate(lines, start=first)
    return Excerpt(name.as_posix(), {number: line.rstrip("\n") for number, line in numbered})


# --- in a terminal --------------------------------------------------------------------------------


AT_STAKE = (
    "The numbers show that {} failed only because of this mistake. The tests that failed because "
    "of the mistake, or were skipped after these tests, carry {}. To give the points back:"
)


def show_explanation(explained: Explanation, folder: str, console: Console) -> None:
    """Print a test, the student's answer, and the calls that the test makes.

    `folder` is the grades folder as the instructor typed it; the suggested command repeats it.
    """
    graded = explained.graded
    kind = "hidden" if graded.hidden else "public"
    print_plain(console, f"{explained.student}: {explained.exercise}/{graded.name}", "bold")
    print_plain(console, f"{kind}, {number(graded.points)} of {counted(graded.max, 'point')}")
    if mistake := mistake_of(graded):
        print_plain(console, mistake.heading, "italic")
    if explained.at_stake is not None:
        print_plain(
            console,
            AT_STAKE.format(explained.exercise, counted(explained.at_stake.points, "point")),
        )
        line = command(folder, explained.student, explained.at_stake)
        console.print(Text(f"  {safe(line)}"), soft_wrap=True)  # one line, to copy
    if explained.also:
        print_plain(console, f"not passed either: {', '.join(explained.also)}")
    for note in explained.notes:
        print_plain(console, note, "yellow")
    if explained.statement is not None:
        _show_excerpt(console, "the test", explained.statement)
    for part in explained.answer:
        _show_excerpt(console, "the answer", part)
    if explained.cases_passed:
        console.print()
        print_plain(console, f"earlier cases, which passed: {explained.cases_passed}", "dim")
    show_cases([explained.shown], console)


def _show_excerpt(console: Console, what: str, excerpt: Excerpt) -> None:
    console.print()
    print_plain(console, f"{what}, {excerpt.file}", "bold")
    for count, line in excerpt.lines.items():
        sign, style = (">", "red") if count == excerpt.marked else (" ", "")
        source = f"{sign}{count:>5}  {safe(line.expandtabs(4))}".rstrip()
        console.print(Text(source, style=style), soft_wrap=True)
