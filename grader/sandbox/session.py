"""The trusted end of the wall: one submission's session, through as many processes as it takes.

Nothing here believes a reply. A process that stays silent, answers nonsense or too much, or dies is
*lost*: the test that was running gets a status of its own, and the next test a fresh process.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, Protocol

from grader import wire

Loss = Literal["timeout", "memory", "crashed"]
Device = Literal["cpu", "cuda"]  # on which a submission computes
WALL_FACTOR = 10  # a busy machine, or a student who sleeps, may take this many times the CPU limit
# Seconds for which code may neither run nor wait for a processor, where the kernel tells: it sleeps
# or is stopped. One that has used all its time for that may still rest for a moment in a test.
IDLE_TEST, IDLE_SUBMISSION, IDLE_MOMENT = 3.0, 10.0, 0.1
# After so many time-outs one more is likely: CPU seconds for each further test of an exercise that
# has not come to an end yet. In all that makes less than 20 s for 51 exercises of which none ends.
SHORT_TESTS = {3: 0.3, 10: 0.12}
# The same where the exercise has: right answers to the longest test need a third of it.
SHORT_BUT_ENDING = 1.0


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
    """Where student code runs: in jails, in a worker process, or right here."""

    @property
    def in_cells(self) -> bool:
        """Whether answers are what a notebook's cells have defined, and stand in no file."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The isolation layers of each channel."""

    def open(self, limits: Limits) -> Channel:
        """A channel to a process, or a part of one, in which no submission has run yet."""


class Nowhere:
    """A back end for a desk at which no submission is seated: no process is started for it."""

    layers: tuple[str, ...] = ()
    in_cells = False

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
        self._spent = 0.0  # CPU seconds of channels that are gone
        self._idle = 0.0  # the same of idle seconds
        self._timeouts = 0
        self._exercise, self._timeouts_then = "", 0  # of the running test, and before it
        self._ending: set[str] = set()  # exercises of which a test has come to an end
        self._test_seconds = limits.test_seconds  # CPU seconds that the running test may use
        self._test_from = 0.0
        self._idle_from = 0.0
        self._wall_from = self._opened = time.monotonic()
        self._queue: list[wire.Call] = []
        self.handles = count(1)  # numbers under which the guest keeps modules and graphs
        self._forbidden = self._forbids(first)
        self._memory_mb = limits.memory_mb  # of the process that is running
        self.tape: list[tuple[bytes, bytes]] = []  # the running test's questions, with answers
        self._known: deque[tuple[bytes, bytes]] = deque()  # see `recall`
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
        left = min(self._limits.test_seconds, self._left(self.cpu_seconds(), time.monotonic()))
        if left <= 0:
            raise self._drop(StudentLost("timeout", "the time for this submission is used up"))
        try:
            reply = self._exchange(opening, left)
        except Killed:  # before any line of the submission ran: the next jail may be gone as well
            if tries == 1:
                raise
            return self._start(tries - 1)
        if not isinstance(reply, wire.Listing):
            raise self._drop(StudentLost("crashed", "the submission could not be listed"))
        return reply

    def _left(self, used: float, now: float) -> float:
        """CPU seconds that the submission may still use, in all its processes."""
        waited = (now - self._opened) / WALL_FACTOR
        return self._limits.submission_seconds - max(used, waited)

    def _forbids(self, exercise: str) -> tuple[str, ...]:
        return self._forbidden_by.get(exercise, ())

    def begin_test(self, seed: int, exercise: str = "", memory_mb: int | None = None) -> None:
        """Forget handles, seed the guest's generators, and give the test its time and memory.

        What the exercise forbids is taken out of a process for good, and memory is limited for
        good: a test that differs in either needs a fresh process.
        """
        self.tape.clear()
        self._known.clear()
        self.printed = ""
        self.said = []
        memory_mb = memory_mb or self._limits.memory_mb
        if (self._forbids(exercise), memory_mb) != (self._forbidden, self._memory_mb):
            self.close()
            self._forbidden, self._memory_mb = self._forbids(exercise), memory_mb
        if self._channel is None:
            self._start()
        if self._timeouts == self._timeouts_then:
            self._ending.add(self._exercise)
        self._exercise, self._timeouts_then = exercise, self._timeouts
        self._test_seconds = self._seconds_for(exercise)
        self._test_from = self.cpu_seconds()
        self._idle_from = self._idle_seconds()
        self._wall_from = time.monotonic()
        self._queue = [wire.Seed(seed)]
        self.handles = count(1)

    def _seconds_for(self, exercise: str) -> float:
        """CPU seconds for a test: few after time-outs."""
        seconds = self._limits.test_seconds
        if self._timeouts >= min(SHORT_TESTS) and exercise in self._ending:
            return min(SHORT_BUT_ENDING, seconds)
        return min([seconds, *(s for n, s in SHORT_TESTS.items() if self._timeouts >= n)])

    def cpu_seconds(self) -> float:
        """CPU time that the submission has used in all its processes."""
        return self._spent + (self._channel.cpu_seconds() if self._channel else 0.0)

    def line(self, place: wire.Place | None) -> wire.Place | None:
        """A place that a reply names, as a line of the submission; None where there is none."""
        if place is None or not self._opening.sources:  # answered right here, by a notebook's code
            return place
        notebook, _, cell = place.file.rpartition(" cell ")
        cells = {source.name: source.cells for source in self._opening.sources}
        texts = cells.get(place.file, ())
        if not texts and cell.isdecimal():
            texts = cells.get(notebook, ())[int(cell) - 1 : int(cell)]
        lines = re.sub(r"\r\n?", "\n", "\n".join(texts)).split("\n") if texts else []
        if not 0 < place.line <= len(lines):
            return None
        return wire.Place(place.file, place.line, lines[place.line - 1].strip()[:200])

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
            return self._wired.ask(question, left, self._idle_left())

    def recall(self, said: Iterable[tuple[bytes, bytes]]) -> None:
        """Answer the running test's first calls with what was answered already.

        `run` raises `Unlike` if it has another question than these.
        """
        self._known.extend(said)

    def _replied(self, request: wire.Request) -> wire.Reply:
        if self._wired is None:
            return self._exchange(request, self._time_left())
        question = wire.encode(request)
        if self._known:
            known, answer = self._known.popleft()
            if known != question:
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
        used, now = self.cpu_seconds(), time.monotonic()
        of_test = min(
            self._test_from + self._test_seconds - used,
            # A channel waits this many times longer by the clock on the wall.
            self._test_seconds - (now - self._wall_from) / WALL_FACTOR,
        )
        in_all = self._left(used, now)
        if min(of_test, in_all) <= 0:
            whose = "submission" if in_all <= 0 else "test"
            raise self._drop(StudentLost("timeout", f"the time for this {whose} is used up"))
        return min(of_test, in_all)

    def _idle_seconds(self) -> float:
        return self._idle + (self._wired.idle_seconds if self._wired else 0.0)

    def _idle_left(self) -> float:
        """Idle seconds for the next call."""
        used = self._idle_seconds()
        in_all = max(IDLE_SUBMISSION - used, IDLE_MOMENT)
        return max(min(IDLE_TEST - (used - self._idle_from), in_all), 0.0)

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
            self._timeouts += isinstance(error, StudentLost) and error.status == "timeout"
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
            self._idle = self._idle_seconds()
            self._channel.close()
            self._spent += self._channel.cpu_seconds()
            self._channel = self._wired = None
