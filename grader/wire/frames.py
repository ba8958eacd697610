"""Frames, and the messages to and from the warm process and the workers.

A frame is an eight-byte little-endian length, followed by that many bytes. Frames are sent to jails
over a socket, and to workers through a pipe.

The warm process has a socket for commands. It receives `Fork`, `Reap` and `Split`. It sends `Ready`
once, and then pids, signals and exit codes.

For each submission, a worker receives a `Begin`, the requests of `wire`, and an empty frame. It
sends a `WorkerReady` once, and then a reply to each request. After the empty frame it sends the
reason why it cannot serve another submission, or an empty text.

The module also has two functions that both processes must compute in the same way: `fingerprint`,
and `open_to_others`. The module is quick to import, and runs on every platform.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import stat
from pathlib import Path
from typing import IO

import msgspec

HEADER = 8  # the number of bytes at the start of a frame that contain the length of the rest


def framed(data: bytes) -> bytes:
    """Make a frame of these bytes."""
    return len(data).to_bytes(HEADER, "little") + data


def send(connection: socket.socket, data: bytes) -> None:
    """Send a frame over a socket; ignores that the other side has closed it."""
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


# --- functions that both processes must compute in the same way ----------------------------------

KIT = Path(__file__).parents[1]
SIDES = ("guest", "sandbox", "wire")
# Environment variables that restrict the vector instructions of the libraries that torch uses. The
# libraries read the variables at their first use. Both processes must have the same values.
PROCESSOR = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA")
# Lets torch's library for bags of embeddings and quantised layers use compiled code. Otherwise it
# would write machine code at the first call, and a jail cannot execute memory that it has written.
NO_MADE_CODE = {"FBGEMM_NO_ASMJIT": "1"}


def fingerprint() -> str:
    """A hash of the source code of `SIDES`, which must be equal in both processes."""
    digest = hashlib.blake2b(digest_size=8)
    for side in SIDES:
        for path in sorted((KIT / side).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def open_to_others(path: str | Path) -> bool:
    """Whether the file mode lets other users read a file, or open a folder's files by name.

    Access control lists, which may grant more rights, are ignored.
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
    """The warm process's report after loading torch: the layers of its jails, and its version."""

    missing: dict[str, str]  # the layers that its jails lack, each with the reason
    readable: list[str]  # folders that a jail may read
    fingerprint: str


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a jail with these limits; the jail's socket is sent along with the message."""

    cpu_seconds: int
    memory_mb: int


class Reap(msgspec.Struct, frozen=True, tag="reap"):
    """Wait for a child process that has ended or been killed.

    The reply is the signal that ended the child, or the child's exit code times minus one.
    """

    pid: int


# The exit code of a jail in which an answer imports a part of torch that is not loaded.
LACKS_TORCH = 96


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Fork another warm process; the socket for its commands is sent along with the message.

    The new process sends `Ready` to that socket. There is no reply on the present socket.
    """


Command = Fork | Reap | Split

# --- a worker -------------------------------------------------------------------------------------

TIMED_OUT = 97  # the exit code of a worker in which a request exceeded its CPU time


class WorkerReady(msgspec.Struct, frozen=True):
    """A worker's report: whether it could load torch, and its version."""

    fingerprint: str
    failure: str = ""  # why torch could not be loaded


class Begin(msgspec.Struct, frozen=True):
    """Begin a submission: the next requests are for it."""

    cpu_seconds: float  # limit for each request
    memory_mb: int  # limit for the submission, if the platform supports it
    device: str = "cpu"  # the device of the submission's tensors
