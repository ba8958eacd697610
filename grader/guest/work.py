"""The worker process: loads torch once, and serves one submission after another.

It is started as ``python -I -m grader.guest.work``, with pipes as standard input and output. It
does not isolate a submission. It is for a student's checks on their own computer, and for grading
on a GPU.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import warnings
from math import inf
from pathlib import Path
from time import process_time, sleep
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import msgspec

from grader.guest.preload import forget_projects, load_torch
from grader.wire import frames
from grader.wire.frames import TIMED_OUT, Begin, WorkerReady, fingerprint

if TYPE_CHECKING:
    from grader.guest.cleanup import Untouched

MAX_REQUEST = 2**30
TICK = 0.05  # seconds between checks of the CPU time


class RequestLine:
    """The pipes to the process that started this worker."""

    def __init__(self) -> None:
        self._requests, self._replies = _take_pipes()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._process = os.getpid()
        # The thread ends this process when the pipe is closed, even while student code runs.
        threading.Thread(target=self._listen, daemon=True).start()

    def receive(self) -> bytes:
        """Wait for a frame."""
        return self._inbox.get()

    def send(self, data: bytes) -> None:
        """Send a frame."""
        if os.getpid() != self._process:
            os._exit(0)  # student code has forked this process: the child must not reply
        frames.write(self._replies, data)

    def _listen(self) -> None:
        try:
            while (data := frames.read(self._requests, MAX_REQUEST)) is not None:
                self._inbox.put(data)
        finally:
            os._exit(0)


class Clock:
    """Ends this process when a request exceeds its CPU time."""

    def __init__(self) -> None:
        self._running = threading.Event()
        self._until = inf
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self, seconds: float) -> None:
        """Begin a request, and limit its CPU time."""
        self._until = process_time() + seconds
        self._running.set()

    def stop(self) -> None:
        """End a request, and remove its limit."""
        self._running.clear()
        self._until = inf

    def _watch(self) -> None:
        while self._running.wait():
            if process_time() > self._until:
                os._exit(TIMED_OUT)
            sleep(TICK)


def main() -> NoReturn:
    """Load torch, report success or failure, and serve submissions until the pipe is closed."""
    line, clock = RequestLine(), Clock()
    version = fingerprint()
    try:
        try:
            untouched = _preload()
        except Exception as error:
            line.send(
                msgspec.msgpack.encode(WorkerReady(version, f"{type(error).__name__}: {error}"))
            )
            os._exit(1)
        line.send(msgspec.msgpack.encode(WorkerReady(version)))
        while True:
            begin = msgspec.msgpack.decode(line.receive(), type=Begin)
            if begin.device == "cpu":  # a GPU's driver alone would exceed the limit
                limit_memory(begin.memory_mb)
            _serve(line, clock, begin)
            why_not = untouched.restore()
            clock.stop()
            line.send(why_not.encode())
    finally:
        os._exit(1)


def _serve(line: RequestLine, clock: Clock, begin: Begin) -> None:
    """Answer the requests for a submission, each within its CPU time."""
    from grader.guest.server import serve

    def receive() -> bytes | None:
        data = line.receive()
        clock.start(begin.cpu_seconds)
        return data or None

    def send(data: bytes) -> None:
        clock.stop()
        line.send(data)

    with warnings.catch_warnings():
        # Forbidden operations are only reported. Removing them from torch would affect the next
        # submission too. A report is enough here, since a worker's results can be forged anyway.
        serve(receive, send, begin.device, take_away=False)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Duplicate the pipes, and point the standard descriptors to the null device."""
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (0, 1):
            msvcrt.setmode(descriptor, os.O_BINARY)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return requests, replies


def _preload() -> Untouched:
    """Load torch, and then record the state of the process."""
    load_torch(whole=True)
    # Imported here, because the module needs torch, and `main` reports a failure to import torch.
    from grader.guest.cleanup import Untouched
    from grader.guest.interpreter import compile_nothing

    compile_nothing()
    forget_projects()
    return Untouched()


def limit_memory(megabytes: int) -> None:
    """Limit the memory that a submission can allocate, if the kernel supports it."""
    try:
        import resource

        status = Path("/proc/self/status").read_text("ascii")
    except (ImportError, OSError):
        return
    lines = status.splitlines()
    (now,) = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + megabytes * 2**20
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()
