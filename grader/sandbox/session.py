"""A session: sends the calls of one submission's tests to a process, and replaces a lost process.

No reply is trusted. A process is *lost* if it does not reply in time, if its reply is invalid or
too large, or if it ends. The running test then gets a status that names the reason, such as
``timeout``, and the next test gets a fresh process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from grader import wire
from grader.sandbox.budget import IDLE_TEST, Budget, Left, Used
from grader.wire.checks import may_check

Loss = Literal["timeout", "memory", "crashed"]
Device = Literal["cpu", "cuda"]  # the device on which a submission computes
Answer = TypeVar("Answer")

TRIES = 3  # how often a request is sent, at most; see `Repeatable`


class StudentLost(Exception):
    """The student's process gave no usable reply; ``status`` is the status of the test."""

    def __init__(self, status: Loss, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Repeatable(StudentLost):
    """The submission may not be at fault: `Session` repeats the request in a fresh process.

    The process counts as lost only if the last repetition fails too.
    """


class Killed(Repeatable):
    """The submission or the system killed the process; the kit did not."""


class LacksTorch(Repeatable):
    """The process ended because it imported a part of torch that was not loaded.

    The next process has all parts.
    """


@dataclass(frozen=True)
class Limits:
    """A submission's limits of CPU time and memory."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024  # in addition to the memory of a process without a submission
    whole_torch: bool = False  # whether to load the parts of torch that few answers use


class Channel(Protocol):
    """A connection to definitions, which answers requests.

    There are three kinds. `sandbox.jails.Jail` and `unsandboxed.worker.Worker` connect to another
    process, see `Wired`. `unsandboxed.in_process.InProcess` answers in this process.
    """

    idle_seconds: float  # the idle time in all requests so far; 0 if it cannot be measured

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Send a request and wait for the reply; raise `StudentLost` if there is none."""

    def cpu_seconds(self) -> float:
        """The CPU time used so far."""

    def close(self) -> None:
        """Close the channel, and end its process unless the process can serve other submissions."""


class Wired(Channel):
    """A channel to another process, to which messages are sent as bytes."""

    idle_seconds = 0.0

    @abstractmethod
    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = IDLE_TEST) -> bytes:
        """Send a request and wait for the reply, both as bytes; raises `StudentLost`."""

    @abstractmethod
    def give_up(self, status: Loss, text: str) -> StudentLost:
        """End a process that gave no usable reply; returns the exception to raise."""

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """See `Channel`."""
        answer = self.ask(wire.encode(request), left.seconds, left.idle_seconds)
        try:
            reply = wire.decode_reply(answer)
        except wire.WireError as error:
            raise self.give_up("crashed", f"the reply could not be read ({error})") from None
        if isinstance(reply, wire.Refused):
            raise self.give_up("crashed", f"there is no reply: {reply.why}")
        return reply


@dataclass(frozen=True)
class StudentCall:
    """A call of the student's code; its outcome is None if the process was lost."""

    call: wire.Call
    outcome: wire.Outcome | None


class Backend(Protocol):
    """The source of channels, and so the place where student code runs: jails or workers."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the isolation layers that each channel has."""

    def open(self, limits: Limits) -> Channel:
        """A channel to a process in which no submission has run yet."""


class Nowhere:
    """A back end for uses without a submission: it starts no process."""

    layers: tuple[str, ...] = ()

    def open(self, limits: Limits) -> Channel:
        """Never called; required by `Backend`."""
        raise NotImplementedError(limits)


class Session:
    """The tests' connection to one submission; starts a new process when one is lost."""

    def __init__(
        self,
        open_channel: Callable[[Limits], Channel],
        opening: wire.Open,
        limits: Limits,
        forbidden: Mapping[str, tuple[str, ...]] | None = None,
        first: str = "",
    ) -> None:
        """Start a process, and list the submission's definitions in it.

        `forbidden` are the forbidden torch functions of each exercise, by its name. The process
        forbids the functions of the exercise `first`, so that it can serve that exercise's tests.
        Raises `StudentLost` if the definitions cannot be listed.
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
        self._memory_mb = limits.memory_mb  # the memory limit of the running process
        self._answered: list[wire.Run] = []  # the running test's requests so far
        self._repeats = False  # whether the next request is repeated, see `Repeatable`
        self.printed = ""  # text that the running test's calls printed, up to a limit
        self.calls: list[Any] = []  # if `listens`: the running test's calls and their outcomes
        self.listens = False
        self._listed = False
        # The submission cannot forge this reply: it is sent before any line of the submission runs.
        self.listing = self._retrying(self._start)
        self._listed = True

    def _start(self) -> wire.Listing:
        self._repeats = False
        self._channel = self._open_channel(replace(self._limits, memory_mb=self._memory_mb))
        wanted, others = self._opening.wanted, self._opening.others
        if self._listed:  # an earlier process listed them: load only the needed answers
            wanted, others = (), (*wanted, *others)
        parts = {"wanted": wanted, "forbidden": self._forbidden, "others": others}
        opening = msgspec.structs.replace(self._opening, **parts)
        reply = self._exchange(opening, self._budget.left_to_list(self._used()))
        if not isinstance(reply, wire.Listing):
            raise self._give_up("crashed", "the submission could not be listed")
        return reply

    def _retrying(self, ask: Callable[[], Answer]) -> Answer:
        """Call `ask` and return its result; call it again after a `Repeatable` loss.

        `ask` then starts a fresh process.
        """
        for _ in range(TRIES - 1):
            with suppress(Repeatable):
                return ask()
        return ask()

    def _forbids(self, exercise: str) -> tuple[str, ...]:
        return self._forbidden_by.get(exercise, ())

    def begin_case(self, seed: int, exercise: str = "", memory_mb: int | None = None) -> None:
        """Begin a case of a test: forget handles, seed the guest's generators, set time and memory.

        A process cannot get forbidden functions back, nor change its memory limit. Therefore a case
        with other forbidden functions or another memory limit gets a fresh process.
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
        self._budget.begin_case(exercise, self._used())
        self._queue = [wire.Seed(seed)]
        self.handles = count(1)

    @contextmanager
    def without_checks(self) -> Iterator[None]:
        """Run the submission without its assertions and prints, in a process of its own."""
        self.close()
        opening = self._opening
        self._opening = msgspec.structs.replace(opening, checks=False)
        try:
            yield
        finally:
            self.close()
            self._opening = opening

    @property
    def may_check(self) -> bool:
        """Whether the submission may have statements that only check or print."""
        return any(may_check(source.cells) for source in self._opening.sources)

    @property
    def in_cells(self) -> bool:
        """Whether the submission consists of the cells that ran in a notebook's kernel."""
        return any(source.name == wire.KERNEL for source in self._opening.sources)

    def line(self, place: wire.Place | None) -> wire.Place | None:
        """Check a place from a reply, and take its text from the submission.

        Returns None if the submission has no such line.
        """
        if place is None:
            return None
        lines = wire.lines_around(place, self._opening.sources)
        if not lines:
            return None
        text = lines[place.line - 1].strip()[:200]
        return wire.Place(place.file, place.line, text, place.cell)

    def later(self, call: wire.Call) -> None:
        """Queue a call whose outcome is not needed; it is sent together with the next call.

        Raises `StudentLost` if the process with the test's objects has ended.
        """
        self._require_process()
        self._queue.append(call)

    def run(self, *calls: wire.Call) -> list[wire.Outcome]:
        """Send calls in one message; returns their outcomes, up to the first that raised."""
        queued, self._queue = self._queue, []
        request = wire.Run([*queued, *calls])
        try:
            reply = self._retrying(lambda: self._reply(request))
        except StudentLost:
            self._note(request.calls, [None] * len(request.calls))
            raise
        if not isinstance(reply, wire.Outcomes):
            raise self._give_up("crashed", "the reply was of the wrong type")
        self._answered.append(request)
        self._note(request.calls, reply.outcomes)
        self.printed = (self.printed + reply.printed)[: wire.MAX_TEXT]
        outcomes = reply.outcomes
        if len(outcomes) <= len(queued) and any(isinstance(o, wire.Raised) for o in outcomes):
            return outcomes[-1:]  # a queued call raised: return its exception
        if len(outcomes) > len(queued) + len(calls):
            raise self._give_up("crashed", "the reply has more results than calls")
        return outcomes[len(queued) :]

    def _reply(self, request: wire.Run) -> wire.Reply:
        """Send a request to the process; if the request is repeated, start a fresh process first.

        The fresh process first gets the test's earlier requests, to make the same objects.
        """
        if self._repeats:
            self._start()
            self._budget.restart_case(self._used())
            for earlier in self._answered:
                self._exchange(earlier, self._time_left())
        return self._exchange(request, self._time_left())

    def _note(self, calls: Sequence[wire.Call], outcomes: Sequence[wire.Outcome | None]) -> None:
        if self.listens:
            self.calls += map(StudentCall, calls, outcomes)

    def _require_process(self) -> None:
        """Raise `StudentLost` if the running test's process has ended."""
        if self._channel is None:
            raise StudentLost("crashed", "its process ended in an earlier call of this test")

    def _time_left(self) -> Left:
        """The time left for the next request; raises `StudentLost` without a process."""
        self._require_process()
        return self._budget.left(self._used())

    def _used(self) -> Used:
        """CPU and idle time of the running process so far."""
        if self._channel is None:
            return Used()
        return Used(self._channel.cpu_seconds(), self._channel.idle_seconds)

    def _exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Send a request; end the process if no time is left or the reply is unusable."""
        assert self._channel is not None
        if left.seconds <= 0:
            raise self._give_up("timeout", f"the time for this {left.whose} is used up")
        try:
            return self._channel.exchange(request, left)
        except BaseException as error:
            if isinstance(error, StudentLost) and error.status == "timeout":
                self._budget.note_timeout()
            if isinstance(error, LacksTorch):
                self._limits = replace(self._limits, whole_torch=True)
            self.close()
            self._repeats = isinstance(error, Repeatable)
            raise

    def _give_up(self, status: Loss, text: str) -> StudentLost:
        self.close()
        return StudentLost(status, text)

    def close(self) -> None:
        """End the student's process."""
        if self._channel is not None:
            self._channel.close()
            self._budget.note_end(self._used())
            self._channel = None
