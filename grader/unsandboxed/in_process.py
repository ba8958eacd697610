"""The channel to definitions of this process, behind the same proxies as a jail's definitions.

It neither isolates nor limits them. They are our own, or a student's on the student's own computer.
"""

from __future__ import annotations

import inspect
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any, Literal

import numpy as np
import torch

from grader import wire
from grader.guest.loader import uninstall
from grader.guest.server import Guest, Prints
from grader.sandbox.budget import Left
from grader.wire.source import SourceFile

# Counting operations makes torch load its compiler, which creates a folder unless this names an
# existing one. The folder stays empty.
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
Around = Callable[[wire.Call, Do], wire.Outcome]  # makes a call, and sees what comes of it


class InProcess:
    """A channel to a guest of this process."""

    idle_seconds = 0.0

    def __init__(
        self,
        guest: Guest,
        *,
        listing: wire.Listing | None = None,
        around: Around | None = None,
    ) -> None:
        """`listing` describes definitions that exist already; else the guest loads a text.

        `around` makes each call, one by one.
        """
        self._guest = guest
        self._listing = listing
        self._around = around

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Do it here and now. Time is not limited: whoever waits can press Ctrl-C."""
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
        """Nothing that counts."""
        return 0.0

    def close(self) -> None:
        """Let imports find what they found before a text was loaded."""
        if self._guest.submission is not None:
            uninstall()


@contextmanager
def unseen_prints() -> Iterator[Prints]:
    """Hide prints; the returned object keeps the beginning of them."""
    prints = Prints()
    with redirect_stdout(prints), redirect_stderr(prints):
        yield prints


@contextmanager
def undisturbed() -> Iterator[None]:
    """Give back torch's settings and all random generators as they were before."""
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


# --- our own definitions --------------------------------------------------------------------------


def ours(definitions: Mapping[str, Any]) -> InProcess:
    """A channel to known mistakes and the like, whose results are compared with a student's."""
    found = wire.Listing([_found(*named) for named in definitions.items()])
    return InProcess(_Ours(definitions.__getitem__), listing=found)


class _Ours(Guest):
    """A guest with definitions of our own: Ctrl-C in them is meant for us, and passes through."""

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        if isinstance(error, KeyboardInterrupt):
            raise error
        return super()._raised(error, uses)


@cache
def _found(name: str, definition: Any) -> wire.Found:
    """The listing that a jail would give; without names of arguments, tests pass by position."""
    if not isinstance(definition, type):
        return wire.Found(name, "found", "function", arguments=_arguments(definition))
    made = _arguments(definition.__init__)  # type: ignore[misc]
    called = _arguments(getattr(definition, "forward", None))
    return wire.Found(  # without self
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


# --- a text that is loaded here -------------------------------------------------------------------


class Loaded(Guest):
    """A guest that takes nothing out of torch, and keeps the last exception with its traceback."""

    def __init__(self) -> None:
        super().__init__(take_away=False)
        self.error: BaseException | None = None

    @property
    def files(self) -> Sequence[SourceFile]:
        """The files of the text that is loaded."""
        return self.submission.files if self.submission is not None else ()

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        self.error = error
        return super()._raised(error, uses)
