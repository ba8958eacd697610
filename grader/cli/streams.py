"""The standard streams of a command: decides what happens if one is closed, full or not read.

Python, Click and Rich each have an answer of their own to a failed write: a traceback, or the exit
code 1, which has another meaning here. Therefore a failed write raises `OutputLost`, which none of
them catches.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, Literal, TextIO

from grader.records.faults import CallError, exit_codes, unwritten

UNREAD = 141  # the exit code if nobody reads the output any more: as a shell reports SIGPIPE
CLOSED = "standard output is closed: redirect it to a file, or to /dev/null"


class OutputLost(BaseException):
    """A write to standard output or to standard error failed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error

    @property
    def unread(self) -> bool:
        """Whether the reader has closed the pipe, as ``head`` does."""
        # Windows reports a closed pipe as EINVAL.
        closed = {errno.EPIPE} | ({errno.EINVAL} if os.name == "nt" else set())
        return self.error.errno in closed


class _Stream(FileIO):
    """A stream whose first failed write raises `OutputLost`; later output is discarded."""

    def __init__(self, descriptor: int, *, errors: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._errors = errors  # whether this is standard error
        self._lost = False

    def write(self, data: Any, /) -> int:
        """Write as `FileIO` does; a full disk is no reason to stop for messages alone."""
        if not self._lost:
            try:
                return super().write(data)
            except OSError as error:
                self._lost = True
                lost = OutputLost(error)
                if lost.unread or not self._errors:
                    raise lost from None
        return memoryview(data).nbytes


@contextmanager
def checked_streams() -> Iterator[None]:
    """Run a command; if its output is lost, exit with a line, or with `UNREAD` and no line.

    A closed standard input is empty. Streams that are terminals, or objects of a test, stay as they
    are.
    """
    _open_closed()
    sys.stdout = _checked(sys.stdout, errors=False)
    sys.stderr = _checked(sys.stderr, errors=True)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except OutputLost as lost:
        if lost.unread:
            sys.exit(UNREAD)
        with exit_codes():
            if lost.error.errno == errno.EBADF:
                raise CallError(CLOSED) from None
            raise unwritten("standard output", lost.error) from None


@contextmanager
def until_unread() -> Iterator[None]:
    """End a command that runs until it is stopped, if nobody reads its output any more."""
    try:
        yield
        sys.stdout.flush()
    except OutputLost as lost:
        if not lost.unread:
            raise


def _open_closed() -> None:
    """Open the null device in place of closed streams.

    Otherwise the gradebook could get the number of a closed stream, and output would go there.
    Standard output's replacement cannot be written to: a command that prints nothing succeeds.
    """
    if sys.stdin is None:
        sys.stdin = _null(os.O_RDONLY, "r")
    if sys.stdout is None:
        sys.stdout = _null(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _null(os.O_WRONLY, "w")


def _null(flags: int, mode: Literal["r", "w"]) -> TextIO:
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)


def _checked(stream: TextIO, *, errors: bool) -> TextIO:
    raw = getattr(getattr(stream, "buffer", None), "raw", getattr(stream, "buffer", None))
    if not isinstance(stream, TextIOWrapper) or type(raw) is not FileIO or stream.isatty():
        return stream
    checked = _Stream(stream.fileno(), errors=errors)
    return TextIOWrapper(
        checked if stream.write_through else BufferedWriter(checked),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
