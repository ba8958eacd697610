"""Run the kit's own code in a fork of this process, with limits: a known mistake may never end.

A fork is ready in some 20 ms. It must not run a student's code, since it has all data of this
process in memory. The kernel ends a fork that takes too long, even if this process ended before it.
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
    """The fork exceeded its time or memory, or ended by itself."""


def possible() -> bool:
    """Whether torch works in a fork on this machine: only on Linux, and only without a GPU."""
    return sys.platform == "linux" and not torch.accelerator.is_available()


class Forked:
    """A fork of this process that answers questions, each within the limits of a test."""

    def __init__(self, answer: Answer, limits: Limits) -> None:
        """Fork this process; the fork calls `answer` for each question.

        The fork has a copy of this process's objects, and keeps changes to them between questions.
        """
        self._line, theirs = Pipe()
        # If Ctrl-C arrived in the fork before `_serve` is ready, the fork would continue as a
        # second copy of this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            with warnings.catch_warnings(action="ignore"):  # about threads, which the fork lacks
                self._pid = os.fork()
            if self._pid == 0:
                _serve(theirs, answer, limits, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.ended = False

    def ask(self, question: object) -> bytes:
        """The fork's answer to a picklable question; raises `Ended` if there is none.

        After `Ended` or Ctrl-C, the fork is closed.
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
        """End the fork, even if it is busy."""
        if not self.ended:
            self.ended = True
            self._line.close()
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


# --- in the fork ---------------------------------------------------------------------------------


def _serve(line: Connection, answer: Answer, limits: Limits, unblocked: set[int]) -> NoReturn:
    """Answer questions until the pipe is closed; never return to the code that forked."""
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
    """Release what the fork inherited: signal handlers, open files and sockets, old objects."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ends_it in (signal.SIGTERM, signal.SIGALRM, signal.SIGPROF):
        signal.signal(ends_it, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    # A jail ends only when every process has closed the other end of its socket, also this fork.
    os.closerange(3, line.fileno())
    os.closerange(line.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # otherwise garbage collection would copy the pages shared with the other process


def _give(seconds: float) -> None:
    """Let the kernel end this process after so many seconds of CPU time; 0 removes the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # counts CPU time
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
