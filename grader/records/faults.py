"""The exceptions that set a command's exit code. The module is quick to import."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class CallError(Exception):
    """The user called a command wrongly; the text says how to correct the call. Exit code 2."""


class HostFault(Exception):
    """The grader or its machine failed; never counts against a student. Exit code 3."""


class NoRoom(HostFault):
    """A disk is full: the machine's fault, not the grader's. Exit code 3."""


class Unreachable(HostFault):
    """Another computer gave no usable answer: not the grader's fault. Exit code 3."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """The end of a message about an unknown name: the nearest known name.

    If no name is near, the result is `otherwise`, or by default a list of the known names.
    """
    import difflib

    names = list(dict.fromkeys(known))
    if near := difflib.get_close_matches(name, names, n=1):
        return f"; did you mean {near[0]}?"
    if otherwise is None:
        return f"; there are {', '.join(names)}" if names else ""
    return otherwise


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def unwritten(place: object, error: OSError) -> CallError | NoRoom:
    """The exception to raise for a failed write: `NoRoom` for a full disk, else `CallError`."""
    text = f"{error.filename or place}: {error.strerror or error}"
    if error.errno in FULL:
        return NoRoom(f"{text}; make room, and run the same command again")
    return CallError(text)


def say(text: str) -> None:
    """Print a line on standard error; on a terminal, a long line is broken between words."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    console.print(f"grader: {text}", soft_wrap=not console.is_terminal)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn the kit's exceptions into a line on standard error and an exit code.

    An `OSError` about a file or a folder counts as a `CallError`, since the user named that file;
    only a full disk is no wrong call: `NoRoom`.
    """
    try:
        try:
            yield
        except OSError as error:
            if error.filename is None:
                raise
            raise unwritten(error.filename, error) from None
        except UnicodeEncodeError as error:  # an argument with bytes that are not UTF-8
            raise CallError(f"{error.object!a} is not valid text") from None
    except CallError as error:
        say(str(error))
        sys.exit(2)
    except (NoRoom, Unreachable) as fault:
        say(str(fault))
        sys.exit(3)
    except HostFault as fault:
        say(f"the grader itself failed: {fault}")
        sys.exit(3)
