"""The channel to definitions in this process, which tests call as if they were in a jail.

The channel neither isolates nor limits these definitions. They are the kit's own, or a student's on
the student's own computer.
"""

from __future__ import annotations

import inspect
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch

from grader import wire
from grader.guest.loader import uninstall
from grader.guest.server import Guest, Prints
from grader.sandbox.budget import Left
from grader.wire.source import SourceFile

# Counting operations makes torch load its compiler. The compiler creates a folder, unless this
# variable names an existing folder. It writes no file there.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())

KINDS: Mapping[Any, Literal["positional", "star", "keyword", "double_star"]] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "star",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "double_star",
}
COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Do = Callable[[], wire.Outcome]
Around = Callable[[wire.Call, Do], wire.Outcome]  # wraps a call: runs it, and returns its outcome


class InProcess:
    """A channel to a `Guest` in this process."""

    idle_seconds = 0.0

    def __init__(
        self,
        guest: Guest,
        *,
        listing: wire.Listing | None = None,
        around: Around | None = None,
    ) -> None:
        """Make a channel to `guest`.

        `listing` describes definitions that exist already; without it, the guest loads a
        submission's text. `around` wraps each call.
        """
        self._guest = guest
        self._listing = listing
        self._around = around

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Answer the request in this process, at once.

        Time is not limited: the user can press Ctrl-C.
        """
        del left
        if self._listing is not None and isinstance(request, wire.Open):
            return self._listing
        if self._around is not None and isinstance(request, wire.Run):
            return self._one_by_one(request.calls, self._around)
        return self._guest.answer(request)

    def _one_by_one(self, calls: Sequence[wire.Call], around: Around) -> wire.Reply:
        outcomes: list[wire.Outcome] = []
        for call in calls:
            outcomes.append(around(call, lambda call=call: self._do(call)))  # type: ignore[misc]
            if isinstance(outcomes[-1], wire.Raised):
                break
        return wire.Outcomes(outcomes)

    def _do(self, call: wire.Call) -> wire.Outcome:
        reply = self._guest.answer(wire.Run([call]))
        assert isinstance(reply, wire.Outcomes)
        return reply.outcomes[0]

    def cpu_seconds(self) -> float:
        """Always 0: the time in this process counts against no limit."""
        return 0.0

    def close(self) -> None:
        """Remove a loaded submission's modules, so that imports no longer find them."""
        if self._guest.submission is not None:
            uninstall()


@contextmanager
def unseen_prints() -> Iterator[Prints]:
    """Hide printed text inside a ``with``; the `Prints` object keeps the first characters."""
    prints = Prints()
    with redirect_stdout(prints), redirect_stderr(prints):
        yield prints


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run a ``with`` with torch's default settings; then restore settings and generators."""
    generators = torch.get_rng_state(), np.random.get_state(), random.getstate()
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(generators[0])
        np.random.set_state(generators[1])
        random.setstate(generators[2])


# --- the kit's own definitions --------------------------------------------------------------------


def ours(definitions: Mapping[str, Any]) -> InProcess:
    """A channel to the kit's own definitions, such as known mistakes."""
    found = wire.Listing([_found(*named) for named in definitions.items()])
    return InProcess(_Ours(definitions.__getitem__), listing=found)


class _Ours(Guest):
    """A guest with the kit's own definitions: Ctrl-C in a definition ends the command as usual."""

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        if isinstance(error, KeyboardInterrupt):
            raise error
        return super()._raised(error, uses)


@lru_cache(maxsize=1024)  # enough for the definitions in use; others are dropped
def _found(name: str, definition: Any) -> wire.Found:
    """The listing that a jail would report for a definition.

    If the names of the arguments are unknown, tests pass arguments by position.
    """
    if not isinstance(definition, type):
        return wire.Found(name, "found", "function", arguments=_arguments(definition))
    made = _arguments(definition.__init__)  # type: ignore[misc]
    called = _arguments(getattr(definition, "forward", None))
    return wire.Found(  # [1:] leaves out ``self``
        name, "found", "class", arguments=made and made[1:], forward=called and called[1:]
    )


def _arguments(function: Any) -> list[wire.Argument] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not a Python function
        return None
    return [
        wire.Argument(
            one.name, KINDS[one.kind], one.default is not one.empty or one.kind in COLLECTING
        )
        for one in parameters
    ]


# --- a submission's text, loaded into this process ------------------------------------------------


class Loaded(Guest):
    """A guest that removes no operations from torch, and keeps the last exception."""

    def __init__(self) -> None:
        super().__init__(take_away=False)
        self.error: BaseException | None = None

    @property
    def files(self) -> Sequence[SourceFile]:
        """The files of the loaded submission."""
        return self.submission.files if self.submission is not None else ()

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        self.error = error
        return super()._raised(error, uses)
