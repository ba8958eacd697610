"""Our own code in a fork of this process, within limits: a known mistake may never end.

A fork is ready in some 20 ms, and knows all that this process knows: no text of a student's comes
here. The kernel ends it when it takes too long, even if this process is gone by then.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import torch

from grader.guest.work import limit_memory
from grader.sandbox.budget import WALL_FACTOR
from grader.sandbox.session import Limits

Answer = Callable[[Any], bytes]


class Ended(Exception):
    """The fork took too much time or memory, or went down."""


def possible() -> bool:
    """Whether torch survives a fork here; macOS and a GPU's driver do not let it."""
    return sys.platform == "linux" and not torch.accelerator.is_available()


class Forked:
    """A fork of this process that answers questions, each within the limits of a test."""

    def __init__(self, answer: Answer, limits: Limits) -> None:
        """It knows what `answer` knows now, and keeps what it learns for the next question."""
        self._line, theirs = Pipe()
        # A fork that Ctrl-C wakes before it is set up would go on as if it were this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            with warnings.catch_warnings(action="ignore"):  # of threads: the fork needs none
                self._pid = os.fork()
            if self._pid == 0:
                _serve(theirs, answer, limits, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.ended = False

    def ask(self, question: object) -> bytes:
        """The answer to a picklable question; raises `Ended`.

        After `Ended` or Ctrl-C the fork is closed.
        """
        try:
            self._line.send(question)
            return self._line.recv_bytes()
        except (EOFError, OSError):
            self.close()
            raise Ended from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it, whatever it is at."""
        if not self.ended:
            self.ended = True
            self._line.close()
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


# --- in the fork ---------------------------------------------------------------------------------


def _serve(line: Connection, answer: Answer, limits: Limits, unblocked: set[int]) -> NoReturn:
    """Answer until nobody asks; it never returns into what this process was at."""
    try:
        _let_go(line, unblocked)
        _give(limits.test_seconds)
        limit_memory(limits.memory_mb)
        while True:
            question = line.recv()
            _give(limits.test_seconds)
            reply = answer(question)
            _give(0)
            line.send_bytes(reply)
    finally:
        os._exit(0)


def _let_go(line: Connection, unblocked: set[int]) -> None:
    """Of all that belongs to the process that asks: Ctrl-C, files, sockets, old objects."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ends_it in (signal.SIGTERM, signal.SIGALRM, signal.SIGPROF):
        signal.signal(ends_it, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    # A jail is over when its socket is closed: everywhere.
    os.closerange(3, line.fileno())
    os.closerange(line.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # looks for garbage would copy all that is shared


def _give(seconds: float) -> None:
    """Time for one answer, after which the kernel ends this process; 0 takes the limit away."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
