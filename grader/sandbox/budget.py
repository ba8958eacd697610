"""The time of one submission: what it may use, what it has used, and what is left.

It only counts: `session` says what its process has used so far, asks before each message, and ends
a process that has nothing left. This module knows no process, no message, and no status of a test.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

WALL_FACTOR = 10  # a busy machine, or a student who sleeps, may take this many times the CPU limit
# Seconds for which code may neither run nor wait for a processor, where the kernel tells: it sleeps
# or is stopped. One that has used all its time for that may still rest for a moment in a test.
IDLE_TEST, IDLE_SUBMISSION, IDLE_MOMENT = 3.0, 10.0, 0.1
# After so many time-outs one more is likely: CPU seconds for each further test of an exercise that
# has not come to an end yet. In all that makes less than 20 s for 51 exercises of which none ends.
SHORT_TESTS = {3: 0.3, 10: 0.12}
# The same where the exercise has: right answers to the longest test need a third of it.
SHORT_BUT_ENDING = 1.0


@dataclass(frozen=True)
class Used:
    """CPU seconds, and idle seconds as far as they can be told."""

    cpu: float = 0.0
    idle: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.cpu + other.cpu, self.idle + other.idle)


@dataclass(frozen=True)
class Left:
    """CPU seconds for the next message, and whose time is used up where there are none."""

    seconds: float
    whose: Literal["test", "submission"]


class Budget:
    """One submission's time, in all its processes; `running` is what the present one has used."""

    def __init__(self, test_seconds: float, submission_seconds: float) -> None:
        """The limits: CPU seconds per test and in all."""
        self._test_limit, self._submission_limit = test_seconds, submission_seconds
        self._gone = Used()  # by processes that have ended
        self._timeouts = 0
        self._exercise, self._timeouts_then = "", 0  # of the running test, and before it
        self._ending: set[str] = set()  # exercises of which a test has come to an end
        self._test_seconds = test_seconds  # that the running test may use
        self._test_from = Used()  # in all, when it began
        self._wall_from = self._opened = time.monotonic()

    def begin_test(self, exercise: str, running: Used) -> None:
        """Give a test its time: little after time-outs."""
        if self._timeouts == self._timeouts_then:
            self._ending.add(self._exercise)
        self._exercise, self._timeouts_then = exercise, self._timeouts
        self._test_seconds = self._seconds_for(exercise)
        self._test_from = self._gone + running
        self._wall_from = time.monotonic()

    def _seconds_for(self, exercise: str) -> float:
        seconds = self._test_limit
        if self._timeouts >= min(SHORT_TESTS) and exercise in self._ending:
            return min(SHORT_BUT_ENDING, seconds)
        return min([seconds, *(s for n, s in SHORT_TESTS.items() if self._timeouts >= n)])

    def note_timeout(self) -> None:
        """What was asked did not come to an end in its time."""
        self._timeouts += 1

    def note_end(self, used: Used) -> None:
        """The process has ended, and this is what it had used."""
        self._gone += used

    def left_to_list(self, running: Used) -> Left:
        """For a new process, which lists what there is; no test pays for that."""
        in_all = self._left_in_all((self._gone + running).cpu, time.monotonic())
        return Left(min(self._test_limit, in_all), "submission")

    def left(self, running: Used) -> Left:
        """For the running test's next call."""
        used, now = (self._gone + running).cpu, time.monotonic()
        of_test = min(
            self._test_from.cpu + self._test_seconds - used,
            # A channel waits this many times longer by the clock on the wall.
            self._test_seconds - (now - self._wall_from) / WALL_FACTOR,
        )
        in_all = self._left_in_all(used, now)
        return Left(min(of_test, in_all), "submission" if in_all <= 0 else "test")

    def _left_in_all(self, used: float, now: float) -> float:
        waited = (now - self._opened) / WALL_FACTOR
        return self._submission_limit - max(used, waited)

    def idle_left(self, running: Used) -> float:
        """Idle seconds for the running test's next call."""
        used = (self._gone + running).idle
        in_all = max(IDLE_SUBMISSION - used, IDLE_MOMENT)
        return max(min(IDLE_TEST - (used - self._test_from.idle), in_all), 0.0)
