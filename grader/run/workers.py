"""Work at desks, here or in other processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from grader.grading.order import Order
from grader.records.faults import CallError, HostFault

if TYPE_CHECKING:
    from grader.grading.desk import Desk


WorkItem = TypeVar("WorkItem")
Result = TypeVar("Result")

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python to leave the working directory out of its path
AHEAD = 2  # items at a worker: the one it is at, and the next
TRIES = 2  # workers that may be lost while they are at one item
FEW = 4  # items for which another process, which loads torch again, is not worth it


def default_jobs(items: int) -> int:
    """As many processes as there are cores, and no more than the work is worth."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, items // FEW))


ENDED = (
    f"{TRIES} processes ended unexpectedly while they were at it; to see why, give it alone, with "
    "--jobs 1"
)

# What stands for an item that cannot be done: of the item, the isolation of who was at it, and why.
SetAside = Callable[[WorkItem, tuple[str, ...], str], Result]


def fails(item: object, _: tuple[str, ...], why: str) -> Any:
    """A `SetAside` for work that is worth nothing with a gap."""
    raise HostFault(f"{item}: {why}")


def share(
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    items: Sequence[WorkItem],
    jobs: int,
    set_aside: SetAside[WorkItem, Result] = fails,
) -> Generator[Result]:
    """What `work` makes of each item, as it ends, in any order.

    `work` is a function of a module, or a `functools.partial` of one: it travels to other
    processes. The first iteration waits until torch is loaded. Of an item during which a second
    process is lost, the result is what `set_aside` makes of it.
    """
    if not items:
        return
    if jobs == 1:
        with order.desk() as desk:
            for item in items:
                yield work(desk, item)
    else:
        with apart():
            yield from _share_out(_Crew(order, work, items, min(jobs, len(items)), set_aside))


# --- workers that are lost -----------------------------------------------------------------------
#
# A worker may be killed: by the system that has no memory left, or with its machine. What it was
# at is tried once more, alone at another worker; what only waited there is none the worse for it.


@dataclass(eq=False)
class Task(Generic[WorkItem]):
    """An item on its way to a result."""

    item: WorkItem
    answer: Any = None  # a future of the kind that workers here or elsewhere give
    done: bool = False  # even if the answer has not come yet
    lost: list[str] = field(default_factory=list)  # workers that were at it, and are gone


def takes(given: Collection[Task[WorkItem]], task: Task[WorkItem]) -> bool:
    """Whether a worker that was given these may be given one more now.

    What was lost with a worker goes alone: should this one be lost too, it was not for another.
    """
    alone = any(one.lost for one in (task, *given))
    return len(given) < (1 if alone else AHEAD)


def take_back(
    given: Sequence[Task[WorkItem]], worker: str, waiting: deque[Task[WorkItem]]
) -> Task[WorkItem] | None:
    """Have what a lost worker was given wait again; what `TRIES` workers were at is returned."""
    again = list(given)
    was_at = next((one for one in given if not one.done), None)
    if was_at is not None:
        was_at.lost.append(worker)
        if len(was_at.lost) == TRIES:
            again.remove(was_at)
    waiting.extendleft(sorted(again, key=lambda one: len(one.lost)))
    return was_at if was_at not in again else None


# --- processes of this machine -------------------------------------------------------------------


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


class _Process(Generic[WorkItem]):
    """A process with a desk, and what it was given, in the order of its work."""

    def __init__(self, order: Order) -> None:
        context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
        self.pool = ProcessPoolExecutor(1, mp_context=context, initializer=_open, initargs=(order,))
        self.opened = self.pool.submit(_isolation)
        self.given: deque[Task[WorkItem]] = deque()

    @property
    def isolation(self) -> tuple[str, ...] | None:
        """Its desk's; None where it ended before it had one."""
        if not self.opened.done() or self.opened.exception() is not None:
            return None
        return self.opened.result()

    def close(self) -> None:
        """Wait for its end."""
        self.pool.shutdown(wait=True, cancel_futures=True)


class _Crew(Generic[WorkItem, Result]):
    """Processes of this machine at work on items."""

    def __init__(
        self,
        order: Order,
        work: Callable[[Desk, WorkItem], Result],
        items: Sequence[WorkItem],
        jobs: int,
        set_aside: SetAside[WorkItem, Result],
    ) -> None:
        self._order = order
        self._work = work
        self._set_aside = set_aside
        self._waiting = deque(Task(item) for item in items)
        self._processes: list[_Process[WorkItem]] = [_Process(order) for _ in range(jobs)]
        self._in_vain = 0  # processes that ended before they had a desk, in a row

    def results(self) -> Iterator[Result]:
        """Results, as they come in."""
        while self._waiting or any(process.given for process in self._processes):
            lost = False
            for place, process in enumerate(self._processes):
                try:
                    yield from self._finished(process)
                    self._hand_out(process)
                except BrokenProcessPool:
                    lost = True
                    yield from self._lost(place)
            if not lost:
                first = [process.given[0].answer for process in self._processes if process.given]
                wait(first, return_when=FIRST_COMPLETED)

    def _finished(self, process: _Process[WorkItem]) -> Iterator[Result]:
        while process.given and process.given[0].answer.done():
            result = process.given[0].answer.result()
            process.given.popleft()
            yield result

    def _hand_out(self, process: _Process[WorkItem]) -> None:
        # A short queue: the text of a class need not travel all at once.
        while self._waiting and takes(process.given, self._waiting[0]):
            task = self._waiting[0]
            task.answer = process.pool.submit(_work_here, self._work, task.item)
            process.given.append(self._waiting.popleft())

    def _lost(self, place: int) -> Iterator[Result]:
        """Another process takes a lost one's place, if there is work for it."""
        process = self._processes[place]
        process.close()
        isolation = process.isolation
        if isolation is None:
            self._waiting.extendleft(reversed(process.given))
            self._in_vain += 1
        else:
            self._in_vain = 0
            if task := take_back(process.given, "", self._waiting):
                yield self._set_aside(task.item, isolation, ENDED)
        process.given.clear()
        if self._in_vain == TRIES * len(self._processes):
            raise HostFault("worker processes end before they can begin; try again, with --jobs 1")
        if self._waiting:
            self._processes[place] = _Process(self._order)

    def close(self) -> None:
        """Wait for the processes' end."""
        for process in self._processes:
            process.close()


def _share_out(crew: _Crew[WorkItem, Result]) -> Iterator[Result]:
    with closing(crew):
        try:
            yield from crew.results()
        except BaseException:
            # Ctrl-C, or a consumer that gave up: what is half done is not waited for.
            for process in multiprocessing.active_children():
                process.terminate()
            raise


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


def _isolation() -> tuple[str, ...]:
    return () if _desk is None else _desk.isolation


def _work_here(work: Callable[[Desk, WorkItem], Result], item: WorkItem) -> Result:
    if _refusal is not None:
        raise _refusal
    assert _desk is not None
    return work(_desk, item)
