"""Work at desks on other machines: the workers of a Dask cluster.

The promise of `workers.share`, for submissions. A worker opens a desk once, and keeps it as long as
this side holds on to it; submissions travel to it as bytes, and grades back. Which worker gets what
is decided here, not by Dask's scheduler: so none gets any before it is checked, and of what was at
a worker that is lost it is known which submission it was at, and which only waited there.
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
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from grader.grading import rows
from grader.grading.order import Deciding, Order, basis, deciding
from grader.intake import Submission
from grader.records.faults import CallError, HostFault
from grader.records.grade import Grade
from grader.records.rows import counted
from grader.run.workers import SetAside, Task, apart, fails

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

Work = Callable[["Desk", Submission], Grade]

LOCAL = "local:"  # and a number: that many workers on this machine
AHEAD = 2  # submissions at a worker: the one it is at, and the next
TICK = 0.5  # seconds between looks at who is there
CONNECTING = 10.0  # seconds for the scheduler to answer
PATIENCE = 60.0  # seconds without any worker
CHATTY = ("distributed", "distributed.client", "asyncio")  # what matters here is raised


def share_on_cluster(
    address: str,
    order: Order,
    work: Work,
    submissions: Sequence[Submission],
    set_aside: SetAside[Submission, Grade] = fails,
) -> Generator[Grade]:
    """What `work` makes of each submission, as it ends, in any order.

    `address` is a scheduler's, or ``local:4`` for four workers here. `work` travels as for
    `workers.share`; the course does not: it lies at the same path on every machine. `set_aside` is
    that of `workers.share`. Raises `CallError` before any work if nobody is there, or a worker is
    not fit to grade like this side.
    """
    if not submissions:
        return
    # A worker works in another folder, and it may be on another machine.
    order = replace(order, secrets=tuple(p.absolute() for p in order.secrets))
    with _connected(address) as client:
        yield from _Crew(client, order, work, submissions, set_aside).grades()


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client; once it is closed, Dask drops what it asked for, and the workers their desks."""
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if address.startswith(LOCAL):
            stack.enter_context(apart())  # as long as there are workers: lost ones start anew
            cluster = stack.enter_context(_local(address.removeprefix(LOCAL)))
            yield stack.enter_context(Client(cluster, set_as_default=False))
            return
        try:
            protocol, place = parse_address(address)
            if protocol in ("tcp", "tls"):  # without a port, a client fails twice, 20 s apart
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
        security=Security.temporary(),  # others on this machine could otherwise give it work
    )


# --- on this side --------------------------------------------------------------------------------


@dataclass(eq=False)
class _Item(Task[Submission]):
    """A submission on its way to a grade."""

    answer: Future[bytes | None] | None = None
    done: bool = False  # even if the answer has not come yet


@dataclass(eq=False)
class _Post:
    """A worker, and what it was given."""

    desk: Future[_OpenDesk]
    opened: Future[_About]
    about: _About | None = None  # once the desk is open
    # By Dask's key, in the order of its work.
    items: dict[Key, _Item] = field(default_factory=dict)

    def takes(self, item: _Item) -> bool:
        """Whether it may be given this one now.

        What was lost with a worker goes alone: should this one be lost too, it was not for another.
        """
        alone = any(one.lost for one in (item, *self.items.values()))
        return self.about is not None and len(self.items) < (1 if alone else AHEAD)


class _Crew:
    """The workers of a cluster at work on a batch."""

    def __init__(
        self,
        client: Client,
        order: Order,
        work: Work,
        submissions: Sequence[Submission],
        set_aside: SetAside[Submission, Grade],
    ) -> None:
        self._client = client
        self._order = order
        self._work = work
        self._must = deciding(order.course)
        self._sheet = rows.image(basis(order)) if order.remembers else b""
        self._waiting = deque(_Item(one) for one in submissions)
        self._set_aside = set_aside
        self._posts: dict[str, _Post] = {}  # by address
        self._unfit: set[str] = set()
        self._begun = False  # whether all that were there first were found fit
        self._given = 0
        self._ended: SimpleQueue[tuple[str, Future[Any]]] = SimpleQueue()
        self._grades: list[Grade] = []
        self._looked = -math.inf
        self._manned = time.monotonic()  # when a desk was last seen open

    def grades(self) -> Iterator[Grade]:
        """Grades, as they come in."""
        while self._waiting or any(post.items for post in self._posts.values()):
            try:
                self._look()
                self._hand_out()
                self._listen()
            except (OSError, CancelledError):
                raise HostFault(
                    "the Dask scheduler is gone; when there is one, the same call goes on from here"
                ) from None
            yield from self._grades
            self._grades.clear()

    # --- who is there

    def _look(self) -> None:
        if time.monotonic() - self._looked < TICK:
            return
        self._looked = time.monotonic()
        present: Mapping[str, int] = self._client.nthreads()
        for address in self._posts.keys() - present.keys():
            self._lose(address)
        self._unfit &= present.keys()
        for address in present.keys() - self._posts.keys() - self._unfit:
            self._hire(address, present[address])
        if any(post.about for post in self._posts.values()):
            self._manned = time.monotonic()
        elif not self._posts and time.monotonic() - self._manned > PATIENCE:
            self._give_up()

    def _hire(self, address: str, threads: int) -> None:
        """Have it checked, and a desk opened there."""
        if threads != 1:
            self._refuse(
                address,
                f"it has {threads} threads, and a desk serves one submission at a time: "
                "start it with --nthreads 1 (and --nworkers for several)",
            )
            return
        with warnings.catch_warnings(action="ignore"):  # Dask's, of more than 10 MB
            desk = self._submit(address, _open_desk, self._order, self._must, self._sheet)
        self._posts[address] = _Post(desk, self._submit(address, _about, desk))
        self._hear_of(address, self._posts[address].opened)

    def _refuse(self, address: str, why: str) -> None:
        line = f"worker {address} cannot grade for this machine: {why}"
        if not self._begun:
            raise CallError(line)
        self._unfit.add(address)
        self._posts.pop(address, None)
        logging.getLogger(__name__).warning("%s; it gets no work", line)

    def _lose(self, address: str) -> None:
        """Take back what it was given, to be done elsewhere."""
        post = self._posts.pop(address)
        given = list(post.items.values())
        # Or Dask would go on with them, should another process come up at this address.
        self._client.cancel([post.desk, post.opened, *(one.answer for one in given)])
        was_at = next((one for one in given if not one.done), None)
        if was_at is not None and was_at.lose(address):
            assert post.about is not None
            told = (
                f"{counted(len(was_at.lost), 'worker')} of the cluster ended while grading it "
                f"({', '.join(was_at.lost)}); to see why, grade it alone, without --cluster"
            )
            self._grades.append(self._set_aside(was_at.item, post.about.isolation, told))
            given.remove(was_at)
        self._waiting.extendleft(sorted(given, key=lambda one: len(one.lost)))

    def _give_up(self) -> None:
        if self._begun:
            raise HostFault(f"all workers are gone, and none came back in {PATIENCE:.0f} s")
        raise CallError(
            f"no worker came in {PATIENCE:.0f} s: start some, for example with `dask worker "
            "ADDRESS --nthreads 1 --nworkers 8`"
        )

    # --- what is done

    def _hand_out(self) -> None:
        if not self._begun:
            if not self._posts or any(post.about is None for post in self._posts.values()):
                return
            self._begun = True
        for depth in range(AHEAD):
            for address, post in self._posts.items():
                if not self._waiting or not post.takes(self._waiting[0]):
                    continue
                if len(post.items) == depth:
                    self._give(address, post, self._waiting.popleft())

    def _give(self, address: str, post: _Post, item: _Item) -> None:
        assert post.about is not None
        self._given += 1  # the first is done first
        item.done = False
        item.answer = self._submit(
            address,
            _work_at,
            post.desk,
            post.about.process,
            self._work,
            msgspec.msgpack.encode(item.item),
            priority=-self._given,
        )
        post.items[item.answer.key] = item
        self._hear_of(address, item.answer)

    def _submit(
        self, address: str, function: Callable[..., Any], *arguments: object, priority: int = 0
    ) -> Future[Any]:
        return self._client.submit(
            function, *arguments, workers=[address], priority=priority, pure=False
        )

    def _hear_of(self, address: str, future: Future[Any]) -> None:
        future.add_done_callback(lambda ended: self._ended.put((address, ended)))

    def _listen(self) -> None:
        try:
            address, future = self._ended.get(timeout=TICK)
        except Empty:
            return
        post = self._posts.get(address)
        if post is None or future.key not in (post.opened.key, *post.items):
            return  # news of a worker that has been lost
        if future.status == "error":
            self._fail(address, post, future)
            return
        try:
            answer = future.result(timeout=TICK)
        except TimeoutError:  # its worker ended with the answer; the next look will tell
            if future.key in post.items:
                post.items[future.key].done = True
            self._ended.put((address, future))
            return
        if future.key == post.opened.key:
            post.about = answer
        elif answer is None:
            self._lose(address)
        else:
            del post.items[future.key]
            self._grades.append(Grade.from_json(answer))

    def _fail(self, address: str, post: _Post, future: Future[Any]) -> None:
        error = future.exception()
        assert error is not None
        if isinstance(error, KilledWorker):
            self._lose(address)
        elif future.key == post.opened.key:
            self._refuse(address, _told(error))
        elif isinstance(error, CallError):
            raise error
        else:
            raise HostFault(f"worker {address}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """Ours are written to be read; others come, for example, where there is no kit."""
    ours = isinstance(error, CallError | HostFault)
    return str(error) if ours else f"{type(error).__name__}: {error}"


# --- on a worker ---------------------------------------------------------------------------------


class _About(NamedTuple):
    """What this side has to know of an open desk."""

    process: str
    isolation: tuple[str, ...]


class _OpenDesk:
    """A desk that is open as long as somebody holds on to this.

    The client does, through Dask, until it is closed or lost; and so does who works there.
    """

    def __init__(self, order: Order) -> None:
        closing = ExitStack()
        self.desk = closing.enter_context(order.desk())
        self.process = uuid.uuid4().hex
        weakref.finalize(self, closing.close)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a desk stays where it is")


def _open_desk(order: Order, must: Deciding, sheet: bytes) -> _OpenDesk:
    here = deciding(order.course)
    for name, ours, theirs in zip(Deciding._fields, here, must, strict=True):
        if ours != theirs and name == "course":
            raise CallError(f"it has another course in {order.course.folder}, or none")
        if ours != theirs:
            raise CallError(f"it has {name} {ours}, and this machine has {theirs}")
    rows.receive(basis(order), sheet)  # what is known here need not be found out there
    return _OpenDesk(order)


def _about(desk: _OpenDesk) -> _About:
    return _About(desk.process, desk.desk.isolation)


def _work_at(desk: _OpenDesk, process: str, work: Work, submission: bytes) -> bytes | None:
    """A grade as JSON; None if this is not the process that was meant."""
    if desk.process != process:
        return None
    return work(desk.desk, msgspec.msgpack.decode(submission, type=Submission)).to_json()
