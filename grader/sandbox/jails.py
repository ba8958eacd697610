"""Jails, seen from the trusted process: start the warm process, order jails, send them requests.

This module also decides whether the layers of this machine's jails are enough for grading.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import msgspec

from grader import wire
from grader.records.faults import CallError, HostFault
from grader.sandbox.budget import IDLE_TEST, WALL_FACTOR
from grader.sandbox.session import (
    Backend,
    Killed,
    LacksTorch,
    Limits,
    Loss,
    StudentLost,
    Wired,
)
from grader.wire.frames import (
    HEADER,
    LACKS_TORCH,
    NO_MADE_CODE,
    PROCESSOR,
    Fork,
    Ready,
    Reap,
    Split,
    fingerprint,
    open_to_others,
    send,
)

WITHOUT = "GRADER_WITHOUT_LAYERS"  # the environment variable with layers to leave out, for tests

Isolation = Literal["strong", "weak"]

# The layers of a jail, with the restriction that each puts on a submission.
MEANING = {
    "process": "student code runs in its own process, forked from a process without secrets",
    "no_new_privs": "programs that student code starts gain no rights",
    "rlimits": "memory, CPU time, file size, open files and threads are limited",
    "namespaces": "no network, no shared memory with others, mounts of its own",
    "root": "there are no files but Python's: no other file's size or time can be seen",
    "landlock": "student code can read only Python and its packages, and can write nothing",
    "uid": "each submission has its own user, without rights",
    "seccomp": "no sockets, no programs, no new processes, no signals, no kernel interfaces",
    "interpreter": "no ctypes, no compiler, no frames or objects of other code, no more of torch",
}
LAYERS = tuple(MEANING)


TICK = 0.02  # seconds between checks of a silent jail's clocks
# Why a jail ended, for the student.
TOO_LONG = "it took too long: does a loop never end?"
IDLE = "it took too long: does it sleep, or wait for something that never comes?"
IN_LIBRARY = "deep recursion, or a crash inside a library"
BY_ITSELF = "the code ended its own process"
AT_ONCE = 2**16  # the most bytes to read from a socket at once


@dataclass
class _ForkRequest:
    """An order to the warm process to fork a jail, and the reply, if it has been read."""

    limits: Limits
    connection: socket.socket
    answer: bytes | None = None
    descriptors: Sequence[int] = ()

    def close(self) -> None:
        """Close the jail's socket, which ends the jail."""
        self.connection.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


class Warm:
    """Starts the warm process and has it fork jails; one jail is always forked in advance."""

    def __init__(
        self,
        control: socket.socket | None = None,
        *,
        whole: bool = False,
        without: Sequence[str] | None = None,
    ) -> None:
        """Start a warm process, or use the process whose socket is `control`: see `split`.

        With `whole`, the process also loads the parts of torch that few answers use: see
        `guest.preload`. `without` names layers to leave out, instead of the environment variable
        `WITHOUT`.
        """
        self.has_whole_torch = whole
        # Read the environment once, so that all warm processes of this object have equal layers.
        if without is None:
            without = os.environ.get(WITHOUT, "").replace(",", " ").split()
        self._without = without
        if not set(self._without) <= set(LAYERS[1:]):
            raise CallError(f"{WITHOUT} takes names of layers: {' '.join(LAYERS[1:])}")
        # A second warm process with all of torch, started when an answer needs it.
        self._with_more: Warm | None = None
        self._ahead: _ForkRequest | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: Ready | None = None
        self.forker = 0  # the number of the current warm process: 1 for the first that was started
        if control is None:
            self._start()
        else:
            self._control = control

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-m", "grader.guest.warm"),
                    *(str(theirs.fileno()), "whole" if self.has_whole_torch else "usual"),
                    *self._without,
                ],
                env={
                    "LANG": "C.UTF-8",
                    "OMP_NUM_THREADS": "1",
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "HOME": "/",  # torch needs a value, and a user of a container may have none
                    # Otherwise torch creates a folder in the temporary directory.
                    "TORCHINDUCTOR_CACHE_DIR": tempfile.gettempdir(),
                    **NO_MADE_CODE,
                    **{name: os.environ[name] for name in PROCESSOR if name in os.environ},
                },
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._ready = None
        self.forker += 1

    def split(self) -> socket.socket | None:
        """Have the warm process fork a second warm process, which another process can use.

        Returns the socket for a `Warm` in that other process, or None if the warm process has
        ended. May be called before torch is loaded.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                order = msgspec.msgpack.encode(Split())
                socket.send_fds(self._control, [order], [theirs.fileno()])
        except OSError:
            ours.close()
            return None
        return ours

    @property
    def ready(self) -> Ready:
        """The warm process's report about itself; waits until torch is loaded."""
        if self._ready is None:
            try:
                report = self._read()
            except HostFault:  # the warm process may have been killed while it loaded torch
                self.close()
                self._start()
                report = self._read()
            ready = msgspec.msgpack.decode(report, type=Ready)
            if ready.fingerprint != fingerprint():
                raise HostFault(
                    "jails run another copy of the kit than this process: reinstall the kit, or "
                    "start grader from the environment in which it is installed"
                )
            self._ready = ready
        return self._ready

    @property
    def layers(self) -> tuple[str, ...]:
        """The isolation layers that every jail has."""
        return tuple(layer for layer in LAYERS if layer not in self.ready.missing)

    def open(self, limits: Limits) -> Jail:
        """A fresh jail; starts the warm process again if it has ended."""
        if limits.whole_torch and not self.has_whole_torch:
            if self._with_more is None:
                self._with_more = type(self)(whole=True, without=self._without)
            if self._with_more.ready.missing != self.ready.missing:
                missing = ", ".join(self._with_more.ready.missing) or "none"
                raise HostFault(
                    "jails with all of torch have other layers than jails with the usual parts; "
                    f"they lack: {missing}"
                )
            return self._with_more.open(limits)
        try:
            return self._next(limits)
        except OSError:
            self.close()
            self._start()
        try:
            return self._next(limits)
        except OSError as error:
            raise HostFault(f"no jail can be made: {error}") from None

    def _next(self, limits: Limits) -> Jail:
        """A jail with these limits: the one forked in advance, or a new one.

        If the jail forked in advance is taken, orders another.
        """
        if self._ahead is None:
            self._ahead = self._request_fork(limits)
        self._await_reply(self._ahead)
        if self._ahead.limits != limits:  # some tests set their own memory limit
            return self._delivered(self._await_reply(self._request_fork(limits)))
        request, self._ahead = self._ahead, None
        jail = self._delivered(request)
        self._ahead = self._request_fork(limits)
        return jail

    def _request_fork(self, limits: Limits) -> _ForkRequest:
        if "process" in self.ready.missing:
            raise HostFault(f"no jail can be made: {self.ready.missing['process']}")
        ours, theirs = socket.socketpair()
        with theirs:
            command = Fork(int(limits.submission_seconds), limits.memory_mb)
            socket.send_fds(self._control, [msgspec.msgpack.encode(command)], [theirs.fileno()])
        return _ForkRequest(limits, ours)

    def _await_reply(self, request: _ForkRequest) -> _ForkRequest:
        """Read the reply to an order; must be called before the next command is sent."""
        if request.answer is None:
            request.answer, request.descriptors, _, _ = socket.recv_fds(self._control, 256, 1)
        return request

    def _delivered(self, request: _ForkRequest) -> Jail:
        answer = request.answer or b""
        if not request.descriptors:
            request.close()
            if answer:
                raise HostFault(f"no jail can be made: {msgspec.msgpack.decode(answer)}")
            raise BrokenPipeError("the warm process has ended")
        pid = msgspec.msgpack.decode(answer, type=int)
        return Jail(self, request.connection, pid, request.descriptors[0])

    def reap(self, pid: int, forker: int) -> int:
        """The signal that ended a jail, or the jail's exit code times minus one.

        `forker` is the number of the warm process that forked the jail.
        """
        if forker != self.forker:  # that warm process has ended, and its jails were killed then
            return signal.SIGKILL
        try:
            if self._ahead is not None:
                self._await_reply(self._ahead)
            self._control.send(msgspec.msgpack.encode(Reap(pid)))
            return msgspec.msgpack.decode(self._read(), type=int)
        except (OSError, HostFault):  # the warm process has ended, and its jails were killed then
            return signal.SIGKILL

    def _read(self) -> bytes:
        message = self._control.recv(65536)
        if not message:
            raise HostFault("the warm process has ended; `grader doctor` shows what is missing")
        return message

    def close(self) -> None:
        """End the warm process and its jails."""
        if self._with_more is not None:
            self._with_more.close()
            self._with_more = None
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        self._control.close()
        if self._process is None:  # a split process, which ends by itself
            return
        if self._ready is None:
            self._process.kill()  # the process does not read its socket until torch is loaded
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Jail(Wired):
    """The channel to a jail: a forked and locked process that runs a submission."""

    def __init__(self, warm: Warm, connection: socket.socket, pid: int, pidfd: int) -> None:
        self._warm = warm
        self._connection = connection
        self._forker = warm.forker
        self._pid = pid
        self._pidfd = pidfd
        # The kernel's id of the CPU clock of another process, see clock_getcpuclockid(3).
        self._clock = ((~pid) << 3) | 2
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._received = bytearray()
        self._used = 0.0
        # When the jail's work was last checked, and how long it had worked by then; see `_work_of`.
        self._last_check: tuple[float, float] | None = None
        self._locked = False  # whether the jail has reported that it is locked
        self._stopped = False  # whether the kit killed the jail
        self._idle_limit = IDLE_TEST
        self.ended_by: int | None = None  # see `Warm.reap`; None while the jail runs

    def cpu_seconds(self) -> float:
        """The CPU time that all threads of the jail have used so far."""
        with contextlib.suppress(OSError):
            self._used = time.clock_gettime(self._clock)
        return self._used

    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = IDLE_TEST) -> bytes:
        """See `Wired`.

        `cpu_seconds` limits the CPU time of this request. The limit of wall time is ten times as
        long. Only the wall time ends a sleeping jail on kernels that do not report idle time.
        """
        cpu_limit = self.cpu_seconds() + cpu_seconds
        wall_limit = time.monotonic() + WALL_FACTOR * cpu_seconds
        self._idle_limit = self.idle_seconds + idle_seconds
        self._last_check = None
        try:
            self._connection.settimeout(WALL_FACTOR * cpu_seconds)
            send(self._connection, question)
            if not self._locked:
                self._require_locked(self._frame(cpu_limit, wall_limit))
            return self._frame(cpu_limit, wall_limit)
        except TimeoutError:
            raise self.give_up("timeout", TOO_LONG) from None
        except OSError:
            raise self._died() from None

    def _require_locked(self, report: bytes) -> None:
        """Raise `HostFault` if the jail's first frame, a report about itself, lists failed layers.

        Student code cannot forge the report: it is sent before any student code runs.
        """
        lost = msgspec.msgpack.decode(report, type=dict[str, str])
        if lost:
            self.close()
            reasons = "; ".join(f"{layer}: {why}" for layer, why in lost.items())
            raise HostFault(f"a jail could not be locked like the jails before it ({reasons})")
        self._locked = True

    def _frame(self, cpu_limit: float, wall_limit: float) -> bytes:
        """Wait for the next frame; raises `StudentLost` if a limit is exceeded."""
        received = self._received
        while len(received) < (end := HEADER + int.from_bytes(received[:HEADER], "little")):
            if end - HEADER > wire.MAX_REPLY:
                raise self.give_up("crashed", "the reply exceeded the size limit")
            self._receive(cpu_limit, wall_limit)
        frame = bytes(received[HEADER:end])
        del received[:end]
        return frame

    def _receive(self, cpu_limit: float, wall_limit: float) -> None:
        """Wait for more bytes, for at most `TICK` seconds, and check the limits."""
        ready = self._poll.poll(TICK * 1000)
        if not ready:
            self._note_rest()
            if self.idle_seconds > self._idle_limit:
                raise self.give_up("timeout", IDLE)
        # Check also when bytes have arrived: a jail could send them one by one, without an end.
        if time.monotonic() > wall_limit or self.cpu_seconds() > cpu_limit:
            raise self.give_up("timeout", TOO_LONG)
        if ready:
            with contextlib.suppress(BlockingIOError):  # the socket only looked ready
                data = self._connection.recv(AT_ONCE, socket.MSG_DONTWAIT)
                if not data:
                    raise self._died()
                self._received += data

    def _note_rest(self) -> None:
        """Add the jail's idle time since the last check.

        A jail is idle while it neither runs nor waits for a processor.
        """
        now, before = time.monotonic(), self._last_check
        worked, rests = _work_of(self._pid)
        self._last_check = (now, worked)
        if rests and before is not None:
            self.idle_seconds += max(0.0, now - before[0] - max(0.0, worked - before[1]))

    def give_up(self, status: Loss, text: str) -> StudentLost:
        """See `Wired`."""
        self.close(grace=0)
        return StudentLost(status, text)

    def _died(self) -> StudentLost:
        # The jail's socket is closed. Usually the jail has ended, and `close` finds the reason.
        self.close()
        assert self.ended_by is not None
        if self.ended_by == signal.SIGKILL and not self._stopped:
            return Killed("crashed", "the process was ended by SIGKILL")
        if not self._locked:
            raise HostFault("a jail ended before it was locked, and before it saw the submission")
        match self.ended_by:
            case signal.SIGXCPU:
                return StudentLost("timeout", TOO_LONG)
            case signal.SIGSEGV | signal.SIGBUS:
                return StudentLost("crashed", IN_LIBRARY)
            case number if number == -LACKS_TORCH and not self._warm.has_whole_torch:
                return LacksTorch("crashed", "it imported a part of torch that was not loaded")
            case number if number <= 0:
                return StudentLost("crashed", BY_ITSELF)
            case number:
                return StudentLost("crashed", by_signal(number))

    def close(self, grace: float = 0.25) -> None:
        """Kill the jail, and have the warm process wait for it.

        A jail that is already ending gets `grace` seconds, to end with its own exit code.
        """
        if self.ended_by is not None:
            return
        self.cpu_seconds()
        self._connection.close()
        try:
            if not select.select([self._pidfd], [], [], grace)[0]:
                self._stopped = True
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            # Kill the jail's children too: a jail leads a process group. No other process can have
            # the group's id yet: the jail keeps its pid until `reap`.
            os.killpg(self._pid, signal.SIGKILL)
        except OSError:
            pass
        finally:
            os.close(self._pidfd)
            self.ended_by = self._warm.reap(self._pid, self._forker)


def by_signal(number: int) -> str:
    """A sentence that names the signal by which a process was ended."""
    known = {s.value: s.name for s in signal.Signals}
    return f"the process was ended by {known.get(number, f'signal {number}')}"


def _work_of(pid: int) -> tuple[float, bool]:
    """Seconds for which a process ran or waited for a processor, and whether it is idle now.

    A process is idle if all its threads sleep or are stopped, and none waits for a disk. If the
    kernel does not report this, the process counts as busy.
    """
    nanoseconds, rests = 0, True
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            ran, waited, _ = (task / "schedstat").read_text("ascii").split()
            nanoseconds += int(ran) + int(waited)
            state = (task / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
            rests = rests and state in "ST"
    except (OSError, ValueError, IndexError):
        return 0.0, False
    return nanoseconds / 1e9, rests and nanoseconds > 0


# --- whether the layers are enough for grading ---------------------------------------------------


def shortfall(backend: Backend, secrets: Sequence[Path]) -> str | None:
    """Why the layers are not enough for grading, or None if they are.

    Grading needs a filter of system calls, and also either Landlock or a separate user for each
    jail. A submission must not be able to read `secrets`, the files and folders that decide its
    grade.
    """
    if not backend.layers:
        return "they do not run in jails"
    ready = cast(Warm, backend).ready  # only jails have layers
    missing = ready.missing
    if "seccomp" in missing:
        return f"there is no filter of system calls ({missing['seccomp']})"
    if "landlock" not in missing:
        for secret in secrets:
            for folder in ready.readable:
                if secret.resolve().is_relative_to(folder):
                    return f"{secret} lies in {folder}, which Python needs: move it elsewhere"
        return None
    if "uid" in missing:
        return (
            f"neither Landlock ({missing['landlock']}) nor a user for each jail "
            f"({missing['uid']}) keeps submissions from reading files"
        )
    for secret in secrets:
        if open_to_others(secret):
            return (
                f"without Landlock ({missing['landlock']}) a submission can read {secret}: "
                f"chmod o-rwx {secret}"
            )
    return None
