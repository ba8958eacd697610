"""A desk holds everything that the submissions of a batch share; a seat holds one submission.

A desk has the course, its tests (collected once), the references, and the process from which jails
are forked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grader import wire
from grader.course.collection import Case, Test, unchecked_rules
from grader.course.course import Course
from grader.course.references import Listener, LiveOracle, Oracle, Reference
from grader.course.statements import stated_or_none
from grader.course.tensors import Make
from grader.feedback.margins import Margin
from grader.grading.diagnosis import Diagnosis
from grader.grading.replays import Replays
from grader.grading.sheet import Sheet
from grader.intake import Submission
from grader.proxies.calls import Calls
from grader.proxies.remote import Student
from grader.sandbox.session import Backend, Device, Limits, Session

Measured = tuple[Test, Case, Margin]


@dataclass
class Desk:
    """Everything that the submissions of one batch share: the course, its tests, the references."""

    course: Course
    oracle: Oracle
    backend: Backend
    seed: str
    tests: Mapping[str, Sequence[Test]]  # by exercise, in ladder order
    fingerprint: str
    stubs: Mapping[str, str] = field(default_factory=dict)  # the stubs' skeletons, by exercise
    sheet: Sheet | None = None  # the results of the tests on known answers
    isolation: tuple[str, ...] = ()  # each jail's layers; also "weak" if they do not suffice
    device: Device = "cpu"  # the device on which submissions compute
    listener: Callable[[Make, Seat], Listener] | None = None  # see `listening`
    margins: list[Measured] | None = None  # see `measuring`
    in_full: bool = False  # whether transcripts of hidden tests keep pictures and prints

    def make(self, exercise: str, test: str, case: str, seed: str = "") -> Make:
        """The seeded inputs for one case of a test; an empty seed means the desk's seed."""
        return Make(seed or self.seed, exercise, f"{test}[{case}]")

    def make_for(self, test: Test, case: Case) -> Make:
        """The seeded inputs of a case.

        Public checks use the course's public seed, since students see their inputs.
        """
        seed = self.seed if test.hidden else self.course.seed
        return self.make(test.exercise, test.name, case.label, seed)

    def reference(self, make: Make) -> Reference:
        """The references, with weights drawn from `make`."""
        return self.oracle.reference(make)

    @property
    def definitions(self) -> Mapping[str, Any]:
        """The references' definitions by exercise; only in a course with solutions."""
        assert isinstance(self.oracle, LiveOracle)
        return self.oracle.definitions

    @property
    def replays(self) -> Replays:
        """The replays, which run known answers in tests; only in a course with solutions."""
        assert self.sheet is not None
        assert self.sheet.replays is not None
        return self.sheet.replays

    @contextmanager
    def listening(self, listener: Callable[[Make, Seat], Listener]) -> Iterator[None]:
        """Pass each call of a reference and its result to a listener, inside the ``with`` block.

        Seats that are opened inside the block also keep the calls of the student's code.
        """
        self.listener = listener
        try:
            yield
        finally:
            self.listener = None

    @contextmanager
    def measuring(self) -> Iterator[list[Measured]]:
        """Collect the nearest margin of each case that is played inside the ``with`` block."""
        self.margins = []
        try:
            yield self.margins
        finally:
            self.margins = None

    def close(self) -> None:
        """End the process in which known mistakes run."""
        if self.sheet is not None:
            self.sheet.close()

    @property
    def wanted(self) -> list[wire.Wanted]:
        """The definitions to look for in a submission: every exercise of the course."""
        unit_of = self.course.unit_of.items()
        return [wire.Wanted(name, unit, self.stubs.get(name, "")) for name, unit in unit_of]

    @cached_property
    def limits(self) -> Limits:
        """The limits on time and memory for a submission; they apply to known mistakes too."""
        limits = self.course.file.limits
        return Limits(limits.test_seconds, limits.submission_seconds, limits.memory_mb)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis, which names mistakes; None if the desk has no sheet."""
        return Diagnosis(self.sheet) if self.sheet is not None else None

    @contextmanager
    def seat(
        self,
        submission: Submission,
        exercises: Sequence[str] | None = None,
        *,
        probes: bool = False,
    ) -> Iterator[Seat]:
        """Open a jail for a submission; close the jail at the end of the ``with`` block.

        Without `exercises`, the seat lists the definitions of all exercises. `probes` says whether
        the text has probes, see `grader.questions`.
        """
        wanted = [w for w in self.wanted if exercises is None or w.name in exercises]
        others = tuple(w for w in self.wanted if w not in wanted)
        opening = wire.Open(submission.sources, tuple(wanted), others=others, probes=probes)
        asked = self.tests if exercises is None else exercises
        # `grade_exercises` begins with this exercise, so the first process is made for it.
        first = min(asked, key=self.forbidden.__getitem__, default="")
        session = Session(self.backend.open, opening, self.limits, self.forbidden, first)
        session.listens = self.listener is not None
        try:
            yield Seat(self, session)
        finally:
            session.close()

    def rules(self, exercise: str, keys: Iterable[str]) -> Mapping[str, str]:
        """The sentences for these rules in the exercise's statement, by the rule's key."""
        stated = stated_or_none(self.course, exercise)
        if stated is None:
            return {}
        said = {key: stated.sentence(key) for key in keys if key in stated.keys}
        return {key: sentence for key, sentence in said.items() if sentence}

    def unchecked(self, exercise: str) -> Mapping[str, str]:
        """The rules that no public check tests; empty if hidden tests are collected too."""
        tests, stated = self.tests[exercise], stated_or_none(self.course, exercise)
        if stated is None or any(test.hidden for test in tests):
            return {}
        return unchecked_rules(stated, tests)

    @cached_property
    def forbidden(self) -> Mapping[str, tuple[str, ...]]:
        """The torch functions and the dispatcher's layers that each exercise forbids."""
        groups = {
            name: [self.course.file.operations[group] for group in exercise.forbidden]
            for name, exercise in self.course.exercises.items()
        }
        return {
            name: tuple(part for one in some for part in (*one.functions, *one.layers))
            for name, some in groups.items()
        }


class Seat:
    """One submission: the session with its process, and the calls to its code."""

    def __init__(self, desk: Desk, session: Session) -> None:
        self.session = session
        aliases = desk.course.file.aliases
        self.calls = Calls(
            session, desk.oracle.contracts, aliases.arguments, aliases.parameters, desk.forbidden
        )

    @property
    def listing(self) -> wire.Listing:
        """The submission's definition of each exercise."""
        return self.session.listing

    def begin(self, make: Make, memory_mb: int | None = None, hidden: bool = False) -> Student:
        """Begin a case: new proxies, seeded generators, a new time limit, a memory limit.

        The submission's process lacks the functions that the exercise forbids.
        """
        self.calls.begin(make.seed("guest"), make.exercise, memory_mb, hidden)
        return Student(self.calls)
