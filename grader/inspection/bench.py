"""A student's own code in this process, on the student's own computer, to be looked at as it runs.

Nothing is isolated here, nothing is forbidden, and nothing ends what does not end by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from grader import wire
from grader.course.collection import Case, Test
from grader.course.contract import Contract
from grader.course.course import Course
from grader.feedback import sentences
from grader.grading.backends import Nowhere
from grader.grading.desk import Desk, Ran, Seat, run_test
from grader.grading.ladder import FOUNDATIONS
from grader.grading.order import Order
from grader.intake import Submission
from grader.intake.arrivals import read_answers
from grader.records.grade import TestStatus
from grader.sandbox.session import Channel, Limits, Session

UNLIMITED = Limits(math.inf, math.inf)


@dataclass(frozen=True)
class Bench:
    """The public tests of one exercise, and a student's answers to it."""

    desk: Desk
    name: str
    submission: Submission

    @property
    def contract(self) -> Contract:
        """What the exercise promises."""
        return self.desk.oracle.contracts[self.name]

    @contextmanager
    def seat(self, channel: Channel) -> Iterator[Seat]:
        """Load the student's text behind this channel."""
        wanted = tuple(
            wire.Wanted(name, unit, self.desk.stubs.get(name, ""))
            for name, unit in self.desk.course.unit_of.items()
        )
        opening = wire.Open(self.submission.sources, wanted)
        with closing(Session(lambda _: channel, opening, UNLIMITED)) as session:
            yield Seat(self.desk, session, self.desk.watched)


@contextmanager
def open_bench(course: Course, name: str, folder: Path | None = None) -> Iterator[Bench]:
    """Load the public checks of one exercise, and the answers in `folder` or in the course's.

    Raises `CallError` for a name or a folder that is not right.
    """
    course.one(name, "name one exercise of it")
    answers = folder or course.folder
    submission = read_answers(answers, course)
    with Order(
        course,
        course.seed,
        course.checks_of([name]),
        only=(name,),
        stubs=course.has_stubs_beside(answers),
        backend=nullcontext(Nowhere()),
        isolation="weak",
    ).desk() as desk:
        yield Bench(desk, name, submission)


# --- along the ladder, as grading goes -----------------------------------------------------------


@dataclass(frozen=True)
class Ending:
    """How the exercise, or one case of a test, ended."""

    title: str
    status: TestStatus
    message: str


def obstacle(bench: Bench, seat: Seat) -> Ending | None:
    """Why no test can be run, if so."""
    found = seat.calls.found[bench.name]
    match found.status:
        case "stub":
            return Ending(sentences.EXISTS, "missing", sentences.UNTOUCHED)
        case "missing":
            return Ending(sentences.EXISTS, "missing", sentences.not_defined(found))
        case "broken":
            return Ending(sentences.EXISTS, "error", sentences.broken(found))
    told = sentences.signature(found, bench.contract)
    return Ending(sentences.SIGNATURE, "failed", told) if told else None


def run_cases(bench: Bench, seat: Seat) -> Iterator[tuple[Test, Case, Ran]]:
    """Run each case of the public tests; of a test, up to the first that does not pass.

    When one on a rung fails that others stand on, tests of other rungs are left out.
    """
    found = seat.calls.found[bench.name]
    failed_at: str | None = None
    for test in bench.desk.tests[bench.name]:
        if failed_at is not None and test.rung != failed_at:
            continue
        for case in test.cases:
            ran = run_test(bench.desk, seat, replace(test, cases=(case,)))
            if test.rung == "efficiency" and ran.status == "passed" and found.evasions:
                ran = replace(ran, status="failed", message=sentences.uncounted(found.evasions[0]))
            yield test, case, ran
            if ran.status != "passed":
                failed_at = test.rung if test.rung in FOUNDATIONS else failed_at
                break


def forbidden_ending(bench: Bench, seat: Seat) -> Ending | None:
    """The forbidden operations that were used, if any were."""
    uses = seat.calls.uses(bench.name)
    groups = bench.desk.course.exercises[bench.name].forbidden
    if not uses or not groups:
        return None
    titles = [bench.desk.course.file.operations[group].title for group in groups]
    return Ending(sentences.forbidden_title(titles), "failed", sentences.forbidden(uses))
