"""Frames, and what travels in them besides requests: orders to processes, and their answers.

A frame is an eight-byte little-endian length and as many bytes: to a jail over a socket, to a
worker over a pipe.

To the warm process, over a socket of its own, go `Fork`, `Reap` and `Split`; from it come a
`Ready`, once, then pids, signals and exit codes. To a worker go, for each submission: a `Begin`,
the requests of `wire`, an empty frame. From it come: a `WorkerReady`, once; then a reply for each
request, and after the empty frame a text that says why no other submission should come here, or an
empty one.

Here too stands what both ends must see alike: which copy of the kit runs, and which files are open
to other users. Light on import, and only with what every platform has.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import stat
from pathlib import Path
from typing import IO

import msgspec

HEADER = 8  # bytes of a frame that tell the length of the rest


def framed(data: bytes) -> bytes:
    """These bytes as one frame."""
    return len(data).to_bytes(HEADER, "little") + data


def send(connection: socket.socket, data: bytes) -> None:
    """One frame, over a socket."""
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(framed(data))


def write(stream: IO[bytes], data: bytes) -> None:
    """One frame, over a pipe."""
    stream.write(framed(data))
    stream.flush()


def read(stream: IO[bytes], limit: int) -> bytes | None:
    """One frame; None at the end, and for what cannot be one."""
    header = stream.read(HEADER)
    size = int.from_bytes(header, "little")
    if len(header) < HEADER or size > limit:
        return None
    data = stream.read(size)
    return data if len(data) == size else None


# --- what both ends must see alike ---------------------------------------------------------------

KIT = Path(__file__).parents[1]
SIDES = ("guest", "sandbox", "wire")
# What tells the libraries below torch to use less of the processor. They read it when they are
# first used, in a jail or before; the trusted side reads the same.
PROCESSOR = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA")


def fingerprint() -> str:
    """A hash of the source on both sides of the wall: two ends must be of one version."""
    digest = hashlib.blake2b(digest_size=8)
    for side in SIDES:
        for path in sorted((KIT / side).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def open_to_others(path: str | Path) -> bool:
    """Whether modes let other users read a file, or what they know the name of in a folder.

    Lists that grant more than modes do (ACLs) are not looked at.
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
    """Torch is loaded: the layers of each jail, and which copy of this package runs."""

    missing: dict[str, str]  # layers that no jail has, and why
    readable: list[str]  # folders that a jail may read
    fingerprint: str


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a jail under these limits; its socket comes along as a descriptor."""

    cpu_seconds: int
    memory_mb: int


class Reap(msgspec.Struct, frozen=True, tag="reap"):
    """Wait for a child that has ended or been killed.

    Answered by the signal that did it, or by its exit code, below zero.
    """

    pid: int


LACKS_TORCH = 96  # exit code of a jail in which an answer asked for more of torch than was loaded


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Fork another warm process, which takes orders on the socket that comes along.

    It says there that it is ready; here nothing is answered.
    """


Command = Fork | Reap | Split

# --- a worker -------------------------------------------------------------------------------------

TIMED_OUT = 97  # exit code of a worker in which one request took more than its CPU time


class WorkerReady(msgspec.Struct, frozen=True):
    """Torch is loaded, and which copy of this package runs; or it could not be, and why."""

    fingerprint: str
    failure: str = ""


class Begin(msgspec.Struct, frozen=True):
    """A submission comes next."""

    cpu_seconds: float  # that one request may take
    memory_mb: int  # that it may use, where the platform counts it
    device: str = "cpu"  # on which its tensors are
