"""The trusted end of the wall: one submission's session, through as many processes as it takes.

Nothing here believes a reply. A process that stays silent, answers nonsense or too much, or dies is
*lost*: the test that was running gets a status of its own, and the next test a fresh process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, Protocol

from grader import wire
from grader.sandbox.budget import IDLE_TEST, Budget, Left, Used

Loss = Literal["timeout", "memory", "crashed"]
Device = Literal["cpu", "cuda"]  # on which a submission computes


class StudentLost(Exception):
    """The student's process gave no usable answer; ``status`` is the status of the test."""

    def __init__(self, status: Loss, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Killed(StudentLost):
    """Ended by a signal that we did not send: perhaps the submission's own doing, perhaps not.

    Whoever asked may ask a fresh process once more, and believe it the second time.
    """


class LacksTorch(Killed):
    """Ended since it asked for a part of torch that was not loaded; in the next process it is."""


@dataclass(frozen=True)
class Limits:
    """What a submission may use: CPU seconds per test and in all, and memory above the baseline."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024
    whole_torch: bool = False  # whether what few answers use has to be loaded as well


class Channel(Protocol):
    """Where a submission answers: a process of its own, or definitions of this very process.

    There are three. `sandbox.jails.Jail` and `unsandboxed.worker.Worker` are `Wired`;
    `unsandboxed.in_process.InProcess` answers right here.
    """

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        """Send a request and wait for the reply; raise `StudentLost` when there is none."""

    def cpu_seconds(self) -> float:
        """CPU time used so far."""

    def close(self) -> None:
        """End the process and everything it holds."""


class Wired(Channel):
    """A channel to another process, over which messages travel as bytes."""

    idle_seconds = 0.0  # so far, in all its answers; as far as that can be told

    @abstractmethod
    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = IDLE_TEST) -> bytes:
        """Send a request and wait for the reply; raise `StudentLost` when there is none."""

    @abstractmethod
    def lost(self, status: Loss, text: str) -> StudentLost:
        """End the process, which gives no usable answer; returns what to raise."""

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        """See `Channel`."""
        return self.understand(self.ask(wire.encode(request), cpu_seconds))

    def understand(self, answer: bytes) -> wire.Reply:
        """The reply in these bytes; raise `StudentLost` if it is none."""
        try:
            reply = wire.decode_reply(answer)
        except wire.WireError as error:
            raise self.lost("crashed", f"the answer could not be read ({error})") from None
        if isinstance(reply, wire.Refused):
            raise self.lost("crashed", f"no answer: {reply.why}")
        return reply


@dataclass(frozen=True)
class Asked:
    """A call of the student's code, and what came back; None if nothing did."""

    call: wire.Call
    outcome: wire.Outcome | None


class Unlike(Exception):
    """A test asks something else than it did before of the same submission."""


class Backend(Protocol):
    """Where student code runs: in jails, or in a worker process."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The isolation layers of each channel."""

    def open(self, limits: Limits) -> Channel:
        """A channel to a process, or a part of one, in which no submission has run yet."""


class Nowhere:
    """A back end for a desk at which no submission is seated: no process is started for it."""

    layers: tuple[str, ...] = ()

    def open(self, limits: Limits) -> Channel:
        """Never asked for."""
        raise NotImplementedError(limits)


class Session:
    """One submission behind a channel, through as many processes as it takes."""

    def __init__(
        self,
        open_channel: Callable[[Limits], Channel],
        opening: wire.Open,
        limits: Limits,
        forbidden: Mapping[str, tuple[str, ...]] | None = None,
        first: str = "",
    ) -> None:
        """`forbidden` are torch functions by exercise; raises `StudentLost` for an odd text.

        The process that lists what there is serves the tests of the exercise `first` as well.
        """
        self._forbidden_by = forbidden or {}
        self._open_channel = open_channel
        self._opening = opening
        self._limits = limits
        self._channel: Channel | None = None
        self._wired: Wired | None = None  # the same, where messages travel as bytes
        self._budget = Budget(limits.test_seconds, limits.submission_seconds)
        self._queue: list[wire.Call] = []
        self.handles = count(1)  # numbers under which the guest keeps modules and graphs
        self._forbidden = self._forbids(first)
        self._memory_mb = limits.memory_mb  # of the process that is running
        self.tape: list[tuple[bytes, bytes]] = []  # the running test's questions, with answers
        self._recalled: deque[tuple[bytes, bytes]] = deque()  # see `recall`
        self.printed = ""  # by the running test, up to a limit
        self.said: list[Any] = []  # what the running test asked, where `listens`
        self.listens = False
        self.generation = 0  # counts processes: a handle is good in its own only
        self._listed = False
        # Answered before any line of the submission runs: what it says is not forged.
        self.listing = self._start()
        self._listed = True

    def _start(self, tries: int = 3) -> wire.Listing:
        channel = self._open_channel(replace(self._limits, memory_mb=self._memory_mb))
        self._channel = channel
        self._wired = channel if isinstance(channel, Wired) else None
        self.generation += 1
        wanted, others = self._opening.wanted, self._opening.others
        if self._listed:  # everything, by an earlier process: this one looks for what is called
            wanted, others = (), (*wanted, *others)
        opening = wire.Open(self._opening.sources, wanted, self._forbidden, others)
        left = self._granted(self._budget.left_to_list(self._used()))
        try:
            reply = self._exchange(opening, left)
        except Killed:  # before any line of the submission ran: the next jail may be gone as well
            if tries == 1:
                raise
            return self._start(tries - 1)
        if not isinstance(reply, wire.Listing):
            raise self._drop(StudentLost("crashed", "the submission could not be listed"))
        return reply

    def _forbids(self, exercise: str) -> tuple[str, ...]:
        return self._forbidden_by.get(exercise, ())

    def begin_test(self, seed: int, exercise: str = "", memory_mb: int | None = None) -> None:
        """Forget handles, seed the guest's generators, and give the test its time and memory.

        What the exercise forbids is taken out of a process for good, and memory is limited for
        good: a test that differs in either needs a fresh process.
        """
        self.tape.clear()
        self._recalled.clear()
        self.printed = ""
        self.said = []
        memory_mb = memory_mb or self._limits.memory_mb
        if (self._forbids(exercise), memory_mb) != (self._forbidden, self._memory_mb):
            self.close()
            self._forbidden, self._memory_mb = self._forbids(exercise), memory_mb
        if self._channel is None:
            self._start()
        self._budget.begin_test(exercise, self._used())
        self._queue = [wire.Seed(seed)]
        self.handles = count(1)

    @property
    def in_cells(self) -> bool:
        """Whether the submission is what ran in a notebook's kernel."""
        return any(source.name == wire.KERNEL for source in self._opening.sources)

    def line(self, place: wire.Place | None) -> wire.Place | None:
        """A place that a reply names, as a line of the submission; None where there is none."""
        if place is None:
            return None
        lines = wire.lines_around(place, self._opening.sources)
        if not lines:
            return None
        text = lines[place.line - 1].strip()[:200]
        return wire.Place(place.file, place.line, text, place.cell)

    def later(self, call: wire.Call) -> None:
        """Queue a call whose answer nobody waits for; it travels with the next one."""
        self._queue.append(call)

    def run(self, *calls: wire.Call) -> list[wire.Outcome]:
        """Send these calls in one message, and return their outcomes: fewer if one raised."""
        queued, self._queue = self._queue, []
        request = wire.Run([*queued, *calls])
        try:
            reply = self._replied(request)
        except StudentLost:
            self._note(request.calls, [None] * len(request.calls))
            raise
        if not isinstance(reply, wire.Outcomes):
            raise self._drop(StudentLost("crashed", "the answer was of the wrong type"))
        self._note(request.calls, reply.outcomes)
        self.printed = (self.printed + reply.printed)[: wire.MAX_TEXT]
        outcomes = reply.outcomes
        if len(outcomes) <= len(queued) and any(isinstance(o, wire.Raised) for o in outcomes):
            return outcomes[-1:]  # a queued call raised: the student hears of it here
        if len(outcomes) > len(queued) + len(calls):
            raise self._drop(StudentLost("crashed", "more answers than questions"))
        return outcomes[len(queued) :]

    def _note(self, calls: Sequence[wire.Call], outcomes: Sequence[wire.Outcome | None]) -> None:
        if self.listens:
            self.said += map(Asked, calls, outcomes)

    @property
    def on_wire(self) -> bool:
        """Whether messages travel as bytes, so that `ask` and `recall` can be used."""
        return self._wired is not None

    def ask(self, question: bytes) -> bytes:
        """Send what an earlier test sent, within this one's time; raise `StudentLost`."""
        left = self._time_left()
        assert self._wired is not None
        with self._guarded():
            return self._wired.ask(question, left, self._budget.idle_left(self._used()))

    def recall(self, said: Iterable[tuple[bytes, bytes]]) -> None:
        """Answer the running test's first calls with what was answered already.

        `run` raises `Unlike` if it has another question than these.
        """
        self._recalled.extend(said)

    def _replied(self, request: wire.Request) -> wire.Reply:
        if self._wired is None:
            return self._exchange(request, self._time_left())
        question = wire.encode(request)
        if self._recalled:
            recalled, answer = self._recalled.popleft()
            if recalled != question:
                raise Unlike
        else:
            answer = self.ask(question)
        self.tape.append((question, answer))
        with self._guarded():
            return self._wired.understand(answer)

    def _time_left(self) -> float:
        """CPU seconds for the next call."""
        if self._channel is None:
            raise StudentLost("crashed", "its process is gone since an earlier call of this test")
        return self._granted(self._budget.left(self._used()))

    def _granted(self, left: Left) -> float:
        """CPU seconds for the next message; without any, the process is dropped."""
        if left.seconds <= 0:
            text = f"the time for this {left.whose} is used up"
            raise self._drop(StudentLost("timeout", text))
        return left.seconds

    def _used(self) -> Used:
        """What the running process has used so far."""
        if self._channel is None:
            return Used()
        idle = self._wired.idle_seconds if self._wired else 0.0
        return Used(self._channel.cpu_seconds(), idle)

    def _exchange(self, request: wire.Request, seconds: float) -> wire.Reply:
        assert self._channel is not None
        with self._guarded():
            return self._channel.exchange(request, seconds)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """What goes wrong meanwhile costs the process: the next test gets a fresh one."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, StudentLost) and error.status == "timeout":
                self._budget.note_timeout()
            if isinstance(error, LacksTorch):
                self._limits = replace(self._limits, whole_torch=True)
            self.close()
            raise

    def _drop(self, lost: StudentLost) -> StudentLost:
        self.close()
        return lost

    def close(self) -> None:
        """End the student's process."""
        if self._channel is not None:
            self._channel.close()
            self._budget.note_end(self._used())
            self._channel = self._wired = None
