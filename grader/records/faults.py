"""The two exceptions that decide an exit code. Light on import."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class CallError(Exception):
    """The call is wrong, not the kit: one line that says what to do; exit code 2."""


class HostFault(Exception):
    """Our own side failed: never counted against a student; exit code 3."""


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def unwritten(place: object, error: OSError) -> CallError | HostFault:
    """What to raise where something could not be written; that a disk is full is no wrong call."""
    told = f"{error.filename or place}: {error.strerror or error}"
    if error.errno in FULL:
        return HostFault(f"{told}; make room, and give the same call again")
    return CallError(told)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Our exceptions end the process: one line, and an exit code.

    So does one about a file or a folder: the call names it, or something below it, and it is
    closed, or its name is too long.
    """
    try:
        try:
            yield
        except OSError as error:
            if error.filename is None:
                raise
            raise unwritten(error.filename, error) from None
        except UnicodeEncodeError as error:  # an argument with bytes that are no text
            raise CallError(f"{error.object!a} is no text") from None
    except CallError as error:
        print(f"grader: {error}", file=sys.stderr)
        sys.exit(2)
    except HostFault as fault:
        print(f"grader: the grader itself failed: {fault}", file=sys.stderr)
        sys.exit(3)
