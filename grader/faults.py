"""The two exceptions that decide an exit code. Light on import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class CallError(Exception):
    """The call is wrong, not the kit: one line that says what to do; exit code 2."""


class HostFault(Exception):
    """Our own side failed: never counted against a student; exit code 3."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Our exceptions end the process: one line, and an exit code."""
    try:
        yield
    except CallError as error:
        print(f"grader: {error}", file=sys.stderr)
        sys.exit(2)
    except HostFault as fault:
        print(f"grader: the grader itself failed: {fault}", file=sys.stderr)
        sys.exit(3)
