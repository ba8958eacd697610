"""Distributes work over processes of this machine; each process opens a desk once."""

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

# By default, Python imports from the working directory first, even modules of its own. The working
# directory may be a submission; this variable keeps child processes from importing there.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
TRIES = 2  # an item is given up after this many workers ended while they worked on it
FEW = 4  # with fewer items for each process, a further process would not save time


def default_jobs(items: int) -> int:
    """The number of cores, or fewer if there is too little work for so many processes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, items // FEW))


ENDED = (
    f"{TRIES} processes ended unexpectedly while they worked on it; to see why, run it alone, with "
    "--jobs 1"
)

# Makes the result of an item that was given up, from the item, the worker's isolation and a reason.
SetAside = Callable[[WorkItem, tuple[str, ...], str], Result]


def fails(item: object, _: tuple[str, ...], why: str) -> Any:
    """A `SetAside` that raises `HostFault`, for callers that need the results of all items."""
    raise HostFault(f"{item}: {why}")


def share(
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    items: Sequence[WorkItem],
    jobs: int,
    set_aside: SetAside[WorkItem, Result] = fails,
) -> Generator[Result]:
    """Yield the result of `work` for each item as soon as it is done, in any order.

    `work` must be picklable: a function of a module, or a `functools.partial` of such a function.
    The first iteration waits until torch is loaded. If two processes end while they work on an
    item, `set_aside` makes the item's result.
    """
    if not items:
        return
    if jobs == 1:
        with order.desk() as desk:
            for item in items:
                yield work(desk, item)
    else:
        with environment(SAFE_PATH), _starter(order) as start:
            pool = _Pool(partial(start, work), items, set_aside)
            yield from _in_pool(pool, min(jobs, len(items)))


# --- lost workers --------------------------------------------------------------------------------
#
# A worker may be killed, for example when memory runs out. The item that it worked on is tried
# again, alone in another worker. Items that only waited at the killed worker do not count as tried.


@dataclass(eq=False)
class Task(Generic[WorkItem]):
    """An item without a result so far."""

    item: WorkItem
    lost: list[str] = field(default_factory=list)  # workers that ended while they worked on it

    def lose(self, worker: str) -> bool:
        """Note a worker that ended during work on the item; return whether to give the item up."""
        self.lost.append(worker)
        return len(self.lost) == TRIES


# --- processes of this machine -------------------------------------------------------------------


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables during a `with` block; a variable with None is removed."""
    before = {name: os.environ.get(name) for name in changes}
    _change_environment(changes)
    try:
        yield
    finally:
        _change_environment(before)


def _change_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _starter(order: Order) -> Iterator[Callable[..., _Process[Any, Any]]]:
    """A context that yields a function, which starts a worker process.

    On Linux torch is loaded only twice for any number of workers: in the process from which all
    workers are forked, and in the process from which all jails are forked. Jails must not share a
    parent with workers, since student code would then know addresses in a process that holds
    references. If an answer needs a part of torch that is not loaded, its worker loads torch again.
    """
    if sys.platform != "linux" or order.device != "cpu":  # a GPU's driver does not survive a fork
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
    context.set_forkserver_preload(["grader.run.preload"])
    resource_tracker.ensure_running()  # before `_no_interrupts`: starting it unblocks Ctrl-C
    # The fork server gets only the variables that can change results; see `_serve` for the others.
    dropped = dict.fromkeys(os.environ.keys() - {*PROCESSOR, *SAFE_PATH})
    try:
        with _no_interrupts(), environment(dropped | {"OMP_NUM_THREADS": "1"}):
            forkserver.ensure_running()
    except OSError as error:  # the socket is in the temporary folder, whose name may be too long
        raise CallError(
            f"worker processes cannot use {tempfile.gettempdir()} ({error.strerror or error}): "
            "set TMPDIR to a folder with a shorter name, or grade with --jobs 1"
        ) from None
    line = warm.split() if warm else None
    serve = partial(_serve, order, work, warm=line, variables={**os.environ})
    try:
        return _Process(context, serve)  # waits until the fork server has loaded torch
    except (EOFError, OSError) as error:
        raise HostFault(
            "the process that starts workers ended while it loaded torch; try again, with --jobs 1"
        ) from error


class _Process(Generic[WorkItem, Result]):
    """A worker process, which has a desk and does one task at a time."""

    def __init__(
        self, context: SpawnContext | ForkServerContext, serve: Callable[[Connection], None]
    ) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # otherwise `receive` would not notice the end of the process
        # The isolation of the process's jails; None until its desk is open.
        self.isolation: tuple[str, ...] | None = None
        self.task: Task[WorkItem] | None = None

    @property
    def is_free(self) -> bool:
        """Whether the process has opened its desk, and has no task."""
        return self.isolation is not None and self.task is None

    def send(self, task: Task[WorkItem]) -> bool:
        """Send the process a task; False if the process has ended, which `receive` will notice."""
        with suppress(OSError):
            self.pipe.send(task.item)
            self.task = task
        return self.task is task

    def receive(self) -> Iterator[Result]:
        """Read the process's next message; if the message is a result, yield it.

        Raises `EOFError` if the process has ended, and any exception that the process sent.
        """
        match self.pipe.recv():
            case _Opened(isolation):
                self.isolation = isolation
            case _Done(result):
                self.task = None
                yield result
            case BaseException() as error:
                raise error

    def close(self) -> None:
        """Close the pipe, after which the process ends, and wait for its end."""
        self.pipe.close()
        self.process.join()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Block Ctrl-C in a `with` block and in processes started there, until `_serve` unblocks it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Pool(Generic[WorkItem, Result]):
    """Worker processes of this machine, and the items that they work on."""

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
        self._failed_starts = 0  # processes in a row that ended before their desk was open

    def results(self, jobs: int) -> Iterator[Result]:
        """Start `jobs` processes, and yield each result as soon as it arrives."""
        for _ in range(jobs):
            self._processes.append(self._start())
        while self._waiting or any(process.task for process in self._processes):
            connection.wait([process.pipe for process in self._processes])
            results: list[Result] = []
            for process in list(self._processes):
                try:
                    results += process.receive() if process.pipe.poll() else ()
                except (EOFError, OSError):
                    results += self._replace(process, jobs)
            # Send tasks before yielding results, so that no process waits for the caller.
            for process in self._processes:
                if self._waiting and process.is_free and process.send(self._waiting[0]):
                    self._waiting.popleft()
            yield from results

    def _replace(self, process: _Process[WorkItem, Result], jobs: int) -> Iterator[Result]:
        """Replace a process that ended, if work is left; yield the result of a task given up."""
        process.close()
        self._processes.remove(process)
        self._failed_starts = self._failed_starts + 1 if process.isolation is None else 0
        if self._failed_starts == TRIES * jobs:
            raise HostFault("worker processes end before they can begin; try again, with --jobs 1")
        if process.task is not None and process.task.lose(str(process.process.pid)):
            assert process.isolation is not None
            yield self._set_aside(process.task.item, process.isolation, ENDED)
        elif process.task is not None:
            self._waiting.appendleft(process.task)
        if len(self._processes) < len(self._waiting):
            self._processes.append(self._start())

    def stop(self) -> None:
        """Terminate all processes, without their results."""
        for process in self._processes:
            process.process.terminate()

    def close(self) -> None:
        """Close the pipes of all processes, and wait until the processes have ended."""
        for process in self._processes:
            process.close()


def _in_pool(pool: _Pool[WorkItem, Result], jobs: int) -> Iterator[Result]:
    with closing(pool):
        try:
            yield from pool.results(jobs)
        except BaseException:  # Ctrl-C, or the caller stopped iterating
            pool.stop()
            raise


# --- in a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opened:
    """A message from a worker: its desk is open."""

    isolation: tuple[str, ...]


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """A message from a worker: the result of a task."""

    result: Result


def _serve(
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    pipe: Connection,
    *,
    warm: socket.socket | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """The main function of a worker: open a desk, and do tasks until the parent closes the pipe.

    `warm` is a socket to this worker's own warm process, from which jails are forked. `variables`
    are the parent's environment variables: a worker forked from the fork server lacks most of them.
    """
    if variables is not None:
        os.environ.update(variables)
    if warm is not None:
        order = replace(order, backend=jails.Warm(warm))
    # Ctrl-C reaches every process of the terminal, but only the parent acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # `_no_interrupts` has blocked Ctrl-C
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with order.desk() as desk:
            connected = _send(pipe, _Opened(desk.isolation))
            while connected:
                try:
                    item = pipe.recv()
                except (EOFError, ConnectionError):
                    return  # the parent has no more tasks
                connected = _send(pipe, _Done(work(desk, item)))
    except (CallError, HostFault) as error:
        _send(pipe, error)
    except Exception as error:  # as text, since not every exception can be sent
        text = "".join(traceback.format_exception(error, limit=-4)).strip()
        _send(pipe, HostFault(text))


def _send(pipe: Connection, message: object) -> bool:
    """Send a message; False if the parent has closed the pipe, since it needs no more results."""
    try:
        pipe.send(message)
    except ConnectionError:
        return False
    return True


def _end_with_parent() -> None:
    """End this process when the parent ends, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
