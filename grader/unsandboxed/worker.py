"""Workers, seen from the trusted process: for notebooks, for systems without fork, and for GPUs.

A worker is a process with torch loaded that runs one submission after another. A spare worker has
torch loaded too, and takes over at once if a submission never ends or crashes its process. A worker
does not isolate a submission. This module uses only calls that Windows and macOS have. It does not
import torch: the first worker and the process that starts it can load torch at the same time.
"""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Literal

import msgspec

from grader.records.faults import CallError, HostFault
from grader.sandbox import jails
from grader.sandbox.budget import IDLE_TEST
from grader.sandbox.session import Backend, Device, Limits, Loss, StudentLost, Wired
from grader.wire import MAX_REPLY, frames
from grader.wire.frames import TIMED_OUT, Begin, WorkerReady, fingerprint

COMMAND = (sys.executable, "-I", "-m", "grader.guest.work")
# A worker ends itself when its CPU time is used up. But it cannot interrupt a sleep, or a long step
# inside a library. Therefore this module also limits the wall time until the reply: to PATIENCE
# times the CPU limit, since other programs use the machine too, plus SLACK seconds.
PATIENCE = 2
SLACK = 1.0
TIDYING = 5.0  # seconds for a worker to undo a submission's changes
GRACE = 0.25  # seconds for a process to end by itself
TICK = 0.2  # seconds between checks for Ctrl-C, which does not interrupt a wait on Windows
MAX_FRAME = MAX_REPLY + 2**16  # bytes: the longest frame to accept from a worker
SPARE_NEEDS = 2 * 2**30  # bytes of memory that must be free for a spare worker
CGROUP = Path("/sys/fs/cgroup")  # the folder with the memory limit of a container

BackendName = Literal["auto", "jail", "worker"]


def backend(name: BackendName = "auto", device: Device = "cpu") -> AbstractContextManager[Backend]:
    """Start a back end, which loads torch in the background.

    ``auto`` starts jails if the system supports them, and otherwise workers. A worker does not
    isolate a submission: it is for a student's own checks, and for a GPU, which a jail cannot use.
    Raises `CallError` for ``jail`` on a system or a device that does not support jails.
    """
    possible = sys.platform == "linux" and hasattr(os, "fork")
    if name == "jail" and device != "cpu":
        raise CallError(f"jails cannot use {device}: leave out --backend, or use a worker")
    if name == "jail" and not possible:
        raise CallError("jails need Linux; a worker runs everywhere (--backend worker)")
    if name == "worker" or device != "cpu" or not possible:
        return Workers(device)
    return jails.Warm()


@cache
def of_this_kernel() -> Workers:
    """The notebook kernel's workers, which start at the first call and end with the kernel."""
    workers = Workers(spare=_memory_is_free())
    atexit.register(workers.close)
    return workers


def _memory_is_free() -> bool:
    """Whether the system reports enough free memory for a spare worker."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return False
    with suppress(OSError, ValueError):
        limit, used = (
            int((CGROUP / name).read_text("ascii")) for name in ("memory.max", "memory.current")
        )
        free = min(free, limit - used)
    return free > SPARE_NEEDS


class Process:
    """A worker process, and the two threads that move frames to and from it."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            COMMAND,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                # Otherwise torch creates a folder in the temporary directory.
                "TORCHINDUCTOR_CACHE_DIR": tempfile.gettempdir(),
            },
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C shall reach only the process that starts the worker.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self.pid = self._popen.pid
        self._inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threads = (
            (_read, self._popen.stdout, self._inbox),
            (_write, self._popen.stdin, self._outbox),
        )
        for move, *arguments in threads:
            threading.Thread(target=move, args=arguments, daemon=True).start()
        self._ready = False
        self._tidying = False

    def send(self, data: bytes) -> None:
        """Queue a frame, and return at once."""
        self._outbox.put(data)

    def receive(self, seconds: float) -> bytes | None:
        """Wait for the next frame; None if the process has ended. Raises `TimeoutError`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                return self._inbox.get(timeout=min(TICK, left))
        raise TimeoutError

    def dismiss(self) -> None:
        """End the submission. The process undoes the effects, and reports whether it could."""
        self._tidying = True
        self.send(b"")

    def usable(self) -> bool:
        """Wait for the process to be ready; returns whether it can serve another submission.

        Raises `HostFault` if the process could not start.
        """
        if not self._ready:
            self._see_ready()
        if self._tidying:
            try:
                if self.receive(TIDYING) != b"":
                    return False
            except TimeoutError:
                return False
            self._tidying = False
        return self._popen.poll() is None

    def _see_ready(self) -> None:
        data = self.receive(float("inf"))
        if data is None:
            raise HostFault(
                "a worker process ended before it was ready: is the kit installed for "
                f"{sys.executable}?"
            )
        ready = msgspec.msgpack.decode(data, type=WorkerReady)
        if ready.failure:
            raise HostFault(f"a worker process could not load torch ({ready.failure})")
        if ready.fingerprint != fingerprint():
            raise HostFault(
                "workers run another copy of the kit than this process: reinstall the kit, or "
                "start grader from the environment in which it is installed"
            )
        self._ready = True

    def end(self, grace: float = 0.0) -> int:
        """Return the exit code; kill the process and its children after `grace` seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(grace)
        if self._popen.returncode is None:
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            else:
                self._popen.kill()
        self._outbox.put(None)
        return self._popen.wait()


def _read(stream: IO[bytes], inbox: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(OSError), stream:
        while (data := frames.read(stream, MAX_FRAME)) is not None:
            inbox.put(data)
    inbox.put(None)


def _write(stream: IO[bytes], outbox: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(OSError), stream:  # if the process has ended, the reading thread notices
        while (data := outbox.get()) is not None:
            frames.write(stream, data)


class Workers:
    """A worker and, with `spare`, a second process that waits with torch loaded.

    The tensors of submissions are on `device`, which may be a GPU, since workers are not forked.
    """

    def __init__(self, device: str = "cpu", *, spare: bool = True) -> None:
        self._device = device
        self._spare = spare
        self._lock = threading.Lock()  # `close` may be called while another thread runs a check
        self._closed = False
        # The first worker loads torch while this process does. The spare is started later.
        # Of the idle processes, the last is used next; if there are two, the first is the spare.
        self._idle = [Process()]
        self._all = set(self._idle)

    @property
    def layers(self) -> tuple[str, ...]:
        """Always empty: a worker has no isolation layers."""
        return ()

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the running workers."""
        with self._lock:
            return frozenset(process.pid for process in self._all)

    def open(self, limits: Limits) -> Worker:
        """A channel to a process that is ready for a submission."""
        while True:
            process = self._next()
            try:
                if process.usable():
                    break
            except BaseException:
                self.drop(process)
                raise
            self.drop(process)
        with self._lock:
            if self._spare and not self._idle and not self._closed:
                self._idle.append(self._start())
        begin = Begin(limits.test_seconds, limits.memory_mb, self._device)
        process.send(msgspec.msgpack.encode(begin))
        return Worker(self, process)

    def _next(self) -> Process:
        with self._lock:
            if self._closed:
                raise HostFault("no worker is left: they were closed")
            return self._idle.pop() if self._idle else self._start()

    def _start(self) -> Process:
        process = Process()
        self._all.add(process)
        return process

    def take_back(self, process: Process) -> None:
        """Keep a process for the next submission, after a submission that did not harm it."""
        with self._lock:
            wanted = len(self._idle) < 2 and not self._closed
            if wanted:
                self._idle.append(process)
        if wanted:
            process.dismiss()
        else:
            self.drop(process)

    def drop(self, process: Process, grace: float = 0.0) -> int:
        """End a process that is no longer needed, and return its exit code."""
        code = process.end(grace)
        with self._lock:
            self._all.discard(process)
        return code

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            self._idle.clear()
            left = list(self._all)
        for process in left:
            self.drop(process)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker(Wired):
    """The channel to a submission in a worker process."""

    def __init__(self, workers: Workers, process: Process) -> None:
        self._workers = workers
        self._process = process
        self._waited = 0.0  # wall seconds spent waiting for replies
        self._owed = False  # whether the process has not replied yet
        self._open = True

    def cpu_seconds(self) -> float:
        """An estimate of the CPU time: a fraction of the wall time spent waiting for replies."""
        return self._waited / PATIENCE

    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = IDLE_TEST) -> bytes:
        """See `Wired`; the limit of wall time also replaces the limit `idle_seconds`."""
        del idle_seconds
        self._owed = True
        started = time.monotonic()
        try:
            self._process.send(question)
            answer = self._process.receive(PATIENCE * cpu_seconds + SLACK)
        except TimeoutError:
            raise self.give_up("timeout", _ending(TIMED_OUT)) from None
        finally:
            self._waited += time.monotonic() - started
        if answer is None:
            raise self._died()
        self._owed = False
        return answer

    def give_up(self, status: Loss, text: str) -> StudentLost:
        """See `Wired`."""
        self._owed = True  # a late reply must not count for a later request
        self.close()
        return StudentLost(status, text)

    def _died(self) -> StudentLost:
        self._open = False
        code = self._workers.drop(self._process, GRACE)
        return StudentLost("timeout" if code == TIMED_OUT else "crashed", _ending(code))

    def close(self) -> None:
        """Give the process back to the `Workers`; end the process if it has not replied yet."""
        if not self._open:
            return
        self._open = False
        if self._owed:
            self._workers.drop(self._process)
        else:
            self._workers.take_back(self._process)


# Exit codes of crashes. The last two are those of Windows: access violation and stack overflow.
CRASHES = frozenset({-signal.SIGSEGV, -getattr(signal, "SIGBUS", 7), 0xC0000005, 0xC00000FD})


def _ending(code: int) -> str:
    """The meaning of an exit code, for the student."""
    if code == TIMED_OUT:
        return jails.TOO_LONG
    if code in CRASHES:
        return jails.IN_LIBRARY
    return jails.BY_ITSELF if code >= 0 else jails.by_signal(-code)
