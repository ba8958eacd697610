"""The warm process: torch loaded once, no secret in memory, a fork for each submission.

Started as ``python -I -m grader.jail.warm FD`` with an empty environment, never forked from the
grader. It parses no submission and holds none: it only forks. Its parent speaks to it over a
SEQPACKET socket: ``fork`` (with the jail's end of a socket attached) is answered by the pid and a
pidfd; ``reap`` waits for a dead child and tells how it ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import resource
import signal
import site
import socket
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import msgspec

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
MAX_COMMAND = 4096


class Ready(msgspec.Struct, frozen=True):
    """Torch is loaded: the layers of each jail, and which copy of this package runs."""

    layers: list[str]
    fingerprint: str


def fingerprint() -> str:
    """A hash of this package's source: both ends of the wire must be of one version."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a jail under these limits; its socket comes along as a descriptor."""

    cpu_seconds: int
    memory_mb: int


class Reap(msgspec.Struct, frozen=True, tag="reap"):
    """Wait for a child that has ended or been killed."""

    pid: int


class Ended(msgspec.Struct, frozen=True):
    """How a child ended."""

    signal: int
    code: int
    cpu_seconds: float
    peak_mb: float


Command = Fork | Reap


def main() -> NoReturn:
    """Preload, report readiness, then fork on demand until the parent goes away."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _preload()
    _forget_projects()
    baseline = _data_bytes()
    control.send(msgspec.msgpack.encode(Ready(["process", *_try_layers()], fingerprint())))
    commands = msgspec.msgpack.Decoder(Command)
    libc = ctypes.CDLL(None, use_errno=True)
    warm_pid = os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MAX_COMMAND, 1)
        if not message:
            os._exit(0)
        match commands.decode(message):
            case Fork() as limits:
                jail = socket.socket(fileno=descriptors[0])
                pid = os.fork()
                if pid == 0:
                    _child(jail, libc, warm_pid, limits, baseline)
                jail.close()
                pidfd = os.pidfd_open(pid)
                socket.send_fds(control, [msgspec.msgpack.encode(pid)], [pidfd])
                os.close(pidfd)
            case Reap(pid):
                _, status, usage = os.wait4(pid, 0)
                ended = Ended(
                    os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                    os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
                    usage.ru_utime + usage.ru_stime,
                    usage.ru_maxrss / 1024,
                )
                control.send(msgspec.msgpack.encode(ended))


def _preload() -> None:
    """Import what students use, and start no thread: a fork would lose it."""
    import torch

    # Before any operation: one parallel region here would hang a parallel region in a child.
    torch.set_num_threads(1)
    import numpy.random  # noqa: F401

    # Optimisers, vmap and dispatch modes import this when first used, and then look for a
    # temporary directory, which a jail does not have.
    import torch._dynamo

    import grader.jail.guest  # noqa: F401

    x = torch.ones(2, 2, requires_grad=True)
    torch.softmax(x @ x, dim=-1).sum().backward()  # type: ignore[no-untyped-call]


def _forget_projects() -> None:
    """Leave only Python and installed packages importable.

    A kit installed in place has its own folder on the path, and with it every course beside it,
    solutions included.
    """
    installed = {*sysconfig.get_paths().values(), *site.getsitepackages()}
    sys.path[:] = [
        path for path in sys.path if any(f"{path}/".startswith(f"{root}/") for root in installed)
    ]
    sys.meta_path[:] = [
        finder for finder in sys.meta_path
        if finder.__module__.startswith(("_frozen_importlib", "importlib", "six"))
    ]  # fmt: skip
    sys.path_importer_cache.clear()


def _try_layers() -> list[str]:
    """The layers that `_lock` will put on; named here so that a grade can store them."""
    return ["rlimits", "no_new_privs"]


def _data_bytes() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _child(
    jail: socket.socket, libc: ctypes.CDLL, warm_pid: int, limits: Fork, baseline: int
) -> NoReturn:  # fmt: skip
    """Lock down, then serve. Never returns into the warm process's loop."""
    try:
        _lock(jail, libc, warm_pid, limits, baseline)
        from grader.jail.guest import serve

        serve(lambda: receive(jail), lambda data: send(jail, data))
    finally:
        os._exit(0)


def _lock(
    jail: socket.socket, libc: ctypes.CDLL, warm_pid: int, limits: Fork, baseline: int
) -> None:  # fmt: skip
    """Take away what a submission has no use for. Any failure ends the child."""
    keep = jail.fileno()
    os.closerange(3, keep)
    os.closerange(keep + 1, 65536)
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != warm_pid:
        os._exit(1)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        os._exit(1)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    data = baseline + limits.memory_mb * 2**20
    for limit, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_DATA, data, data),
        # The trusted side counts CPU time as well, and earlier: this is the backstop.
        (resource.RLIMIT_CPU, limits.cpu_seconds + 1, limits.cpu_seconds + 2),
    ):
        resource.setrlimit(limit, (soft, hard))


def receive(connection: socket.socket) -> bytes | None:
    """One frame, or None at the end. ``recv`` only: descriptors that someone sends are dropped."""
    header = _exactly(connection, 8)
    return None if header is None else _exactly(connection, int.from_bytes(header, "little"))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if count == 0:
            return None
        filled += count
    return bytes(data)


def send(connection: socket.socket, data: bytes) -> None:
    """One frame."""
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(len(data).to_bytes(8, "little") + data)


if __name__ == "__main__":
    main()
