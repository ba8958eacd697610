"""The warm process: loads torch once, has no secret, and forks a jail for each submission.

It is started as ``python -I -m grader.guest.warm FD PARTS [LAYER…]``. FD is the socket for
commands. PARTS are the parts of torch to load: ``usual``, enough for most answers, or ``whole``.
The isolation layers LAYER… are left out. The process is not forked from the grader, and keeps only
the environment variables that choose torch's vector instructions. It never receives a submission.

Its parent sends commands over a SEQPACKET socket. ``fork`` is sent with the jail's end of another
socket; the reply is a pid and a pidfd. ``reap`` waits for a child that has ended, and reports the
signal or exit code. ``split`` forks a second warm process for another parent, so that torch need
not be loaded again.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from grader.guest import interpreter, lockdown
from grader.guest.preload import forget_projects, load_torch
from grader.wire import frames
from grader.wire.frames import (
    NO_MADE_CODE,
    PROCESSOR,
    Command,
    Fork,
    Ready,
    Reap,
    Split,
    fingerprint,
    send,
)

MAX_COMMAND = 4096
REHEARSALS = 3


def main() -> NoReturn:
    """Load torch, then execute commands until the parent closes the socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    whole = sys.argv[2] == "whole"
    gc.disable()  # saves time: loading torch makes little garbage
    load_torch(whole=whole)
    forget_projects()
    closed = _strip_torch()
    plan = lockdown.prepare(closed, whole=whole, without=sys.argv[3:])
    for name in {*os.environ} - {*PROCESSOR, *NO_MADE_CODE}:
        del os.environ[name]
    # Otherwise, a garbage collection in a jail would copy the pages that all forks share.
    gc.freeze()
    gc.enable()
    _serve(control, rehearsed(plan))


def _continue_as_split(
    control: socket.socket, plan: lockdown.Plan, parents: socket.socket
) -> NoReturn:
    """Serve as a second warm process; never return into the loop of the first."""
    try:
        parents.close()
        _serve(control, dataclasses.replace(plan, warm_pid=os.getpid()))
    finally:
        os._exit(0)


def _serve(control: socket.socket, plan: lockdown.Plan) -> NoReturn:
    """Send `Ready`, then execute commands until the parent closes the socket."""
    ready = Ready(plan.missing, list(plan.readable), fingerprint())
    control.send(msgspec.msgpack.encode(ready))
    commands = msgspec.msgpack.Decoder(Command)
    splits: list[int] = []  # pids of warm processes that were split from this process
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MAX_COMMAND, 1)
        if not message:
            os._exit(0)
        match commands.decode(message):
            case Fork() as limits:
                jail = socket.socket(fileno=descriptors[0])
                try:
                    pid = os.fork()
                except OSError as error:
                    control.send(msgspec.msgpack.encode(f"fork: {error.strerror}"))
                    jail.close()
                    continue
                if pid == 0:
                    _child(jail, plan, limits)
                jail.close()
                pidfd = os.pidfd_open(pid)
                socket.send_fds(control, [msgspec.msgpack.encode(pid)], [pidfd])
                os.close(pidfd)
            case Reap(pid):
                _, status = os.waitpid(pid, 0)
                control.send(msgspec.msgpack.encode(-os.waitstatus_to_exitcode(status)))
            case Split():
                # If the fork fails, the other parent notices that its socket is closed.
                with socket.socket(fileno=descriptors[0]) as another, suppress(OSError):
                    if (pid := os.fork()) == 0:
                        _continue_as_split(another, plan, control)
                    splits = [p for p in (*splits, pid) if not os.waitpid(p, os.WNOHANG)[0]]


def _strip_torch() -> str:
    """Remove parts of torch that no answer needs; returns torch's folder."""
    import torch

    from grader.guest.trace import REPLACED, print_tensors_in_short

    interpreter.strip(REPLACED)
    print_tensors_in_short()
    return str(Path(torch.__file__).resolve().parent)


def rehearsed(plan: lockdown.Plan) -> lockdown.Plan:
    """The plan, completed with the layers that were missing when a child process tried it."""
    # Try several times, because the system may kill a child if memory runs out.
    reports = (report for _ in range(REHEARSALS) if (report := _report(plan)) is not None)
    missing = next(reports, {"process": "it was killed in each rehearsal"})
    return dataclasses.replace(plan, missing=missing)


def _report(plan: lockdown.Plan) -> dict[str, str] | None:
    """Try a plan in a child; returns the missing layers, or None if the child was killed."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            missing = _locked(plan, Fork(cpu_seconds=10, memory_mb=64), keep=theirs)
            os.write(theirs, msgspec.msgpack.encode(missing))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:  # noqa: PTH123
        report = pipe.read()
    os.waitpid(pid, 0)
    return msgspec.msgpack.decode(report, type=dict[str, str]) if report else None


def _locked(plan: lockdown.Plan, limits: Fork, keep: int) -> dict[str, str]:
    """Lock this process down; returns the missing layers, with the key ``process`` for an error."""
    try:
        return lockdown.lock(
            plan, cpu_seconds=limits.cpu_seconds, memory_mb=limits.memory_mb, keep=keep
        )
    except Exception as error:
        return {"process": f"{type(error).__name__}: {error}"}


def _child(jail: socket.socket, plan: lockdown.Plan, limits: Fork) -> NoReturn:
    """Run a jail: lock this process down, report the result, and serve a submission.

    Never returns into the warm process's loop.
    """
    try:
        missing = _locked(plan, limits, jail.fileno())
        lost = {layer: why for layer, why in missing.items() if layer not in plan.missing}
        # The trusted process can rely on this report, since no student code has run yet.
        send(jail, msgspec.msgpack.encode(lost))
        if not lost:
            from grader.guest.server import serve

            interpreter.hide()
            # A file object ignores file descriptors that are sent along with the data.
            requests = jail.makefile("rb")
            serve(lambda: frames.read(requests, sys.maxsize), lambda data: send(jail, data))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
