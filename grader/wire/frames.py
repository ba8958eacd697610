"""Frames, and the commands to processes that travel in them.

A frame is an eight-byte little-endian length and that many bytes. Jails use a socket, workers a
pipe.

The warm process has a socket for commands. It receives `Fork`, `Reap` and `Split`. It sends `Ready`
once, then pids, signals and exit codes.

For each submission, a worker receives a `Begin`, the requests of `wire`, and an empty frame. It
sends a `WorkerReady` once, then a reply to each request. After the empty frame it sends the reason
why it cannot serve another submission, or an empty text.

The module also has two checks that both ends must make alike: which copy of the kit runs, and which
files other users can read. It is light on import and runs on every platform.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import stat
from pathlib import Path
from typing import IO

import msgspec

HEADER = 8  # bytes at the start of a frame that hold the length of the rest


def framed(data: bytes) -> bytes:
    """These bytes as a frame."""
    return len(data).to_bytes(HEADER, "little") + data


def send(connection: socket.socket, data: bytes) -> None:
    """Send a frame over a socket; a closed socket is no error."""
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(framed(data))


def write(stream: IO[bytes], data: bytes) -> None:
    """Write a frame to a pipe."""
    stream.write(framed(data))
    stream.flush()


def read(stream: IO[bytes], limit: int) -> bytes | None:
    """Read a frame; None at the end of the stream, or if the frame is cut off or too long."""
    header = stream.read(HEADER)
    size = int.from_bytes(header, "little")
    if len(header) < HEADER or size > limit:
        return None
    data = stream.read(size)
    return data if len(data) == size else None


# --- checks that both ends make ------------------------------------------------------------------

KIT = Path(__file__).parents[1]
SIDES = ("guest", "sandbox", "wire")
# Environment variables that restrict the vector instructions of the libraries below torch. The
# libraries read them at their first use. Both sides must have the same values.
PROCESSOR = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA")


def fingerprint() -> str:
    """A hash of the source of `SIDES`: both ends must run the same version."""
    digest = hashlib.blake2b(digest_size=8)
    for side in SIDES:
        for path in sorted((KIT / side).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def open_to_others(path: str | Path) -> bool:
    """Whether file modes let other users read a file, or reach files in a folder by name.

    Access control lists, which may grant more, are ignored.
    """
    place = Path(path).resolve()
    if not place.exists():
        return False
    wanted = stat.S_IXOTH if place.is_dir() else stat.S_IROTH
    return bool(place.stat().st_mode & wanted) and all(
        parent.stat().st_mode & stat.S_IXOTH for parent in place.parents
    )


# --- the warm process -----------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True):
    """Torch is loaded; reports the layers of jails, and which copy of this package runs."""

    missing: dict[str, str]  # layers that no jail has, with reasons
    readable: list[str]  # folders that a jail may read
    fingerprint: str


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a jail with these limits; the message carries the jail's socket as a descriptor."""

    cpu_seconds: int
    memory_mb: int


class Reap(msgspec.Struct, frozen=True, tag="reap"):
    """Wait for a child that has ended or been killed.

    The reply is the signal that ended it, or its exit code times minus one.
    """

    pid: int


LACKS_TORCH = 96  # exit code of a jail whose answer imports a part of torch that is not loaded


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Fork another warm process, which serves the socket that the message carries.

    The new process sends `Ready` there; this socket gets no reply.
    """


Command = Fork | Reap | Split

# --- a worker -------------------------------------------------------------------------------------

TIMED_OUT = 97  # exit code of a worker in which a request exceeded its CPU time


class WorkerReady(msgspec.Struct, frozen=True):
    """Torch is loaded, or failed to load; reports also which copy of this package runs."""

    fingerprint: str
    failure: str = ""  # why torch could not be loaded


class Begin(msgspec.Struct, frozen=True):
    """A submission comes next."""

    cpu_seconds: float  # limit for each request
    memory_mb: int  # limit for the submission, if the platform supports it
    device: str = "cpu"  # the device of its tensors
