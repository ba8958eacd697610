"""Frames: to a jail over a socket, to a worker over a pipe; and messages about the worker itself.

Shared by both ends. Light on import, and only with what every platform has. A frame is an
eight-byte little-endian length and as many bytes. To a worker go, for each submission: a `Begin`,
the requests of `wire`, an empty frame. From it come: a `Loaded`, once; then a reply for each
request, and after the empty frame a text that says why no other submission should come here, or an
empty one.
"""

from __future__ import annotations

import contextlib
import socket
from typing import IO

import msgspec


def send(connection: socket.socket, data: bytes) -> None:
    """One frame."""
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(framed(data))


HEADER = 8  # bytes of a frame that tell the length of the rest
TIMED_OUT = 97  # exit code of a worker in which one request took more than its CPU time


class Loaded(msgspec.Struct, frozen=True):
    """Torch is loaded; or it could not be, and why."""

    package: str  # the folder of this package: both ends must be of one copy
    failure: str = ""


class Begin(msgspec.Struct, frozen=True):
    """A submission comes next."""

    cpu_seconds: float  # that one request may take
    memory_mb: int  # that it may use, where the platform counts it
    device: str = "cpu"  # on which its tensors are


def framed(data: bytes) -> bytes:
    """These bytes as one frame."""
    return len(data).to_bytes(HEADER, "little") + data


def read(stream: IO[bytes], limit: int) -> bytes | None:
    """One frame; None at the end, and for what cannot be one."""
    header = stream.read(HEADER)
    size = int.from_bytes(header, "little")
    if len(header) < HEADER or size > limit:
        return None
    data = stream.read(size)
    return data if len(data) == size else None


def write(stream: IO[bytes], data: bytes) -> None:
    """One frame."""
    stream.write(framed(data))
    stream.flush()
