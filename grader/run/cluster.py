"""Distributes work over other machines, to the workers of a Dask cluster.

`share_on_cluster` does on many machines what `workers.share` does on one. A worker opens a desk
once, and keeps it as long as the client holds Dask's future for the desk. Items, such as
submissions, and results, such as grades, are sent as bytes.

This module, and not Dask's scheduler, decides which worker gets an item. Therefore it can check a
worker before the first item. And if a worker is lost, it knows which item the worker was working
on, and which items only waited there.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import msgspec

from grader.grading import rows
from grader.grading.order import Deciding, Order, basis, deciding
from grader.records.faults import CallError, HostFault
from grader.records.rows import counted
from grader.run.workers import (
    SAFE_PATH,
    Result,
    SetAside,
    Task,
    WorkItem,
    environment,
    fails,
)

if TYPE_CHECKING:
    from dask.typing import Key

    from grader.grading.desk import Desk


try:
    import cryptography  # noqa: F401 (Dask's certificates need it)
    from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, Security
    from distributed.comm.addressing import parse_address, parse_host_port
except ModuleNotFoundError as error:
    raise CallError(
        f"--cluster needs {error.name}: pip install 'attention-grader[cluster]'"
    ) from None

LOCAL = "local:"  # followed by a number of workers on this machine
AHEAD = 2  # submissions sent to a worker at a time: the current and the next
TICK = 0.5  # seconds between looks at the list of workers
CONNECTING = 10.0  # seconds to wait for the scheduler's answer
PATIENCE = 60.0  # seconds to wait for a worker while there is none
# These loggers are silenced, because errors are raised anyway.
CHATTY = ("distributed", "distributed.client", "asyncio")


def share_on_cluster(
    address: str,
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    items: Sequence[WorkItem],
    gives: type[Result],
    set_aside: SetAside[WorkItem, Result] = fails,
) -> Generator[Result]:
    """Yield the result of `work` for each item as soon as it is done, in any order.

    `address` is that of a scheduler, or ``local:4`` for four workers on this machine. `work` and
    `set_aside` are as for `workers.share`. Items are of one type, and results of the type `gives`:
    dataclasses or structs. The course is not sent: it must be at the same path on every machine.
    Raises `CallError` before any work if there is no worker, or if a worker would not grade like
    this machine.
    """
    if not items:
        return
    # Workers run in another folder, so relative paths would be wrong there.
    order = replace(order, secrets=tuple(p.absolute() for p in order.secrets))
    with _connected(address) as client:
        yield from _Cluster(client, order, work, items, gives, set_aside).results()


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect a client. After the `with` block Dask drops its futures, so workers close desks."""
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if address.startswith(LOCAL):
            stack.enter_context(environment(SAFE_PATH))  # Dask may restart workers at any time
            cluster = stack.enter_context(_local(address.removeprefix(LOCAL)))
            yield stack.enter_context(Client(cluster, set_as_default=False))
            return
        try:
            protocol, place = parse_address(address)
            if protocol in ("tcp", "tls"):  # without a port, the client would fail only after 20 s
                parse_host_port(place)
            client = Client(address, timeout=CONNECTING, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise CallError(f"no Dask scheduler answers at {address}: {error}") from None
        yield stack.enter_context(client)


def _local(workers: str) -> LocalCluster:
    if not workers.isdecimal() or int(workers) < 1:
        raise CallError(f"--cluster {LOCAL}N takes a number of workers, got {workers!r}")
    return LocalCluster(
        n_workers=int(workers),
        threads_per_worker=1,
        memory_limit=None,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        security=Security.temporary(),  # otherwise other users of this machine could send work
    )


# --- in the client -------------------------------------------------------------------------------


@dataclass(eq=False)
class _Item(Task[WorkItem]):
    """An item without a result so far."""

    answer: Future[bytes | None] | None = None
    done: bool = False  # whether a worker has done it, even if the result has not arrived yet


@dataclass(eq=False)
class _Worker(Generic[WorkItem]):
    """A worker, and the items that were sent to it."""

    desk: Future[_OpenDesk]
    opened: Future[_About]
    about: _About | None = None  # None until the desk is open
    items: dict[Key, _Item[WorkItem]] = field(
        default_factory=dict
    )  # by Dask's key, in the order of work

    def takes(self, item: _Item[WorkItem]) -> bool:
        """Whether the worker may get this item now.

        An item whose worker was lost is the only item at its next worker. If that worker is lost
        too, the item must be the reason.
        """
        alone = any(one.lost for one in (item, *self.items.values()))
        return self.about is not None and len(self.items) < (1 if alone else AHEAD)


class _Cluster(Generic[WorkItem, Result]):
    """The workers of a cluster, and the items that they work on."""

    def __init__(
        self,
        client: Client,
        order: Order,
        work: Callable[[Desk, WorkItem], Result],
        items: Sequence[WorkItem],
        gives: type[Result],
        set_aside: SetAside[WorkItem, Result],
    ) -> None:
        self._client = client
        self._order = order
        self._work = work
        self._must = deciding(order.course)
        self._sheet = rows.image(basis(order)) if order.keeps_sheet else b""
        self._waiting = deque(_Item(one) for one in items)
        self._gives = gives
        self._set_aside = set_aside
        self._workers: dict[str, _Worker[WorkItem]] = {}  # by address
        self._unfit: set[str] = set()
        self._checked = False  # whether all workers found at the start can grade
        self._sent = 0
        self._finished: SimpleQueue[tuple[str, Future[Any]]] = SimpleQueue()
        self._results: list[Result] = []
        self._last_look = -math.inf
        self._last_open = time.monotonic()  # when a worker last had an open desk

    def results(self) -> Iterator[Result]:
        """Yield each result as soon as it arrives."""
        while self._waiting or any(worker.items for worker in self._workers.values()):
            try:
                self._look()
                self._assign()
                self._receive()
            except (OSError, CancelledError):
                raise HostFault(
                    "the Dask scheduler is gone; start it, and run the same command to continue"
                ) from None
            yield from self._results
            self._results.clear()

    # --- finding and losing workers

    def _look(self) -> None:
        if time.monotonic() - self._last_look < TICK:
            return
        self._last_look = time.monotonic()
        present: Mapping[str, int] = self._client.nthreads()
        for address in self._workers.keys() - present.keys():
            self._lose(address)
        self._unfit &= present.keys()
        for address in present.keys() - self._workers.keys() - self._unfit:
            self._open(address, present[address])
        if any(worker.about for worker in self._workers.values()):
            self._last_open = time.monotonic()
        elif not self._workers and time.monotonic() - self._last_open > PATIENCE:
            self._give_up()

    def _open(self, address: str, threads: int) -> None:
        """Check a worker, and open a desk there."""
        if threads != 1:
            self._refuse(
                address,
                f"it has {threads} threads, but works on one submission at a time: start it with "
                "--nthreads 1 (and --nworkers for several)",
            )
            return
        with warnings.catch_warnings(action="ignore"):  # Dask warns if it sends 10 MB or more
            desk = self._submit(address, _open_desk, self._order, self._must, self._sheet)
        self._workers[address] = _Worker(desk, self._submit(address, _about, desk))
        self._watch(address, self._workers[address].opened)

    def _refuse(self, address: str, why: str) -> None:
        line = f"worker {address} cannot grade for this machine: {why}"
        if not self._checked:
            raise CallError(line)
        self._unfit.add(address)
        self._workers.pop(address, None)
        logging.getLogger(__name__).warning("%s; it gets no work", line)

    def _lose(self, address: str) -> None:
        """Forget a lost worker, and put its items back in the queue."""
        worker = self._workers.pop(address)
        sent = list(worker.items.values())
        # Cancel these tasks: Dask would run them again in a new process at this address.
        self._client.cancel([worker.desk, worker.opened, *(one.answer for one in sent)])
        current = next((one for one in sent if not one.done), None)
        if current is not None and current.lose(address):
            assert worker.about is not None
            why = (
                f"{counted(len(current.lost), 'worker')} of the cluster ended while working on it "
                f"({', '.join(current.lost)}); to see why, run it alone, without --cluster"
            )
            self._results.append(self._set_aside(current.item, worker.about.isolation, why))
            sent.remove(current)
        self._waiting.extendleft(sorted(sent, key=lambda one: len(one.lost)))

    def _give_up(self) -> None:
        if self._checked:
            raise HostFault(f"all workers are gone, and none came back in {PATIENCE:.0f} s")
        raise CallError(
            f"no worker came in {PATIENCE:.0f} s: start some, for example with `dask worker "
            "ADDRESS --nthreads 1 --nworkers 8`"
        )

    # --- sending items to workers

    def _assign(self) -> None:
        if not self._checked:
            if not self._workers or any(worker.about is None for worker in self._workers.values()):
                return
            self._checked = True
        for depth in range(AHEAD):
            for address, worker in self._workers.items():
                if not self._waiting or not worker.takes(self._waiting[0]):
                    continue
                if len(worker.items) == depth:
                    self._send(address, worker, self._waiting.popleft())

    def _send(self, address: str, worker: _Worker[WorkItem], item: _Item[WorkItem]) -> None:
        assert worker.about is not None
        self._sent += 1  # an item that is sent earlier has a higher priority
        item.done = False
        item.answer = self._submit(
            address,
            _work_at,
            worker.desk,
            worker.about.process,
            self._work,
            type(item.item),
            msgspec.msgpack.encode(item.item),
            priority=-self._sent,
        )
        worker.items[item.answer.key] = item
        self._watch(address, item.answer)

    def _submit(
        self, address: str, function: Callable[..., Any], *arguments: object, priority: int = 0
    ) -> Future[Any]:
        return self._client.submit(
            function, *arguments, workers=[address], priority=priority, pure=False
        )

    def _watch(self, address: str, future: Future[Any]) -> None:
        future.add_done_callback(lambda ended: self._finished.put((address, ended)))

    def _receive(self) -> None:
        try:
            address, future = self._finished.get(timeout=TICK)
        except Empty:
            return
        worker = self._workers.get(address)
        if worker is None or future.key not in (worker.opened.key, *worker.items):
            return  # the answer of a worker that was lost
        if future.status == "error":
            self._fail(address, worker, future)
            return
        try:
            answer = future.result(timeout=TICK)
        except TimeoutError:  # the worker ended before it sent the answer; `_look` will notice
            if future.key in worker.items:
                worker.items[future.key].done = True
            self._finished.put((address, future))
            return
        if future.key == worker.opened.key:
            worker.about = answer
        elif answer is None:
            self._lose(address)
        else:
            del worker.items[future.key]
            self._results.append(msgspec.msgpack.decode(answer, type=self._gives))

    def _fail(self, address: str, worker: _Worker[WorkItem], future: Future[Any]) -> None:
        error = future.exception()
        assert error is not None
        if isinstance(error, KilledWorker):
            self._lose(address)
        elif future.key == worker.opened.key:
            self._refuse(address, _message_of(error))
        elif isinstance(error, CallError):
            raise error
        else:
            raise HostFault(f"worker {address}: {_message_of(error)}") from error


def _message_of(error: BaseException) -> str:
    # Exceptions of other types come, for example, from a worker without this kit.
    ours = isinstance(error, CallError | HostFault)
    return str(error) if ours else f"{type(error).__name__}: {error}"


# --- on a worker ---------------------------------------------------------------------------------


class _About(NamedTuple):
    """The facts about an open desk that a worker sends to the client."""

    process: str
    isolation: tuple[str, ...]


class _OpenDesk:
    """A desk that closes when this object is garbage collected.

    The object lives as long as the client holds Dask's future for it, or `_work_at` uses it.
    """

    def __init__(self, order: Order) -> None:
        closing = ExitStack()
        self.desk = closing.enter_context(order.desk())
        self.process = uuid.uuid4().hex
        weakref.finalize(self, closing.close)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a desk cannot be sent to another process")


def _open_desk(order: Order, must: Deciding, sheet: bytes) -> _OpenDesk:
    here = deciding(order.course)
    for name, ours, theirs in zip(Deciding._fields, here, must, strict=True):
        if ours != theirs and name == "course":
            raise CallError(f"it has another course in {order.course.folder}, or none")
        if ours != theirs:
            raise CallError(f"it has {name} {ours}, but this machine has {theirs}")
    rows.receive(basis(order), sheet)  # known results, which this worker then need not compute
    return _OpenDesk(order)


def _about(desk: _OpenDesk) -> _About:
    return _About(desk.process, desk.desk.isolation)


def _work_at(
    desk: _OpenDesk,
    process: str,
    work: Callable[[Desk, WorkItem], Any],
    takes: type[WorkItem],
    item: bytes,
) -> bytes | None:
    """Work on an item of the type `takes`; None if the desk is not in the expected `process`."""
    if desk.process != process:
        return None
    return msgspec.msgpack.encode(work(desk.desk, msgspec.msgpack.decode(item, type=takes)))
