"""Work at desks, here or in other processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from grader.grading.order import Order
from grader.records.faults import CallError, HostFault

if TYPE_CHECKING:
    from grader.grading.desk import Desk


WorkItem = TypeVar("WorkItem")
Result = TypeVar("Result")

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python to leave the working directory out of its path
TRIES = 2  # pools of processes that may break before any of them has a result
FEW = 4  # items for which another process, which loads torch again, is not worth it


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
