"""Definitions of this very process behind the same proxies as a jail's: the channel to them.

Nothing is isolated or limited here, so what answers is trusted, or is the student's own on their
own computer. A notebook's definitions come with `unsandboxed.notebook`.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any, Literal

from grader import wire
from grader.guest.loader import uninstall
from grader.guest.server import Guest, Prints
from grader.sandbox.budget import Left
from grader.wire.source import SourceFile

# Counting operations makes torch load its compiler, which makes a folder for itself, unless it is
# told of one that is there. It puts nothing into it.
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

    def __init__(
        self,
        guest: Guest,
        *,
        listing: Callable[[wire.Open], wire.Listing] | None = None,
        prints: Prints | None = None,
        around: Around | None = None,
    ) -> None:
        """`listing` tells what is here already; without it, the guest loads a submission's text.

        With `prints`, what is printed goes there. `around` is handed each call, one by one.
        """
        self._guest = guest
        self._listing = listing
        self._prints = prints
        self._around = around

    idle_seconds = 0.0

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """Do it here and now. Time is not limited: whoever waits can press Ctrl-C."""
        del left
        if self._listing is not None and isinstance(request, wire.Open):
            return self._listing(request)
        if self._around is not None and isinstance(request, wire.Run):
            return self._one_by_one(request.calls, self._around)
        if self._prints is None:
            return self._guest.answer(request)
        with printing_into(self._prints):
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
def printing_into(prints: Prints) -> Iterator[None]:
    """Meanwhile what is printed goes there, and is not seen."""
    with redirect_stdout(prints), redirect_stderr(prints):
        yield


@contextmanager
def unseen_prints() -> Iterator[Prints]:
    """Meanwhile nothing that is printed is seen; the beginning of it can be taken."""
    prints = Prints()
    with printing_into(prints):
        yield prints


# --- our own definitions --------------------------------------------------------------------------


def ours(definitions: Mapping[str, Any]) -> InProcess:
    """A channel to known mistakes and the like, whose results are compared with a student's."""
    return InProcess(
        _Ours(definitions.__getitem__),
        listing=lambda _: wire.Listing([_found(*named) for named in definitions.items()]),
    )


class _Ours(Guest):
    """A guest whose definitions nobody wrote to deceive: Ctrl-C is no answer of theirs."""

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        if isinstance(error, KeyboardInterrupt):
            raise error
        return super()._raised(error, uses)


@cache
def _found(name: str, definition: Any) -> wire.Found:
    """What a jail would list: without the names of arguments, tests pass them by position."""
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
