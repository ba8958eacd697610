"""How to grade, as one value, and what it decides; work at desks, here or in other processes.

While the key of a submission is the same, so is its grade.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from grader.course.course import Course
from grader.intake import Submission
from grader.records.faults import CallError, HostFault
from grader.sandbox import jails
from grader.sandbox.jails import WITHOUT
from grader.sandbox.session import Device
from grader.unsandboxed import worker

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.sandbox.jails import Isolation
    from grader.sandbox.session import Backend


WorkItem = TypeVar("WorkItem")
Result = TypeVar("Result")

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python to leave the working directory out of its path
TRIES = 2  # pools of processes that may break before any of them has a result
FEW = 4  # items for which another process, which loads torch again, is not worth it


@dataclass(frozen=True)
class Order:
    """Enough to set up a desk in any process."""

    course: Course
    seed: str
    files: Mapping[Path, bool]  # test files, each with whether it is hidden
    only: tuple[str, ...] = ()
    stubs: bool = True  # whether answers are compared with the stubs
    isolation: Isolation = "strong"
    secrets: tuple[Path, ...] = ()  # what no submission may read, besides the solutions
    # Where student code runs; jails, unless it needs a device.
    backend: AbstractContextManager[Backend] | None = None
    device: Device = "cpu"
    # A folder of this machine where it is kept how known mistakes end; else each desk finds out.
    outcomes: Path | None = None

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """The desk, in this process; raises `CallError` if the course is unfit."""
        # The other process loads torch while this one does, so it is started before the import.
        cpu = self.device == "cpu"
        start = self.backend or (jails.Warm() if cpu else worker.backend(device=self.device))
        with start as behind:
            from grader.grading.desk import open_desk
            from grader.grading.diagnosis import kept_in

            kept = nullcontext() if self.outcomes is None else kept_in(self.outcomes, basis(self))
            with (
                kept as outcomes,
                open_desk(
                    self.course,
                    seed=self.seed,
                    files=self.files,
                    only=self.only,
                    stubs=self.stubs,
                    isolation=self.isolation,
                    secrets=self.secrets,
                    backend=nullcontext(behind),
                    device=self.device,
                    outcomes=outcomes,
                ) as desk,
            ):
                yield desk


def default_jobs(items: int) -> int:
    """As many processes as there are cores, and no more than the work is worth."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, items // FEW))


def share(
    order: Order, work: Callable[[Desk, WorkItem], Result], items: Sequence[WorkItem], jobs: int
) -> Generator[Result]:
    """What `work` makes of each item, as it ends, in any order.

    `work` is a function of a module, or a `functools.partial` of one: it travels to other
    processes. The first iteration waits until torch is loaded.
    """
    if not items:
        return
    if jobs == 1 or len(items) == 1:
        with order.desk() as desk:
            for item in items:
                yield work(desk, item)
    else:
        yield from _share_out(order, work, items, min(jobs, len(items)))


@contextmanager
def apart() -> Iterator[None]:
    """Meanwhile, no process of Python that is started imports from the working directory.

    What multiprocessing starts would look there first, even for Python's own modules, and the
    working directory may be a hand-in.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def _share_out(
    order: Order, work: Callable[[Desk, WorkItem], Result], items: Sequence[WorkItem], jobs: int
) -> Iterator[Result]:
    waiting = list(reversed(items))
    in_vain = 0
    with apart():
        while waiting and in_vain < TRIES:
            before = len(waiting)
            yield from _until_broken(order, work, waiting, jobs)
            in_vain = in_vain + 1 if len(waiting) == before else 0
    if waiting:
        raise HostFault("worker processes end unexpectedly; try again, with --jobs 1")


def _until_broken(
    order: Order, work: Callable[[Desk, WorkItem], Result], waiting: list[WorkItem], jobs: int
) -> Iterator[Result]:
    """Results until none waits; or until a process ends unexpectedly, and its fellows with it.

    Whatever has no result by then waits again.
    """
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_open, initargs=(order,))
    running: dict[Future[Result], WorkItem] = {}
    try:
        while waiting or running:
            # A short queue: the text of a class need not travel all at once.
            while waiting and len(running) < 2 * jobs:
                future = pool.submit(_work_here, work, waiting[-1])
                running[future] = waiting.pop()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield future.result()
                del running[future]
    except BrokenProcessPool:
        waiting += running.values()
    except BaseException:
        # Ctrl-C, or a consumer that gave up: what is half done is not waited for.
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# --- in a worker ---------------------------------------------------------------------------------

_desk: Desk | None = None
_refusal: CallError | None = None


def _open(order: Order) -> None:
    global _desk, _refusal
    import atexit

    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    closing = ExitStack()
    try:
        _desk = closing.enter_context(order.desk())
    except CallError as error:
        # Told by the first item: an exception in here would only break the pool.
        _refusal = error
        return
    atexit.register(closing.close)


def _end_with_parent() -> None:
    """What a parent that was killed cannot do any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work_here(work: Callable[[Desk, WorkItem], Result], item: WorkItem) -> Result:
    if _refusal is not None:
        raise _refusal
    assert _desk is not None
    return work(_desk, item)


# --- reuse ---------------------------------------------------------------------------------------
#
# What decides a grade, as a key: while the key is the same, so would be the grade.
#
# A student's name is no part of it, nor are marks of lateness, attempts and groups: those are
# taken from today's hand-in.


KIT = Path(__file__).parents[1]
CARRIED = "bundle"  # the course in a wheel: no part of the kit


def keys(order: Order) -> Callable[[Submission], str]:
    """The key of each submission, under all else that decides its grade."""
    shared = _digest(
        basis(order), order.course.select(order.only), order.isolation, os.environ.get(WITHOUT, "")
    )
    return lambda submission: _digest(shared, submission.sources, submission.problems)


def basis(order: Order) -> str:
    """What decides how any code ends in the tests: ours too, which runs in no jail.

    Ours never runs on the device, but tests allow for what one computes otherwise.
    """
    return _digest(
        order.course.fingerprint(),
        order.seed,
        order.device,
        kit(),
        metadata.version("torch"),
        platform.python_version(),
    )


def kit() -> str:
    """The version of the kit; its text says more than its number, in a clone that is pulled."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(KIT.rglob("*.py")):
        if path.relative_to(KIT).parts[0] != CARRIED:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
