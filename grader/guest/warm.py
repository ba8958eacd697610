"""The warm process: torch loaded once, no secret in memory, a fork for each submission.

Started as ``python -I -m grader.guest.warm FD PARTS [LAYER…]`` (PARTS of torch: ``whole``, or
``usual`` for what most answers need; layers to leave out), never forked from the grader, with none
of its environment but what chooses torch's vector instructions. It parses no submission and holds
none: it only forks. Its parent speaks to it over a SEQPACKET socket: ``fork`` (with the jail's end
of a socket attached) is answered by the pid and a pidfd; ``reap`` waits for a dead child and tells
how it ended; ``split`` makes another warm process, so torch is loaded once for several parents.
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
from grader.wire.frames import PROCESSOR, Command, Fork, Ready, Reap, Split, fingerprint, send

MAX_COMMAND = 4096
REHEARSALS = 3


def main() -> NoReturn:
    """Preload, report readiness, then fork on demand until the parent goes away."""
    control = socket.socket(fileno=int(sys.argv[1]))
    whole = sys.argv[2] == "whole"
    gc.disable()  # nothing that is loaded here is garbage
    load_torch(whole=whole)
    forget_projects()
    closed = _strip_torch()
    plan = lockdown.prepare(closed, whole=whole, without=sys.argv[3:])
    for name in {*os.environ} - {*PROCESSOR}:
        del os.environ[name]
    # A look for garbage in a jail would touch what all share, and so copy it.
    gc.freeze()
    gc.enable()
    _take_orders(control, rehearsed(plan))


def _start_anew(control: socket.socket, plan: lockdown.Plan, before: socket.socket) -> NoReturn:
    """Be another warm process. Never returns into the loop of the first."""
    try:
        before.close()
        _take_orders(control, dataclasses.replace(plan, warm_pid=os.getpid()))
    finally:
        os._exit(0)


def _take_orders(control: socket.socket, plan: lockdown.Plan) -> NoReturn:
    """Say what jails will be like, then fork on demand until the parent goes away."""
    ready = Ready(plan.missing, list(plan.readable), fingerprint())
    control.send(msgspec.msgpack.encode(ready))
    commands = msgspec.msgpack.Decoder(Command)
    others: list[int] = []  # warm processes that were split from this one
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
                with socket.socket(fileno=descriptors[0]) as another, suppress(OSError):
                    # Where it cannot be forked, whoever waits at the other end sees it closed.
                    if (pid := os.fork()) == 0:
                        _start_anew(another, plan, control)
                    others = [one for one in (*others, pid) if not os.waitpid(one, os.WNOHANG)[0]]


def _strip_torch() -> str:
    """Take out of torch what no answer needs; returns its folder."""
    import torch

    from grader.guest.trace import REPLACED, print_tensors_in_short

    interpreter.strip(REPLACED)
    print_tensors_in_short()
    return str(Path(torch.__file__).resolve().parent)


def rehearsed(plan: lockdown.Plan) -> lockdown.Plan:
    """The plan with what turned out to be missing when a child went through it."""
    # Others may kill a child: the system itself, where memory runs out.
    reports = (report for _ in range(REHEARSALS) if (report := _report(plan)) is not None)
    missing = next(reports, {"process": "it was killed in each rehearsal"})
    return dataclasses.replace(plan, missing=missing)


def _report(plan: lockdown.Plan) -> dict[str, str] | None:
    """What was missing when a child went through a plan; None of one that was killed."""
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
    """Layers that could not be put on; the first is the process itself."""
    try:
        return lockdown.lock(
            plan, cpu_seconds=limits.cpu_seconds, memory_mb=limits.memory_mb, keep=keep
        )
    except Exception as error:
        return {"process": f"{type(error).__name__}: {error}"}


def _child(jail: socket.socket, plan: lockdown.Plan, limits: Fork) -> NoReturn:
    """Lock down, say so, then serve. Never returns into the warm process's loop."""
    try:
        missing = _locked(plan, limits, jail.fileno())
        lost = {layer: why for layer, why in missing.items() if layer not in plan.missing}
        # Before any code of a student's: what is said here can be believed.
        send(jail, msgspec.msgpack.encode(lost))
        if not lost:
            from grader.guest.server import serve

            interpreter.hide()
            # It only receives: descriptors that someone sends are dropped.
            requests = jail.makefile("rb")
            serve(lambda: frames.read(requests, sys.maxsize), lambda data: send(jail, data))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
