"""Throughput: submissions graded at a desk and committed to a gradebook, as in a batch."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from grader import wire
from grader.course.course import Course, load_course
from grader.grades.gradebook import Gradebook, open_gradebook
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission
from grader.records.grade import Grade
from grader.run.workers import share
from tests.support.places import ROOT

Shared = Callable[
    [Order, Callable[[Desk, Submission], Grade], Sequence[Submission]], Iterable[Grade]
]

ADA = ROOT / "tests" / "submissions" / "ada"


def course() -> Course:
    """The course of this repository."""
    return load_course(ROOT / "exercises")


def order(*only: str) -> Order:
    """What grading these exercises takes, or all of them."""
    opened = course()
    chosen = opened.select(only)
    return Order(opened, opened.hidden_seed(), opened.tests_of(chosen), chosen)


def answers(units: Sequence[str], count: int) -> Iterator[Submission]:
    """Right answers to these units, no two of the same text."""
    texts = {unit: (ADA / f"{unit}.py").read_text("utf-8") for unit in units}
    for number in range(count):
        sources = tuple(
            wire.SourceText(f"{unit}.py", (f"{text}\n# {number}\n",))
            for unit, text in texts.items()
        )
        yield Submission(f"student_{number:05}", sources)


@contextmanager
def gradebook() -> Iterator[Gradebook]:
    """A gradebook for a while."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_gradebook(Path(folder), course().name) as book,
    ):
        yield book


def seconds_each(desk: Desk, submissions: Iterable[Submission], book: Gradebook) -> list[float]:
    """How long each took, from its text to its committed grade."""
    seconds = []
    for submission in submissions:
        started = time.perf_counter()
        _keep(book, submission, grade_submission(desk, submission))
        seconds.append(time.perf_counter() - started)
    return seconds


def rate(
    shared: Shared,
    jobs: int,
    what: Order,
    submissions: Sequence[Submission],
) -> float:
    """Submissions a second by so many jobs, from the first grade to the last.

    `shared` gives the grades: `workers.share`, or `cluster.share_on_cluster`.
    """
    with gradebook() as book:
        moments = []
        handed_in = {one.student: one for one in submissions}
        for one in shared(what, grade_submission, submissions):
            _keep(book, handed_in[one.student], one)
            moments.append(time.perf_counter())
    return (len(moments) - jobs) / (moments[-1] - moments[jobs - 1])


def _keep(book: Gradebook, submission: Submission, one: Grade) -> None:
    assert (one.status, one.total) == ("graded", one.max), one.student
    book.record(one, submission)


# --- many in one batch ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Footprint:
    """What this process and those below it hold; jails that are at work come and go."""

    megabytes: float  # of memory that is not shared
    descriptors: int
    processes: int


def footprint(jobs: int) -> Footprint:
    """Of this moment."""
    family = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # a jail that has just ended
            family[process] = process.ppid(), process.cmdline()
    warm = {process.pid for process, (_, line) in family.items() if "grader.guest.warm" in line}
    lasting = [process for process, (parent, _) in family.items() if parent not in warm]
    jails = 2 * jobs  # one at work, and one that waits
    left_over = max(0, len(family) - len(lasting) - jails)
    return Footprint(
        sum(process.memory_full_info().uss for process in lasting) / 2**20,
        sum(process.num_fds() for process in lasting),
        len(lasting) + left_over,
    )


@dataclass(frozen=True)
class Endurance:
    """A long batch: seconds per submission and memory in its first and its last tenth."""

    count: int
    first: float
    last: float
    early: Footprint
    late: Footprint


def endure(
    what: Order, submissions: Sequence[Submission], jobs: int, report: Callable[[int], object]
) -> Endurance:
    """Grade very many; `report` hears how many are done."""
    tenth = len(submissions) // 10
    early = late = None
    moments = []
    with gradebook() as book:
        handed_in = {one.student: one for one in submissions}
        for number, one in enumerate(share(what, grade_submission, submissions, jobs), start=1):
            _keep(book, handed_in[one.student], one)
            moments.append(time.perf_counter())
            report(number)
            if number == tenth:
                early = footprint(jobs)
            if number == len(submissions) - jobs:  # before the first worker has nothing to do
                late = footprint(jobs)
    assert early is not None
    assert late is not None
    first = (moments[tenth - 1] - moments[jobs]) / (tenth - 1 - jobs)
    last = (moments[-jobs] - moments[-jobs - tenth]) / tenth
    return Endurance(len(submissions), first, last, early, late)
