"""Many submissions: graded one after another or by several processes, committed as they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course import Course
from grader.faults import CallError, HostFault
from grader.grade import Grade
from grader.gradebook import Gradebook, open_gradebook, refuse_loss, refuse_strangers
from grader.intake import Submission

if TYPE_CHECKING:  # loading torch takes seconds: only what grades does
    from grader.grading import Desk
    from grader.isolation import Isolation

FEW = 4  # submissions for which another process, which loads torch again, is not worth it


@dataclass(frozen=True)
class Order:
    """What a batch grades with: enough to set up a desk in any process."""

    course: Course
    seed: str
    files: Mapping[Path, bool]  # test files, each with whether it is hidden
    only: tuple[str, ...] = ()
    isolation: Isolation = "strong"
    secrets: tuple[Path, ...] = ()  # what no submission may read, besides the solutions

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """The desk to grade at, in this process; raises `CallError` if the course is unfit."""
        from grader.grading import open_desk

        with open_desk(
            self.course, seed=self.seed, files=self.files, only=self.only,
            isolation=self.isolation, secrets=self.secrets,
        ) as desk:  # fmt: skip
            yield desk


def default_jobs(submissions: int) -> int:
    """As many processes as there are cores, and no more than the work is worth."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, submissions // FEW))


def run(order: Order, submissions: Sequence[Submission], jobs: int) -> Generator[Grade]:
    """Grades as they end, in any order; the caller commits them.

    The first iteration waits until torch is loaded.
    """
    if jobs == 1 or len(submissions) == 1:
        yield from _run_here(order, submissions)
    else:
        yield from _run_apart(order, submissions, min(jobs, len(submissions)))


def _run_here(order: Order, submissions: Sequence[Submission]) -> Iterator[Grade]:
    from grader.grading import grade

    with order.desk() as desk:
        for submission in submissions:
            yield grade(desk, submission)


def _run_apart(order: Order, submissions: Sequence[Submission], jobs: int) -> Iterator[Grade]:
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    pool = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_open_in_worker, initargs=(order,)
    )
    waiting = list(reversed(submissions))
    running: set[Future[Grade]] = set()
    try:
        while waiting or running:
            # A short queue: the text of a class need not travel all at once.
            while waiting and len(running) < 2 * jobs:
                running.add(pool.submit(_grade_in_worker, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise HostFault(
            "a grading process ended unexpectedly; grade again, with --jobs 1"
        ) from None
    except BaseException:
        # Ctrl-C, or a consumer that gave up: what is half graded is not waited for.
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_close_worker: ExitStack | None = None
_grade_here: Callable[[Submission], Grade] | None = None
_refusal: CallError | None = None


def _open_in_worker(order: Order) -> None:
    global _close_worker, _grade_here, _refusal
    import atexit

    from grader.grading import grade

    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _close_worker = ExitStack()
    try:
        desk = _close_worker.enter_context(order.desk())
    except CallError as error:
        # Told by the first grade: an exception in here would only break the pool.
        _refusal = error
        return
    atexit.register(_close_worker.close)
    _grade_here = partial(grade, desk)


def _grade_in_worker(submission: Submission) -> Grade:
    if _refusal is not None:
        raise _refusal
    assert _grade_here is not None
    return _grade_here(submission)


# --- into a gradebook ----------------------------------------------------------------------------


def grade_into(
    folder: Path,
    order: Order,
    submissions: Sequence[Submission],
    jobs: int,
    report: Callable[[Grade], object] = id,
    *,
    replace: bool = False,
) -> list[Grade]:
    """Grade a batch into a gradebook, by student; `report` hears of each grade once committed.

    Nothing is written before the course's tests are collected, so that bad input leaves no trace.
    Grades of an earlier run that this one would lose are lost only with `replace`.
    """
    students = [submission.student for submission in submissions]
    exercises = order.course.select(order.only)
    refuse_strangers(folder, order.course.name)
    if not replace:
        refuse_loss(folder, students, exercises)
    with closing(run(order, submissions, jobs)) as grades, ExitStack() as stack:
        book: Gradebook | None = None
        for grade in grades:
            if book is None:
                book = stack.enter_context(open_gradebook(folder, order.course.name))
            book.record(grade)
            report(grade)
        assert book is not None
        book.keep_only(students)
        book.write_files(exercises)
        return list(book.grades())
