"""One test of a grading, run again on the text that was graded, with somebody listening.

For the instructor, who defends a point with it: nothing of a hidden test is held back.
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
from grader.course.references import Consulted
from grader.feedback.terminal import print_plain, safe
from grader.feedback.verdict import mistake_of
from grader.grades.corrections import at_stake, command
from grader.grades.lookup import Graded
from grader.grading.desk import Desk, Seat
from grader.grading.ladder import Climb
from grader.grading.play import Said
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
from grader.records.grade import BASES, FIRSTS, Grade, TestResult
from grader.records.rows import Adjustment, counted, number
from grader.sandbox.session import Asked, StudentLost
from grader.wire import Place, SourceText, payload

OTHER_TESTS = "graded with other tests or references: this shows what happens today"
OTHER_TORCH = "graded with torch {}, and this is {}"
OTHER_PROCESSOR = "graded with the vector instructions {}, and this processor has {}"
OTHER_DEVICE = "graded on {}, and this ran on {}"
SKIPPED = "skipped in the grading, since a test before it had failed"
OTHERWISE = "it ended otherwise in the grading ({}): what ran before it, or the machine, may matter"


@dataclass(frozen=True)
class Explanation:
    """Why a test ended as it did."""

    student: str
    exercise: str
    graded: TestResult  # as it stands in the gradebook
    also: tuple[str, ...]  # other tests of the exercise that did not pass
    notes: tuple[str, ...]  # what to mend before, and in what this run differs from the grading
    statement: Excerpt | None  # the test; None where the grader itself found the fault
    answer: tuple[Excerpt, ...]
    shown: CaseTrace  # the case that does not pass, or the last one
    cases_passed: int  # before it
    at_stake: Adjustment | None = None  # what would give back that an earlier mistake cost


def explain_test(desk: Desk, graded: Graded) -> Explanation:
    """Run a test again in a jail, up to the first case that does not pass.

    Where the grader itself found the fault (nothing there, a forbidden operation), the tests of the
    exercise are run up to where that shows. Raises `CallError` for a test that there is no more.
    """
    name, asked = graded.exercise.name, graded.test
    alone = replace(desk, tests={name: _tests(desk, graded)}, in_full=True)
    try:
        with (
            alone.listening(lambda _, seat: _Listener(seat)),
            alone.seat(graded.submission) as seat,
        ):
            ran = _run(Bench(alone, name, graded.submission), seat, asked)
            definition = seat.calls.found[name].place
    except StudentLost as lost:  # its text alone brought the listing down
        ran = _Ran(without_calls(asked.title, lost.status, lost.text))
        definition = None
    others = [test for test in graded.exercise.tests if test is not asked]
    return Explanation(
        graded.grade.student,
        name,
        asked,
        tuple(
            f"{test.name} ({'hidden' if test.hidden else 'public'})"
            for test in others
            if test.status not in ("passed", "skipped", "missing")
        ),
        (
            *(test.message or "" for test in graded.exercise.tests if test.name == BASES),
            *_notes(desk, graded.grade),
            *_ended_otherwise(asked, ran.shown),
        ),
        excerpt_of_test(ran.test.function, desk.course.folder.parent) if ran.test else None,
        excerpts_of_answer(graded.submission.sources, definition, ran.place),
        ran.shown,
        ran.cases_passed,
        _at_stake(graded),
    )


def _at_stake(graded: Graded) -> Adjustment | None:
    """Of a test that an earlier mistake cost."""
    lost = graded.test.follows or graded.test.status == "skipped"
    return at_stake(graded.exercise) if lost else None


def _tests(desk: Desk, graded: Graded) -> list[Test]:
    """What to run."""
    name, asked = graded.exercise.name, graded.test
    tests = desk.tests[name]
    own = [test for test in tests if (test.name, test.hidden) == (asked.name, asked.hidden)]
    if not own and asked.name not in FIRSTS:
        raise CallError(
            f"this course has no test {name}/{asked.name}: was it graded with another --course?"
        )
    if not own and asked.status == "passed":
        raise CallError(f"{name}/{asked.name} passed, and runs nothing: name a test")
    return list(own or tests)


def _notes(desk: Desk, grade: Grade) -> list[str]:
    here = torch.__version__.partition("+")[0]
    # Grades of before do not say.
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


def _ended_otherwise(graded: TestResult, shown: CaseTrace) -> list[str]:
    if graded.status == "skipped":
        return [SKIPPED]
    return [] if graded.status == shown.status else [OTHERWISE.format(graded.status)]


# --- running it ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ran:
    """What was found, and where in the submission."""

    shown: CaseTrace
    place: wire.Place | None = None
    test: Test | None = None
    cases_passed: int = 0


def _run(bench: Bench, seat: Seat, asked: TestResult) -> _Ran:
    """Run cases up to the first that does not pass, or that uses what is forbidden."""
    climb = Climb(bench.desk, seat, bench.name)
    if (hindrance := check_trace(climb.hindrance)) is not None:
        return _Ran(hindrance)
    reader = CallReader(seat.listing)
    for ended in run_cases(bench, climb):
        said, uses = ended[-1].said, seat.calls.uses(bench.name)
        if uses or ended[-1].status != "passed":
            break
    test, case, ran = ended
    calls = _calls(said, reader)
    if calls and ran.status == "passed":  # of one that did not, the message tells what it printed
        calls[-1] = replace(calls[-1], prints=seat.session.printed)
    shown = case_trace(test, case, ran, calls)
    used, place = check_trace(climb.forbidden()), _raised_at(said)
    if used is not None and (asked.name in FIRSTS or ran.status in ("passed", "skipped")):
        shown = replace(shown, status=used.status, message=used.message)
        place = uses[0].place if uses else None
    return _Ran(shown, place, test, [one.label for one in test.cases].index(case.label))


def _raised_at(said: Sequence[Said]) -> wire.Place | None:
    """The line of the submission at which a call raised, the last that did."""
    for one in reversed(said):
        if isinstance(one, Asked) and isinstance(one.outcome, wire.Raised):
            return one.outcome.place
    return None


class _Listener:
    """Has references say what they are asked in between what the answer is asked."""

    def __init__(self, seat: Seat) -> None:
        self._said = seat.session.said

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`: a module says nothing by being made."""

    def consulted(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """See `Listener`."""
        del module
        packed = [payload.pack_input(argument) for argument in arguments]
        self._said.append(Consulted(exercise, packed, payload.pack(result)))


def _calls(said: Sequence[Said], reader: CallReader) -> list[CallTrace]:
    """The calls; what a reference gave stands below the call that was given the same."""
    calls: list[CallTrace] = []
    unanswered: dict[bytes, list[int]] = {}  # by what was asked: calls without a reference beside
    for one in said:
        if isinstance(one, Consulted):
            same = unanswered.get(_asked(one.exercise, one.arguments))
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
                asked = _asked(call.name, one.call.arguments)
                unanswered.setdefault(asked, []).append(len(calls))
            calls.append(call)
    return calls


def _asked(name: str, arguments: Sequence[wire.Input]) -> bytes:
    """What is the same for the same question, in whatever order a student takes the arguments."""
    plain = [payload.pack_input(payload.unpack(argument)) for argument in arguments]
    return msgspec.msgpack.encode((name, sorted(map(msgspec.msgpack.encode, plain))))


# --- excerpts ------------------------------------------------------------------------------------
#
# Lines of a file that are worth quoting: an answer as it was handed in, or a test.
#
# Works on text alone: parsing what a student wrote is no work for the trusted side.


MAX_LINES = 80  # of a definition
AROUND = 3  # lines before and after one that is pointed at


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file; of a notebook, lines of a cell."""

    file: str  # to show, with the cell
    first: int  # the number of the first of them
    lines: tuple[str, ...]
    marked: int | None = None  # the number of the line that it is about


def excerpts_of_answer(
    sources: Sequence[SourceText], definition: Place | None, at: Place | None
) -> tuple[Excerpt, ...]:
    """A definition, with one line marked; a second excerpt if that line is elsewhere."""
    found = _definition(sources, definition) if definition else None
    if definition and found and at:
        together = (at.file, at.cell) == (definition.file, definition.cell)
        if together and 0 <= at.line - found.first < len(found.lines):
            return (replace(found, marked=at.line),)
    return tuple(part for part in (found, _around(sources, at) if at else None) if part)


def _definition(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    """The lines from a place on, down to the first that is indented no deeper."""
    lines = wire.lines_around(place, sources)
    if not lines:
        return None
    start = place.line - 1
    depth = _indentation(lines[start])
    end = start + 1
    for row, line in enumerate(lines[end : start + MAX_LINES], start=end):
        bare = line.strip()
        if _indentation(line) > depth or bare.startswith((")", "]")):
            end = row + 1
        elif bare and not bare.startswith("#"):
            break
    return Excerpt(place.within, place.line, tuple(lines[start:end]))


def _around(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    lines = wire.lines_around(place, sources)
    first = max(1, place.line - AROUND)
    some = tuple(lines[first - 1 : place.line + AROUND])
    return Excerpt(place.within, first, some, place.line) if some else None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def excerpt_of_test(test: Callable[..., Any], folder: Path) -> Excerpt:
    """A test as its author wrote it, decorators included; its file is named from `folder`."""
    lines, first = inspect.getsourcelines(test)
    path = Path(inspect.getfile(test))
    name = path.relative_to(folder) if path.is_relative_to(folder) else path
    return Excerpt(name.as_posix(), first, tuple(line.rstrip("\n") for line in lines))


# --- in a terminal --------------------------------------------------------------------------------


AT_STAKE = (
    "{} failed only through that mistake, by the numbers. The tests that follow from it and those "
    "skipped behind them carry {}. To give them back:"
)


def show_explanation(explained: Explanation, folder: str, console: Console) -> None:
    """One test: its text, the student's, and what happened between them.

    `folder` is that of the grades, as it was named.
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
        console.print(Text(f"  {safe(line)}"), soft_wrap=True)  # to be copied whole
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
        print_plain(console, f"cases that passed before this one: {explained.cases_passed}", "dim")
    show_cases([explained.shown], console)


def _show_excerpt(console: Console, what: str, excerpt: Excerpt) -> None:
    console.print()
    print_plain(console, f"{what}, {excerpt.file}", "bold")
    for count, line in enumerate(excerpt.lines, start=excerpt.first):
        sign, style = (">", "red") if count == excerpt.marked else (" ", "")
        source = f"{sign}{count:>5}  {safe(line.expandtabs(4))}".rstrip()
        console.print(Text(source, style=style), soft_wrap=True)
