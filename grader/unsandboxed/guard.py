"""What keeps a notebook's kernel alive while an answer runs in it.

An answer has its time, as it has in a terminal, and cannot end the process. Python code is stopped
between two of its steps; code in C that does not come back, such as one huge product, is not: the
student can restart the kernel. Nothing here holds code that means harm.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch

from grader.guest.server import Guest
from grader.sandbox.budget import WALL_FACTOR
from grader.sandbox.jails import TOO_LONG
from grader.sandbox.session import Loss, StudentLost

ENDED = "the code ended its own process"
TICK = 0.05  # seconds between looks, and between attempts where an answer catches what stops it

# An exception out of nowhere leaves these without what they would have put back.
LIBRARIES = tuple(
    str(path.resolve()) for path in (Path(torch.__file__).parent, Path(__file__).parents[1])
)


class GivenUp(BaseException):
    """The answer is stopped; no ``except Exception`` of its own catches this."""


@dataclass
class Guard:
    """What an answer did that ends it, though it may have caught what told it so."""

    loss: tuple[Loss, str] | None = None

    def give_up(self, status: Loss, text: str) -> NoReturn:
        """Stop the answer here."""
        self.loss = status, text
        raise GivenUp(text)

    @contextmanager
    def watching(
        self, cpu_seconds: float, files: Collection[str], names: dict[str, Any]
    ) -> Iterator[None]:
        """Meanwhile the answer, in these files, has so much time, and does not end the process.

        It may have taken what ends a process from `os`, under one of its `names`.

        Raises `StudentLost` if it tried to.
        """
        try:
            with self._surviving(names), self._limited(cpu_seconds, files):
                yield
        except GivenUp:
            pass
        if self.loss is not None:
            raise StudentLost(*self.loss) from None

    # --- time ------------------------------------------------------------------------------------

    @contextmanager
    def _limited(self, cpu_seconds: float, files: Collection[str]) -> Iterator[None]:
        """Interrupt the answer, as Ctrl-C does, once its time is over.

        Only a program's main thread can be interrupted: in another one there is no limit.
        """
        before, tracing = signal.getsignal(signal.SIGINT), sys.gettrace()
        if threading.current_thread() is not threading.main_thread() or before is None:
            yield
            return
        over, done = threading.Event(), threading.Event()

        def interrupted(number: int, frame: FrameType | None) -> None:
            if not over.is_set():  # it is the student who interrupts
                if before != signal.SIG_IGN:
                    (before if callable(before) else signal.default_int_handler)(number, frame)
            elif not done.is_set():
                self._stop(frame, files)

        clock = threading.Thread(target=_watch, args=(cpu_seconds, over, done), daemon=True)
        signal.signal(signal.SIGINT, interrupted)
        try:
            clock.start()
            yield
        finally:
            done.set()  # from here on nothing is raised any more
            clock.join()
            signal.signal(signal.SIGINT, before)
            sys.settrace(tracing)

    def _stop(self, frame: FrameType | None, files: Collection[str]) -> None:
        """Raise in the answer: here and now, or where it goes on once a library has returned."""
        answer, within_library = frame, False
        while answer is not None and answer.f_code.co_filename not in files:
            if answer.f_code is Guest.answer.__code__:
                return  # it is no answer that takes the time
            within_library = within_library or answer.f_code.co_filename.startswith(LIBRARIES)
            answer = answer.f_back
        if answer is None:
            return
        if not within_library:
            self.give_up("timeout", TOO_LONG)
        answer.f_trace = lambda *_: self.give_up("timeout", TOO_LONG)
        sys.settrace(lambda *_: None)

    # --- the process -----------------------------------------------------------------------------

    @contextmanager
    def _surviving(self, names: dict[str, Any]) -> Iterator[None]:
        """Meanwhile what would end this process ends the answer."""

        def end(*_: Any) -> NoReturn:
            self.give_up("crashed", ENDED)

        def kill(process: int, number: int) -> None:
            if process in (0, -1, os.getpid()) and number:
                end()
            kept["kill"](process, number)

        kept = {name: getattr(os, name) for name in ("_exit", "abort", "kill")}
        instead = {name: kill if name == "kill" else end for name in kept}
        taken = {
            alias: name for alias, value in names.items() for name in kept if value is kept[name]
        }
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        try:
            for name, function in instead.items():
                setattr(os, name, function)
            names.update((alias, instead[name]) for alias, name in taken.items())
            if shell is not None:  # `exit()` and `quit()` in a notebook end its kernel
                shell.ask_exit = _leave
            yield
        finally:
            for name, function in kept.items():
                setattr(os, name, function)
            names.update((alias, kept[name]) for alias, name in taken.items())
            if shell is not None:
                del shell.ask_exit


def _leave() -> NoReturn:
    """What ``exit()`` does outside of notebooks."""
    raise SystemExit


def _watch(cpu_seconds: float, over: threading.Event, done: threading.Event) -> None:
    """Interrupt the main thread again and again, once the time is over."""
    until = time.process_time() + cpu_seconds
    latest = time.monotonic() + cpu_seconds * WALL_FACTOR
    wait = min(cpu_seconds, threading.TIMEOUT_MAX)
    while not done.wait(wait):
        wait = TICK
        if time.process_time() > until or time.monotonic() > latest:
            over.set()
            _interrupt()


def _interrupt() -> None:
    main = threading.main_thread().ident
    if sys.platform != "win32" and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # wakes it, too
    else:
        interrupt_main(signal.SIGINT)
