"""The time of one submission: its limits, the time used so far, and the time left.

It only counts: `session` reports the time that its process has used, asks before each message, and
ends a process without time left. This module knows no process, no message, and no status of a test.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

WALL_FACTOR = 10  # a busy machine, or a student who sleeps, may take this many times the CPU limit
# Seconds for which code may rest: it sleeps or is stopped, where the kernel can tell. After
# IDLE_SUBMISSION in all, each test may still rest for IDLE_MOMENT.
IDLE_TEST, IDLE_SUBMISSION, IDLE_MOMENT = 3.0, 10.0, 0.1
# CPU seconds for each further test after so many time-outs, in an exercise of which no test has
# ended in time: one more is likely. 51 exercises that never end take less than 20 s.
SHORT_TESTS = {3: 0.3, 10: 0.12}
# The same in an exercise of which a test has: three times what right answers need at most.
SHORT_BUT_ENDING = 1.0


@dataclass(frozen=True)
class Used:
    """CPU seconds, and idle seconds where the kernel reports them."""

    cpu: float = 0.0
    idle: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.cpu + other.cpu, self.idle + other.idle)


@dataclass(frozen=True)
class Left:
    """The time for the next message."""

    seconds: float  # of CPU time
    whose: Literal["test", "submission"]  # whose time is used up, where no second is left
    idle_seconds: float = IDLE_TEST


class Budget:
    """One submission's time in all its processes; `running` is that of the present process."""

    def __init__(self, test_seconds: float, submission_seconds: float) -> None:
        """The limits: CPU seconds per test and in all."""
        self._test_limit, self._submission_limit = test_seconds, submission_seconds
        self._gone = Used()  # by processes that have ended
        self._timeouts = 0
        self._exercise, self._timeouts_then = "", 0  # of the running test, and when it began
        self._ending: set[str] = set()  # exercises of which a test ended in time
        self._test_seconds = test_seconds  # that the running test may use
        self._test_from = Used()  # in all, when it began
        self._wall_from = self._opened = time.monotonic()

    def begin_test(self, exercise: str, running: Used) -> None:
        """Give a test its time: less after time-outs."""
        if self._timeouts == self._timeouts_then:
            self._ending.add(self._exercise)
        self._exercise, self._timeouts_then = exercise, self._timeouts
        self._test_seconds = self._seconds_for(exercise)
        self.restart_test(running)

    def restart_test(self, running: Used) -> None:
        """Give the running test its time again, in a fresh process after a kill."""
        self._test_from = self._gone + running
        self._wall_from = time.monotonic()

    def _seconds_for(self, exercise: str) -> float:
        seconds = self._test_limit
        if self._timeouts >= min(SHORT_TESTS) and exercise in self._ending:
            return min(SHORT_BUT_ENDING, seconds)
        return min([seconds, *(s for n, s in SHORT_TESTS.items() if self._timeouts >= n)])

    def note_timeout(self) -> None:
        """Count a request that did not end in its time."""
        self._timeouts += 1

    def note_end(self, used: Used) -> None:
        """Count the time of a process that has ended."""
        self._gone += used

    def left_to_list(self, running: Used) -> Left:
        """The time for a new process to list its definitions; no test pays for it."""
        in_all = self._left_in_all((self._gone + running).cpu, time.monotonic())
        return Left(min(self._test_limit, in_all), "submission")

    def left(self, running: Used) -> Left:
        """The time for the running test's next call."""
        used, now = (self._gone + running).cpu, time.monotonic()
        of_test = min(
            self._test_from.cpu + self._test_seconds - used,
            # A channel waits this many times longer by the clock on the wall.
            self._test_seconds - (now - self._wall_from) / WALL_FACTOR,
        )
        in_all = self._left_in_all(used, now)
        whose: Literal["test", "submission"] = "submission" if in_all <= 0 else "test"
        return Left(min(of_test, in_all), whose, self._idle_left(running))

    def _left_in_all(self, used: float, now: float) -> float:
        waited = (now - self._opened) / WALL_FACTOR
        return self._submission_limit - max(used, waited)

    def _idle_left(self, running: Used) -> float:
        used = (self._gone + running).idle
        in_all = max(IDLE_SUBMISSION - used, IDLE_MOMENT)
        return max(min(IDLE_TEST - (used - self._test_from.idle), in_all), 0.0)
