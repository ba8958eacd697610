"""Work at desks, here or in other processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from grader.grading.order import Order
from grader.records.faults import CallError, HostFault
from grader.sandbox import jails
from grader.wire.frames import PROCESSOR

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

    from grader.grading.desk import Desk


WorkItem = TypeVar("WorkItem")
Result = TypeVar("Result")

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python to leave the working directory out of its path
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
        with apart(), _lineages(order) as start:
            crew = _Crew(partial(start, work), items, set_aside)
            yield from _share_out(crew, min(jobs, len(items)))


# --- workers that are lost -----------------------------------------------------------------------
#
# A worker may be killed: by the system that has no memory left, or with its machine. What it was
# at is tried once more, alone at another worker; what only waited there is none the worse for it.


@dataclass(eq=False)
class Task(Generic[WorkItem]):
    """An item on its way to a result."""

    item: WorkItem
    lost: list[str] = field(default_factory=list)  # workers that were at it, and are gone

    def lose(self, worker: str) -> bool:
        """Note that a worker is gone which was at it; whether it is to be set aside."""
        self.lost.append(worker)
        return len(self.lost) == TRIES


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


@contextmanager
def _lineages(order: Order) -> Iterator[Callable[..., _Process[Any, Any]]]:
    """What starts a process with a desk, from the work that it is to do.

    On Linux torch is loaded twice, however many processes there are, and at the same time: in the
    process that all workers are forked from, and in that of all jails. They are two since student
    code should know the address of nothing in the process that holds the references. Once more it
    is loaded for each worker in which an answer asks for more of torch.
    """
    if sys.platform != "linux" or order.device != "cpu":  # no fork survives a GPU's driver
        yield partial(_spawned, order)
        return
    with jails.Warm() if order.backend is None else nullcontext() as warm:
        yield partial(_forked, order, warm)


def _spawned(order: Order, work: Callable[[Desk, Any], Any]) -> _Process[Any, Any]:
    with _no_interrupts():
        return _Process(multiprocessing.get_context("spawn"), partial(_serve, order, work))


def _forked(
    order: Order, warm: jails.Warm | None, work: Callable[[Desk, Any], Any]
) -> _Process[Any, Any]:
    from multiprocessing import forkserver, resource_tracker  # not on Windows

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["grader.run.mother"])
    resource_tracker.ensure_running()  # the fork server starts it, and lets Ctrl-C through then
    try:
        with _no_interrupts(), _nothing_of_ours():
            forkserver.ensure_running()
    except OSError as error:  # a socket in the temporary folder: its name may be too long
        raise CallError(
            f"worker processes cannot meet in {tempfile.gettempdir()} ({error.strerror or error}): "
            "set TMPDIR to a folder with a shorter name, or grade with --jobs 1"
        ) from None
    line = warm.split() if warm else None
    serve = partial(_serve, order, work, warm=line, environment={**os.environ})
    try:
        return _Process(context, serve)  # waits until torch is loaded there
    except (EOFError, OSError) as error:
        raise HostFault(
            "what worker processes are forked from ended while it loaded torch; try again, with "
            "--jobs 1"
        ) from error


@contextmanager
def _nothing_of_ours() -> Iterator[None]:
    """Meanwhile, what is started knows nothing of our environment but what decides on results."""
    before = {**os.environ}
    try:
        for name in before.keys() - {*PROCESSOR, SAFE_PATH}:
            del os.environ[name]
        os.environ["OMP_NUM_THREADS"] = "1"
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS", None)
        os.environ.update(before)


class _Process(Generic[WorkItem, Result]):
    """A process with a desk, which does one thing at a time."""

    def __init__(
        self, context: SpawnContext | ForkServerContext, serve: Callable[[Connection], None]
    ) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # or the end of the process would not be seen here
        self.isolation: tuple[str, ...] | None = None  # its desk's, once it has one
        self.task: Task[WorkItem] | None = None  # what it is at

    @property
    def is_free(self) -> bool:
        """Whether it has a desk, and nothing to do."""
        return self.isolation is not None and self.task is None

    def give(self, task: Task[WorkItem]) -> bool:
        """Have it do this; False if it has ended, which its pipe will tell."""
        with suppress(OSError):
            self.pipe.send(task.item)
            self.task = task
        return self.task is task

    def said(self) -> Iterator[Result]:
        """What it says next: a result, or that its desk is open. Raises `EOFError` at its end."""
        match self.pipe.recv():
            case _Opened(isolation):
                self.isolation = isolation
            case _Done(result):
                self.task = None
                yield result
            case BaseException() as error:
                raise error

    def close(self) -> None:
        """Let it end, and wait for that."""
        self.pipe.close()
        self.process.join()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Meanwhile Ctrl-C is kept back, from processes that are started too: see `_serve`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Crew(Generic[WorkItem, Result]):
    """Processes of this machine at work on items."""

    def __init__(
        self,
        start: Callable[[], _Process[WorkItem, Result]],
        items: Sequence[WorkItem],
        set_aside: SetAside[WorkItem, Result],
    ) -> None:
        self._start = start
        self._set_aside = set_aside
        self._waiting = deque(Task(item) for item in items)
        self._processes: list[_Process[WorkItem, Result]] = []
        self._in_vain = 0  # processes that ended before they had a desk, in a row

    def results(self, jobs: int) -> Iterator[Result]:
        """Results of so many processes, as they come in."""
        for _ in range(jobs):
            self._processes.append(self._start())
        while self._waiting or any(process.task for process in self._processes):
            connection.wait([process.pipe for process in self._processes])
            said: list[Result] = []
            for process in list(self._processes):
                try:
                    said += process.said() if process.pipe.poll() else ()
                except (EOFError, OSError):
                    said += self._lost(process, jobs)
            # Before anyone looks at what came: no process waits for that.
            for process in self._processes:
                if self._waiting and process.is_free and process.give(self._waiting[0]):
                    self._waiting.popleft()
            yield from said

    def _lost(self, process: _Process[WorkItem, Result], jobs: int) -> Iterator[Result]:
        """Another process takes a lost one's place, if there is work for it."""
        process.close()
        self._processes.remove(process)
        self._in_vain = self._in_vain + 1 if process.isolation is None else 0
        if self._in_vain == TRIES * jobs:
            raise HostFault("worker processes end before they can begin; try again, with --jobs 1")
        if process.task is not None and process.task.lose(str(process.process.pid)):
            assert process.isolation is not None
            yield self._set_aside(process.task.item, process.isolation, ENDED)
        elif process.task is not None:
            self._waiting.appendleft(process.task)
        if len(self._processes) < len(self._waiting):
            self._processes.append(self._start())

    def stop(self) -> None:
        """End what is half done: nobody waits for it."""
        for process in self._processes:
            process.process.terminate()

    def close(self) -> None:
        """Wait for the processes' end."""
        for process in self._processes:
            process.close()


def _share_out(crew: _Crew[WorkItem, Result], jobs: int) -> Iterator[Result]:
    with closing(crew):
        try:
            yield from crew.results(jobs)
        except BaseException:  # Ctrl-C, or a consumer that gave up
            crew.stop()
            raise


# --- in a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opened:
    """There is a desk."""

    isolation: tuple[str, ...]


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """What work came to."""

    result: Result


def _serve(
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    pipe: Connection,
    *,
    warm: socket.socket | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Open a desk, and do one thing after another at it; say what each comes to.

    `warm` is the line to a warm process of this one's own. Who was forked from a process that knew
    nothing gets its `environment` here.
    """
    if environment is not None:
        os.environ.update(environment)
    if warm is not None:
        order = replace(order, backend=jails.Warm(warm))
    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # it was kept back until here
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with order.desk() as desk:
            listens = _say(pipe, _Opened(desk.isolation))
            while listens:
                try:
                    item = pipe.recv()
                except (EOFError, ConnectionError):
                    return  # the parent has no more
                listens = _say(pipe, _Done(work(desk, item)))
    except Exception as error:
        _say(pipe, error if isinstance(error, CallError | HostFault) else _as_fault(error))


def _say(pipe: Connection, what: object) -> bool:
    """Whether the parent still listens: it may have all that it wanted."""
    try:
        pipe.send(what)
    except ConnectionError:
        return False
    return True


def _as_fault(error: Exception) -> HostFault:
    """A fault of ours, in words: not every exception survives the way between processes."""
    return HostFault("".join(traceback.format_exception(error, limit=-4)).strip())


def _end_with_parent() -> None:
    """What a parent that was killed cannot do any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
