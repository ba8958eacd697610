"""The cost of the lock-down: seconds to take and end an empty jail, with all layers and without.

Both kinds run in turn in one call, so that a busy machine slows both. As in a grading, the next
jail is forked and locked at the same time.
"""

from __future__ import annotations

import os
import statistics
import time

from grader import wire
from grader.sandbox.budget import Left
from grader.sandbox.jails import LAYERS, WITHOUT, Warm
from grader.sandbox.session import Limits

ROUNDS = 100


def seconds_per_jail(warm: Warm) -> float:
    """From asking for one until its process is gone."""
    started = time.perf_counter()
    jail = warm.open(Limits())
    jail.exchange(wire.Open((), ()), Left(5.0, "test"))
    jail.close(grace=0)
    return time.perf_counter() - started


def measure() -> tuple[float, float]:
    """Median seconds of a jail without layers, and of a jail with all available layers."""
    with Warm() as locked:
        os.environ[WITHOUT] = " ".join(LAYERS[1:])
        try:
            bare = Warm()
        finally:
            del os.environ[WITHOUT]
        with bare:
            for warm in (locked, bare):  # not timed: the first time is slower
                seconds_per_jail(warm)
            pairs = [(seconds_per_jail(bare), seconds_per_jail(locked)) for _ in range(ROUNDS)]
    without, within = (statistics.median(times) for times in zip(*pairs, strict=True))
    return without, within
