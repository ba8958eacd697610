"""The desk at which tests meet answers.

A desk holds what all submissions of a batch share: the course, its tests (collected once), the
references, the warm process. A seat is one submission's place at it.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
import torch

from grader import wire
from grader.course.collection import Case, Test, collect, rung, unchecked_rules
from grader.course.contract import ContractBroken, TensorSpec
from grader.course.course import Course
from grader.course.references import (
    Listener,
    LiveOracle,
    Oracle,
    Overheard,
    Reference,
    open_oracle,
)
from grader.course.statements import stated_or_none
from grader.course.tensors import Make
from grader.feedback import margins, sentences
from grader.feedback.differences.pair import computed_on
from grader.feedback.disagreement import Disagreement
from grader.feedback.margins import Margin
from grader.grading.diagnosis import Diagnosis
from grader.grading.recorded import Recorded
from grader.grading.replays import Given, Replays
from grader.grading.rows import Rows, cache
from grader.grading.sheet import Sheet
from grader.grading.transcripts import CaseKey, Transcript, Transcripts
from grader.intake import Submission
from grader.mistakes import Library, load_library
from grader.proxies.calls import Calls, StudentRaised
from grader.proxies.remote import Student
from grader.records.faults import CallError
from grader.records.grade import Picture, TestStatus
from grader.sandbox.jails import shortfall
from grader.sandbox.session import (
    Backend,
    Device,
    Killed,
    Limits,
    Session,
    StudentLost,
    Unlike,
)
from grader.unsandboxed import forked
from grader.unsandboxed.in_process import ours, unseen_prints
from grader.wire.definitions import skeletons

if TYPE_CHECKING:
    from grader.grading.order import Order


Measured = tuple[Test, Case, Margin]


@dataclass
class Desk:
    """What the submissions of one batch share."""

    course: Course
    oracle: Oracle
    backend: Backend
    seed: str
    tests: Mapping[str, Sequence[Test]]  # by exercise, in ladder order
    fingerprint: str
    stubs: Mapping[str, str] = field(default_factory=dict)  # skeletons by exercise
    known: Sheet | None = None  # how tests end on known answers
    isolation: tuple[str, ...] = ()  # layers of each jail, and "weak" where they are not enough
    device: Device = "cpu"  # on which submissions compute
    transcripts: Transcripts = field(default_factory=Transcripts)
    listener: Callable[[Make, Seat], Listener] | None = None  # see `listening`
    margins: list[Measured] | None = None  # see `measuring`
    in_full: bool = False  # what hidden tests end with is for an instructor to read

    def make(self, exercise: str, test: str, case: str, seed: str = "") -> Make:
        """Seeded inputs for one case of one test; by the desk's seed, unless it has another."""
        return Make(seed or self.seed, exercise, f"{test}[{case}]")

    def holds_back(self, test: Test) -> bool:
        """Whether what a test saw is not for whoever reads how it ended."""
        return test.hidden and not self.in_full

    def make_for(self, test: Test, case: Case) -> Make:
        """The inputs of a test. What a public check draws is shown, so it knows no hidden seed."""
        seed = self.seed if test.hidden else self.course.seed
        return self.make(test.exercise, test.name, case.label, seed)

    def reference(self, make: Make) -> Reference:
        """The references, with weights drawn from `make`."""
        return self.oracle.reference(make)

    @property
    def definitions(self) -> Mapping[str, Any]:
        """The references themselves, where they are at hand."""
        assert isinstance(self.oracle, LiveOracle)
        return self.oracle.definitions

    @property
    def live(self) -> Replays:
        """The known answers themselves, where they are at hand."""
        assert self.known is not None
        assert self.known.replays is not None
        return self.known.replays

    @contextmanager
    def listening(self, listener: Callable[[Make, Seat], Listener]) -> Iterator[None]:
        """Meanwhile every case is run, and a listener hears what references are asked in it.

        At seats that are opened meanwhile, what the student's code is asked is kept as well.
        """
        self.listener = listener
        try:
            yield
        finally:
            self.listener = None

    @contextmanager
    def measuring(self) -> Iterator[list[Measured]]:
        """How near comparisons come to their tolerances, as cases end."""
        self.margins = []
        try:
            yield self.margins
        finally:
            self.margins = None

    def close(self) -> None:
        """End what known mistakes run in."""
        if self.known is not None:
            self.known.close()

    @property
    def wanted(self) -> list[wire.Wanted]:
        """What to look for in a submission: every exercise of the course."""
        unit_of = self.course.unit_of.items()
        return [wire.Wanted(name, unit, self.stubs.get(name, "")) for name, unit in unit_of]

    @cached_property
    def limits(self) -> Limits:
        """What a submission may use, and a known mistake."""
        limits = self.course.file.limits
        return Limits(limits.test_seconds, limits.submission_seconds, limits.memory_mb)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Names mistakes, in a course that knows some."""
        return Diagnosis(self.known) if self.known is not None else None

    @contextmanager
    def seat(
        self, submission: Submission, exercises: Sequence[str] | None = None
    ) -> Iterator[Seat]:
        """Open a jail for a submission, and close it afterwards whatever happens.

        It is asked for these exercises only, where they are named.
        """
        wanted = [w for w in self.wanted if exercises is None or w.name in exercises]
        others = tuple(w for w in self.wanted if w not in wanted)
        opening = wire.Open(submission.sources, tuple(wanted), others=others)
        asked = self.tests if exercises is None else exercises
        first = min(asked, key=self.forbidden.__getitem__, default="")  # see `grade_exercises`
        session = Session(self.backend.open, opening, self.limits, self.forbidden, first)
        session.listens = self.listener is not None
        try:
            yield Seat(self, session)
        finally:
            session.close()

    def rules(self, exercise: str, keys: Iterable[str]) -> Mapping[str, str]:
        """The sentences of these rules, which the statement of the exercise has."""
        stated = stated_or_none(self.course, exercise)
        if stated is None:
            return {}
        said = {key: stated.sentence(key) for key in keys if key in stated.keys}
        return {key: sentence for key, sentence in said.items() if sentence}

    def unchecked(self, exercise: str) -> Mapping[str, str]:
        """The rules that this exercise's tests leave out, where none of them is hidden."""
        tests, stated = self.tests[exercise], stated_or_none(self.course, exercise)
        if stated is None or any(test.hidden for test in tests):
            return {}
        return unchecked_rules(stated, tests)

    @cached_property
    def forbidden(self) -> Mapping[str, tuple[str, ...]]:
        """The torch functions that each exercise forbids, and layers of the dispatcher."""
        groups = {
            name: [self.course.file.operations[group] for group in exercise.forbidden]
            for name, exercise in self.course.exercises.items()
        }
        return {
            name: tuple(part for one in some for part in (*one.functions, *one.layers))
            for name, some in groups.items()
        }


class Seat:
    """One submission at the desk."""

    def __init__(self, desk: Desk, session: Session) -> None:
        self.session = session
        aliases = desk.course.file.aliases
        self.calls = Calls(
            session, desk.oracle.contracts, aliases.arguments, aliases.parameters, desk.forbidden
        )

    @property
    def listing(self) -> wire.Listing:
        """What stands under each exercise's name."""
        return self.session.listing

    def begin(self, make: Make, memory_mb: int | None = None, hidden: bool = False) -> Student:
        """Begin a test: fresh handles, seeded generators, a new time limit, a memory limit.

        What the test's exercise forbids is unavailable in the process that answers.
        """
        self.calls.begin(make.seed("guest"), make.exercise, memory_mb, hidden)
        return Student(self.calls)


def set_up(order: Order, behind: Backend, rows: Rows | None = None) -> Desk:
    """Load references and tests for a desk, before a back end that has been started.

    Where there are no solutions, recordings answer instead. What is known of the course is looked
    up in `rows`, and kept there. Raises `CallError` if the course or the machine is unfit.
    """
    course = order.course
    if order.device == "cuda" and not torch.cuda.is_available():
        raise CallError("torch finds no CUDA device here: leave out --device cuda")
    recorded = None if course.has_solutions else Recorded(course)
    oracle: Oracle = recorded or open_oracle(course)
    tests = _collected(order)
    pristine: dict[str, str] = {}
    for text in course.stubs().values() if order.stubs else ():
        pristine |= skeletons(text)
    torch.set_num_threads(1)
    desk = Desk(
        course,
        oracle,
        behind,
        order.seed,
        tests,
        fingerprint=course.fingerprint(),
        stubs=pristine,
        known=Sheet(recorded.rows) if recorded is not None else None,
        isolation=_layers(order, behind),
        device=order.device,
    )
    if recorded is None:
        desk.known = live_known(desk, load_library(course, tests), rows)
    return desk


def _collected(order: Order) -> dict[str, list[Test]]:
    """The tests of each exercise that is asked for, in ladder order."""
    chosen = order.course.select(order.only)
    tests: list[Test] = []
    for hidden in (False, True):
        group = [path for path, is_hidden in order.files.items() if is_hidden is hidden]
        tests += collect(group, hidden, order.course) if group else []
    tests.sort(key=lambda test: rung.order.index(test.rung))
    if any(order.files.values()):
        _refuse_unpaid(chosen, tests)
    return {name: [test for test in tests if test.exercise == name] for name in chosen}


def _layers(order: Order, behind: Backend) -> tuple[str, ...]:
    """What keeps submissions from the solutions and secrets, with "weak" where it is not enough."""
    solutions = order.course.secrets if order.course.has_solutions else ()
    kept = [cache()] if order.remembers else []
    reach = shortfall(behind, [*solutions, *order.secrets, *kept])
    if reach is not None and order.isolation == "strong":
        raise CallError(
            f"submissions are not isolated enough to be graded: {reach} (`grader doctor` "
            "lists the layers; --isolation=weak grades all the same, and says so in each grade)"
        )
    return behind.layers if reach is None else (*behind.layers, "weak")


def live_known(desk: Desk, library: Library, rows: Rows | None = None) -> Sheet:
    """The sheet of this desk, which finds out how the tests end on known answers."""
    cases = {
        (test.key, case.label): (test, case)
        for tests in desk.tests.values()
        for test in tests
        for case in test.cases
    }
    replays = Replays(
        library,
        desk.definitions,
        lambda definitions, *which: replay(desk, definitions, *cases[which]),
        # A fork would keep to itself what a listener hears.
        lambda: desk.limits if forked.possible() and desk.listener is None else None,
    )
    return Sheet(rows or Rows(), replays)


def _refuse_unpaid(exercises: Sequence[str], tests: Sequence[Test]) -> None:
    """An exercise without hidden tests would be a zero for everyone: refuse to grade it."""
    paid = {test.exercise for test in tests if test.hidden and test.weight > 0}
    for name in exercises:
        if name not in paid:
            raise CallError(f"no hidden test carries points for {name}: grading it makes no sense")


# --- playing a test ------------------------------------------------------------------------------


def play_case(desk: Desk, seat: Seat, test: Test, case: Case) -> Transcript:
    """Play a case, and tell of it what may be told: of a hidden one no picture and no print."""
    played = play(desk, seat, test, case)
    if desk.holds_back(test):  # its inputs and what was expected are for no one to read back
        return replace(played, picture=None)
    return replace(played, message=sentences.with_prints(played.message, played.seen.printed))


def play(desk: Desk, seat: Seat, test: Test, case: Case, *, words: bool = True) -> Transcript:
    """Play one case of a test on an answer: by its transcript, if there is one, or by running it.

    What was seen in it counts from then on among what the submission has done. Without `words`
    nobody is told why a case failed, which takes as long as the rest.
    """
    key = (desk.seed, test.exercise, test.key, case.label)

    def once() -> Transcript:
        try:
            return _played(desk, seat, test, case, key)
        except Killed:  # it need not be the submission's doing, the first time
            return _played(desk, seat, test, case, key)

    if desk.margins is None:
        transcript = _caught(desk, seat, test, once, words)
    else:
        with margins.listening() as heard:
            transcript = _caught(desk, seat, test, once, words)
        transcript = replace(transcript, margin=transcript.margin or margins.nearest(heard))
        if transcript.margin is not None:
            desk.margins.append((test, case, transcript.margin))
    if not transcript.recalled:
        transcript.seen.printed = seat.session.printed
        if seat.session.tape and desk.listener is None:
            desk.transcripts.keep(key, seat.calls, transcript)
    seat.calls.end(transcript.seen)
    return transcript


def _played(desk: Desk, seat: Seat, test: Test, case: Case, key: CaseKey) -> Transcript:
    make = desk.make_for(test, case)
    student = seat.begin(make, test.memory_mb, desk.holds_back(test))
    if desk.listener is None and (known := desk.transcripts.find(key, seat.calls)) is not None:
        return known
    try:
        _call(desk, seat, test, case, make, student)
    except Unlike:  # a test that is no function of what it is answered: ask all of it again
        seat.session.close()
        student = seat.begin(make, test.memory_mb, desk.holds_back(test))
        _call(desk, seat, test, case, make, student)
    return Transcript("passed", seen=seat.calls.seen, said=tuple(seat.session.said))


def _call(desk: Desk, seat: Seat, test: Test, case: Case, make: Make, student: Student) -> None:
    fixtures: dict[str, Callable[[], object]] = {
        "make": lambda: make,
        "reference": lambda: _reference(desk, make, seat),
        "student": lambda: student,
    }
    arguments = {name: fixtures[name]() for name in test.fixtures}
    with computed_on(desk.device):
        test.function(**arguments, **case.parameters)


def _reference(desk: Desk, make: Make, seat: Seat) -> Reference:
    reference = desk.reference(make)
    return reference if desk.listener is None else Overheard(reference, desk.listener(make, seat))


def _caught(
    desk: Desk, seat: Seat, test: Test, play: Callable[[], Transcript], words: bool
) -> Transcript:
    """The transcript of a case, whatever is raised."""

    def ended(
        status: TestStatus, message: str | None = None, picture: Picture | None = None
    ) -> Transcript:
        return Transcript(status, message, picture, seat.calls.seen, tuple(seat.session.said))

    try:
        return play()
    except (AssertionError, pytest.fail.Exception) as error:
        if not words:
            return ended("failed")
        picture = error.picture(_axes(desk, test)) if isinstance(error, Disagreement) else None
        message = str(error) or f"an assertion failed ({test.place})"
        return replace(
            ended("failed", message, picture), misshapen=isinstance(error, ContractBroken)
        )
    except StudentRaised as raised:
        if raised.kind == "ForbiddenOperation" and seat.calls.note_use(
            test.exercise, raised.text, raised.place
        ):
            return ended("skipped")  # told once, by the check for forbidden operations
        place = seat.session.line(raised.place)
        return ended(
            "error",
            sentences.raised(raised.kind, raised.text, place, raised.operands, raised.sizes),
        )
    except StudentLost as lost:
        return ended(lost.status, lost.text)
    except (KeyboardInterrupt, CallError):  # CallError: a recording that cannot be used
        raise
    except BaseException:  # the author's fault or ours; pytest.skip and SystemExit among them
        told = f"{test.place}: {traceback.format_exc(limit=-4)}" if words else None
        return ended("grader_error", told)


def seat_of(desk: Desk, definitions: Mapping[str, Any]) -> Seat:
    """A seat for definitions of our own, in this process."""
    session = Session(lambda _: ours(definitions), wire.Open((), ()), Limits())
    return Seat(desk, session)


def replay(desk: Desk, definitions: Mapping[str, Any], test: Test, case: Case) -> Given:
    """Play one case of a test on definitions of our own, in this process, without words."""
    # What is forbidden is noted, and not taken away: a mistake may consist in using it.
    seat = seat_of(desk, definitions)
    # What a mistake prints, or is warned of, concerns nobody.
    with warnings.catch_warnings(action="ignore"), unseen_prints():
        played = play(desk, seat, test, case, words=False)
    return Given(played.passed, played.seen.gave(), played.seen.used())


def _axes(desk: Desk, test: Test) -> list[str] | None:
    """What the axes of an exercise's result stand for, the last two or all of them."""
    contract = desk.oracle.contracts[test.exercise]
    returns = (contract.forward or contract.call).returns
    if not isinstance(returns, TensorSpec):
        return None
    names = [dimension.label for dimension in returns.dimensions if not dimension.variadic]
    return names if len(names) >= 2 else None
