"""Plays one case of a test on one answer: runs the test's function, and records the outcome."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from grader import wire
from grader.course.collection import Case, Test
from grader.course.contract import ContractBroken
from grader.course.forms import TensorSpec
from grader.course.references import Overheard, ReferenceCall
from grader.feedback import margins, sentences
from grader.feedback.differences.pair import computed_on
from grader.feedback.disagreement import Disagreement
from grader.feedback.margins import Margin
from grader.grading.desk import Desk, Seat
from grader.grading.diagnosis import within_size
from grader.grading.replays import Given
from grader.proxies.calls import Seen, StudentRaised
from grader.records.faults import CallError
from grader.records.grade import WRONG, Picture, TestStatus
from grader.sandbox.session import Limits, Session, StudentCall, StudentLost
from grader.unsandboxed.in_process import ours, unseen_prints

AnyCall = StudentCall | ReferenceCall


@dataclass(frozen=True)
class Transcript:
    """The record of one case of a test, played on one answer."""

    status: TestStatus
    message: str | None = None
    picture: Picture | None = None
    seen: Seen = field(default_factory=Seen)
    calls: tuple[AnyCall, ...] = ()  # calls to the answer and references, if the desk listens
    margin: Margin | None = None  # the nearest margin, if the desk measures margins
    misshapen: bool = False  # a result had another shape or dtype than the statement says
    place: wire.Place | None = None  # the student's line that raised

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.status == "passed"

    @property
    def given(self) -> Given:
        """The outcome for a diagnosis: the results of the calls if the case is wrong."""
        counts = self.status in WRONG
        return Given(
            self.passed, within_size(self.seen.evidence()) if counts else (), self.seen.used()
        )

    @property
    def known(self) -> Given:
        """The outcome for the sheet: the results of the calls to a known answer."""
        return Given(self.passed, self.seen.evidence(), self.seen.used())


def play(desk: Desk, seat: Seat, test: Test, case: Case, *, words: bool = True) -> Transcript:
    """Play one case of a test on an answer.

    The transcript of a hidden test has no picture and no prints, unless the desk is `in_full`.
    Without `words`, a transcript has no message either; this takes half as long.
    """
    make = desk.make_for(test, case)
    hidden = test.hidden and not desk.in_full  # a verdict must not reveal the test's inputs
    with margins.listening() if desk.margins is not None else nullcontext() as measured:
        try:
            student = seat.begin(make, test.memory_mb, hidden)
            reference = desk.reference(make)
            if desk.listener is not None:
                reference = Overheard(reference, desk.listener(make, seat))
            fixtures = {"make": make, "reference": reference, "student": student}
            arguments = {name: fixtures[name] for name in test.fixtures}
            with computed_on(desk.device):
                test.function(**arguments, **case.parameters)
            ended = Transcript("passed")
        except (KeyboardInterrupt, CallError):  # CallError: a recording that cannot be used
            raise
        except BaseException as error:
            ended = _ended(desk, seat, test, error, words)
    seen = seat.calls.seen
    seen.printed = seat.session.printed
    ended = replace(
        ended,
        picture=None if hidden else ended.picture,
        message=ended.message if hidden else sentences.with_prints(ended.message, seen.printed),
        seen=seen,
        calls=tuple(seat.session.calls),
        margin=margins.nearest(measured or []),
    )
    if desk.margins is not None and ended.margin is not None:
        desk.margins.append((test, case, ended.margin))
    seat.calls.end()
    return ended


def _ended(desk: Desk, seat: Seat, test: Test, error: BaseException, words: bool) -> Transcript:
    """The transcript of a case in which the test raised this error."""
    match error:
        case AssertionError() | pytest.fail.Exception():
            if not words:
                return Transcript("failed")
            picture = error.picture(_axes(desk, test)) if isinstance(error, Disagreement) else None
            message = str(error) or f"an assertion failed ({test.place})"
            misshapen = isinstance(error, ContractBroken)
            return Transcript("failed", message, picture, misshapen=misshapen)
        case StudentRaised(kind=kind, text=text):
            used = kind == "ForbiddenOperation"
            if used and seat.calls.note_use(test.exercise, text, error.place):
                return Transcript("skipped")  # the check for forbidden operations reports it
            place, caller = seat.session.line(error.place), seat.session.line(error.caller)
            message = sentences.raised(kind, text, place, error.operands, error.sizes, caller)
            return Transcript("error", message, place=place)
        case StudentLost(status=status, text=text):
            return Transcript(status, text)
    # A fault of the test's author or of the grader, such as pytest.skip or SystemExit.
    return Transcript("grader_error", _crash(test, error) if words else None)


def _crash(test: Test, error: BaseException) -> str:
    """The line of the test that raised, the exception, and the traceback from that line on."""
    frames = traceback.extract_tb(error.__traceback__)
    file = test.function.__code__.co_filename
    own = [number for number, frame in enumerate(frames) if frame.filename == file]
    place = f"{file}:{frames[own[-1]].lineno}" if own else test.place
    trace = "".join(traceback.format_list(frames[own[0] :] if own else frames))
    return f"{place}: {type(error).__name__}: {error}\n{trace}".rstrip()


def _axes(desk: Desk, test: Test) -> list[str] | None:
    """The names of the axes of an exercise's result; None if fewer than two have names."""
    contract = desk.oracle.contracts[test.exercise]
    returns = contract.called.returns
    if not isinstance(returns, TensorSpec) or returns.dimensions is None:
        return None
    names = [dimension.label for dimension in returns.dimensions if not dimension.variadic]
    return names if len(names) >= 2 else None


# --- references and known answers ----------------------------------------------------------------


def seat_of(desk: Desk, definitions: Mapping[str, Any]) -> Seat:
    """A seat for references or known answers, which run in this process."""
    session = Session(lambda _: ours(definitions), wire.Open((), ()), Limits())
    return Seat(desk, session)


def replay(
    desk: Desk, definitions: Mapping[str, Any], test: Test, case: Case, *, words: bool = False
) -> Transcript:
    """Play one case of a test on references or known answers in this process."""
    # Uses of forbidden functions are recorded, but the functions work: a known mistake may be to
    # use one of them.
    seat = seat_of(desk, definitions)
    with warnings.catch_warnings(action="ignore"), unseen_prints():
        return play(desk, seat, test, case, words=words)
