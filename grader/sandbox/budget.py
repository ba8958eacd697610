"""The time of one submission: its limits, the time used so far, and the time left.

This module only computes. `session` reports the time that a process has used, requests the time
left before each message, and ends a process that has no time left. This module knows no process, no
message, and no status of a test.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

# The wall time may be this many times the CPU limit: the machine may be busy, or the code asleep.
WALL_FACTOR = 10
# Limits of idle time, in seconds. Code is idle while it sleeps or is stopped; not every kernel
# reports idle time. IDLE_TEST is for each test, and IDLE_SUBMISSION for all tests of a submission.
# After IDLE_SUBMISSION is used up, each test may still be idle for IDLE_MOMENT.
IDLE_TEST, IDLE_SUBMISSION, IDLE_MOMENT = 3.0, 10.0, 0.1
# After 3 time-outs, each further test gets 0.3 CPU seconds; after 10, 0.12. This applies to an
# exercise of which no test has ended in time, since its next test will probably time out too.
# With these limits, 51 exercises that never end take less than 20 s.
SHORT_TESTS = {3: 0.3, 10: 0.12}
# CPU seconds after 3 time-outs, for an exercise of which a test has ended in time. Right answers
# need at most a third.
SHORT_BUT_ENDING = 1.0


@dataclass(frozen=True)
class Used:
    """CPU seconds used, and idle seconds (0 if the kernel does not report idle time)."""

    cpu: float = 0.0
    idle: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.cpu + other.cpu, self.idle + other.idle)


@dataclass(frozen=True)
class Left:
    """The time left for the next message."""

    seconds: float  # of CPU time
    whose: Literal["test", "submission"]  # whose limit was reached, if no time is left
    idle_seconds: float = IDLE_TEST


class Budget:
    """The time of one submission in all its processes.

    The methods take `running`, the time that the current process has used.
    """

    def __init__(self, test_seconds: float, submission_seconds: float) -> None:
        """Set the limits: CPU seconds for each case of a test, and for the submission."""
        self._test_limit, self._submission_limit = test_seconds, submission_seconds
        self._gone = Used()  # the time of processes that have ended
        self._timeouts = 0
        # The running test's exercise, and the number of time-outs when the test began.
        self._exercise, self._timeouts_then = "", 0
        self._ending: set[str] = set()  # exercises of which a test ended in time
        self._test_seconds = test_seconds  # CPU seconds that the running test may use
        self._test_from = Used()  # the submission's time when the running test began
        self._wall_from = self._opened = time.monotonic()

    def begin_case(self, exercise: str, running: Used) -> None:
        """Begin the time of a test's case; after several time-outs, a case gets less time."""
        if self._timeouts == self._timeouts_then:
            self._ending.add(self._exercise)
        self._exercise, self._timeouts_then = exercise, self._timeouts
        self._test_seconds = self._seconds_for(exercise)
        self.restart_case(running)

    def restart_case(self, running: Used) -> None:
        """Begin the running case's time anew, for a fresh process after a kill."""
        self._test_from = self._gone + running
        self._wall_from = time.monotonic()

    def _seconds_for(self, exercise: str) -> float:
        seconds = self._test_limit
        if self._timeouts >= min(SHORT_TESTS) and exercise in self._ending:
            return min(SHORT_BUT_ENDING, seconds)
        return min([seconds, *(s for n, s in SHORT_TESTS.items() if self._timeouts >= n)])

    def note_timeout(self) -> None:
        """Count a request that exceeded its time."""
        self._timeouts += 1

    def note_end(self, used: Used) -> None:
        """Add the time that a process used before it ended."""
        self._gone += used

    def left_to_list(self, running: Used) -> Left:
        """The time left for a new process to list its definitions, which counts for no test."""
        in_all = self._left_in_all((self._gone + running).cpu, time.monotonic())
        return Left(min(self._test_limit, in_all), "submission")

    def left(self, running: Used) -> Left:
        """The time left for the running test's next call."""
        used, now = (self._gone + running).cpu, time.monotonic()
        of_test = min(
            self._test_from.cpu + self._test_seconds - used,
            # A channel allows WALL_FACTOR seconds of wall time for each CPU second.
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
