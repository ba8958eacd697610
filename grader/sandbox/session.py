"""The trusted end of the wall: one submission's session, through as many processes as it takes.

No reply is believed. A process that stays silent, answers nonsense or too much, or dies is *lost*:
the running test gets a status of its own, and the next test a fresh process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, Protocol, TypeVar

from grader import wire
from grader.sandbox.budget import IDLE_TEST, Budget, Left, Used

Loss = Literal["timeout", "memory", "crashed"]
Device = Literal["cpu", "cuda"]  # on which a submission computes
Answer = TypeVar("Answer")

TRIES = 3  # of a request: the process may be killed by the machine, and so may the next


class StudentLost(Exception):
    """The student's process gave no usable answer; ``status`` is the status of the test."""

    def __init__(self, status: Loss, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Killed(StudentLost):
    """Ended by a signal that we did not send: by the submission, or by the machine.

    `Session` asks a fresh process the same before it believes that it was the submission.
    """


class LacksTorch(Killed):
    """Ended since it asked for a part of torch that was not loaded; in the next process it is."""


@dataclass(frozen=True)
class Limits:
    """A submission's limits: CPU seconds per test and in all, and memory above the baseline."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024
    whole_torch: bool = False  # whether to load the parts of torch that few answers use


class Channel(Protocol):
    """Where a submission answers: a process of its own, or definitions of this very process.

    There are three. `sandbox.jails.Jail` and `unsandboxed.worker.Worker` are `Wired`;
    `unsandboxed.in_process.InProcess` answers right here.
    """

    idle_seconds: float  # so far, in all its answers; 0 where it cannot be measured

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Send a request and wait for the reply; raise `StudentLost` when there is none."""

    def cpu_seconds(self) -> float:
        """CPU time used so far."""

    def close(self) -> None:
        """End the process and everything it holds."""


class Wired(Channel):
    """A channel to another process, over which messages travel as bytes."""

    idle_seconds = 0.0

    @abstractmethod
    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = IDLE_TEST) -> bytes:
        """Send a request and wait for the reply; raise `StudentLost` when there is none."""

    @abstractmethod
    def lost(self, status: Loss, text: str) -> StudentLost:
        """End the process, which gives no usable answer; returns the exception to raise."""

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """See `Channel`."""
        answer = self.ask(wire.encode(request), left.seconds, left.idle_seconds)
        try:
            reply = wire.decode_reply(answer)
        except wire.WireError as error:
            raise self.lost("crashed", f"the answer could not be read ({error})") from None
        if isinstance(reply, wire.Refused):
            raise self.lost("crashed", f"no answer: {reply.why}")
        return reply


@dataclass(frozen=True)
class StudentCall:
    """A call of the student's code and its outcome; None if there was none."""

    call: wire.Call
    outcome: wire.Outcome | None


class Backend(Protocol):
    """Where student code runs: in jails, or in a worker process."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The isolation layers of each channel."""

    def open(self, limits: Limits) -> Channel:
        """A channel to a process in which no submission has run yet."""


class Nowhere:
    """The back end of a desk at which no submission is seated: it starts no process."""

    layers: tuple[str, ...] = ()

    def open(self, limits: Limits) -> Channel:
        """Never called."""
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

        The process that lists the submission's definitions also serves the tests of the exercise
        `first`.
        """
        self._forbidden_by = forbidden or {}
        self._open_channel = open_channel
        self._opening = opening
        self._limits = limits
        self._channel: Channel | None = None
        self._budget = Budget(limits.test_seconds, limits.submission_seconds)
        self._queue: list[wire.Call] = []
        self.handles = count(1)  # numbers under which the guest keeps modules and graphs
        self._forbidden = self._forbids(first)
        self._memory_mb = limits.memory_mb  # of the process that is running
        self._answered: list[wire.Run] = []  # the running test's requests so far
        self._killed = False  # whether the running test's process was
        self.printed = ""  # by the running test, up to a limit
        self.calls: list[Any] = []  # the running test's calls and their outcomes, where `listens`
        self.listens = False
        self._listed = False
        # Answered before any line of the submission runs: this reply is not forged.
        self.listing = self._retrying(self._start)
        self._listed = True

    def _start(self) -> wire.Listing:
        self._killed = False
        self._channel = self._open_channel(replace(self._limits, memory_mb=self._memory_mb))
        wanted, others = self._opening.wanted, self._opening.others
        if self._listed:  # by an earlier process: this one only loads the answers that are called
            wanted, others = (), (*wanted, *others)
        opening = wire.Open(self._opening.sources, wanted, self._forbidden, others)
        reply = self._exchange(opening, self._budget.left_to_list(self._used()))
        if not isinstance(reply, wire.Listing):
            raise self._drop(StudentLost("crashed", "the submission could not be listed"))
        return reply

    def _retrying(self, ask: Callable[[], Answer]) -> Answer:
        """The reply; after a kill, `ask` is called again, and has a fresh process answer."""
        for _ in range(TRIES - 1):
            with suppress(Killed):
                return ask()
        return ask()

    def _forbids(self, exercise: str) -> tuple[str, ...]:
        return self._forbidden_by.get(exercise, ())

    def begin_test(self, seed: int, exercise: str = "", memory_mb: int | None = None) -> None:
        """Forget handles, seed the guest's generators, and give the test its time and memory.

        A process loses the functions that an exercise forbids, and its memory limit stays: a test
        that differs in either needs a fresh process.
        """
        self._answered.clear()
        self.printed = ""
        self.calls = []
        memory_mb = memory_mb or self._limits.memory_mb
        if (self._forbids(exercise), memory_mb) != (self._forbidden, self._memory_mb):
            self.close()
            self._forbidden, self._memory_mb = self._forbids(exercise), memory_mb
        if self._channel is None:
            self._retrying(self._start)
        self._budget.begin_test(exercise, self._used())
        self._queue = [wire.Seed(seed)]
        self.handles = count(1)

    @property
    def in_cells(self) -> bool:
        """Whether the submission is what ran in a notebook's kernel."""
        return any(source.name == wire.KERNEL for source in self._opening.sources)

    def line(self, place: wire.Place | None) -> wire.Place | None:
        """A place that a reply names, as a line of the submission; None if it has no such line."""
        if place is None:
            return None
        lines = wire.lines_around(place, self._opening.sources)
        if not lines:
            return None
        text = lines[place.line - 1].strip()[:200]
        return wire.Place(place.file, place.line, text, place.cell)

    def later(self, call: wire.Call) -> None:
        """Queue a call whose outcome is not needed; it travels with the next call.

        Raises `StudentLost` where the process that holds the test's objects is gone.
        """
        self._time_left()
        self._queue.append(call)

    def run(self, *calls: wire.Call) -> list[wire.Outcome]:
        """Send these calls in one message, and return their outcomes: fewer if one raised."""
        queued, self._queue = self._queue, []
        request = wire.Run([*queued, *calls])
        try:
            reply = self._retrying(lambda: self._reply(request))
        except StudentLost:
            self._note(request.calls, [None] * len(request.calls))
            raise
        if not isinstance(reply, wire.Outcomes):
            raise self._drop(StudentLost("crashed", "the answer was of the wrong type"))
        self._answered.append(request)
        self._note(request.calls, reply.outcomes)
        self.printed = (self.printed + reply.printed)[: wire.MAX_TEXT]
        outcomes = reply.outcomes
        if len(outcomes) <= len(queued) and any(isinstance(o, wire.Raised) for o in outcomes):
            return outcomes[-1:]  # a queued call raised: its exception is the answer
        if len(outcomes) > len(queued) + len(calls):
            raise self._drop(StudentLost("crashed", "more answers than questions"))
        return outcomes[len(queued) :]

    def _reply(self, request: wire.Run) -> wire.Reply:
        """The reply of the running process; of a fresh one, once the running one was killed.

        The fresh one is asked all that the test asked before, so that it holds the same objects.
        """
        if self._killed:
            self._start()
            self._budget.restart_test(self._used())
            for earlier in self._answered:
                self._exchange(earlier, self._time_left())
        return self._exchange(request, self._time_left())

    def _note(self, calls: Sequence[wire.Call], outcomes: Sequence[wire.Outcome | None]) -> None:
        if self.listens:
            self.calls += map(StudentCall, calls, outcomes)

    def _time_left(self) -> Left:
        """The time for the next call; raises `StudentLost` without a process to call."""
        if self._channel is None:
            raise StudentLost("crashed", "its process is gone since an earlier call of this test")
        return self._budget.left(self._used())

    def _used(self) -> Used:
        """CPU and idle time of the running process so far."""
        if self._channel is None:
            return Used()
        return Used(self._channel.cpu_seconds(), self._channel.idle_seconds)

    def _exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Send a request; drop the process if it has no time left or gives no usable reply."""
        assert self._channel is not None
        if left.seconds <= 0:
            text = f"the time for this {left.whose} is used up"
            raise self._drop(StudentLost("timeout", text))
        try:
            return self._channel.exchange(request, left)
        except BaseException as error:
            if isinstance(error, StudentLost) and error.status == "timeout":
                self._budget.note_timeout()
            if isinstance(error, LacksTorch):
                self._limits = replace(self._limits, whole_torch=True)
            self.close()
            self._killed = isinstance(error, Killed)
            raise

    def _drop(self, lost: StudentLost) -> StudentLost:
        self.close()
        return lost

    def close(self) -> None:
        """End the student's process."""
        if self._channel is not None:
            self._channel.close()
            self._budget.note_end(self._used())
            self._channel = None
