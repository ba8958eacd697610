"""Frames: to a jail over a socket, to a worker over a pipe.

A frame is an eight-byte little-endian length and as many bytes. Light on import, and only with what
every platform has.
"""

from __future__ import annotations

import contextlib
import socket
from typing import IO

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
