"""The threads beside a screen: one checks, one notices when a file of answers is saved.

A third shows an answer's lines at work, when that is asked for. Of checks, the newest wish goes
first, and what came too late is not told. They know no screen: what happens is told from within the
thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader.intake.names import SKIPPED, SOURCES
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult
from grader.records.saves import Snapshot, saves, snapshot


class Checks(Protocol):
    """What the worker needs of a `grader.student.checking.Checker`."""

    def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
        """The results of these exercises."""
        ...


@dataclass(frozen=True)
class Opened:
    """Torch is loaded: checks are fast from now on."""


@dataclass(frozen=True)
class CheckedOne:
    """One exercise was checked; of a check of all, so many are still to come."""

    result: ExerciseResult
    remaining: int | None = None  # none if this was a check of one


@dataclass(frozen=True)
class Failed:
    """There is no result, for a reason that a student may read."""

    name: str
    text: str
    remaining: int | None = None


News = Opened | CheckedOne | Failed
OpenChecks = Callable[[], AbstractContextManager[Checks]]


class CheckWorker:
    """Opens a checker when it is first asked for something, and checks until it is closed."""

    def __init__(self, open_checker: OpenChecks, tell: Callable[[News], None]) -> None:
        self._open = open_checker
        self._tell_it = tell
        self._wishes = threading.Condition()
        self._first: str | None = None  # goes before all that waits
        self._waiting: deque[str] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="checks", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def check(self, name: str) -> None:
        """Check this one next, instead of the one that was to be next."""
        with self._wishes:
            self._first = name
            self._wishes.notify()

    def check_all(self, names: Sequence[str]) -> None:
        """Check these one after another, as long as nothing else is to be checked."""
        with self._wishes:
            self._waiting = deque(names)
            self._wishes.notify()

    def close(self, patience: float | None = None) -> bool:
        """End the thread, once what it is at has ended; nothing is told any more.

        Waits no longer than `patience` seconds, and tells whether the thread has ended.
        """
        with self._wishes:
            self._closed = True
            self._wishes.notify()
        if self._thread.is_alive():
            self._thread.join(patience)
        return not self._thread.is_alive()

    def _next(self) -> tuple[str, bool] | None:
        """Wait for a wish: an exercise, and whether it is one of all. None at the end."""
        with self._wishes:
            self._wishes.wait_for(lambda: self._closed or self._first or self._waiting)
            if self._closed:
                return None
            if self._first is not None:
                name, self._first = self._first, None
                return name, False
            return self._waiting.popleft(), True

    def _work(self) -> None:
        while (wish := self._next()) is not None:
            with ExitStack() as stack:
                try:
                    checker = stack.enter_context(self._open())
                except (Exception, SystemExit) as error:
                    self._give_up(wish, error)
                    continue
                self._tell(Opened())
                self._serve(checker, wish)

    def _serve(self, checker: Checks, wish: tuple[str, bool] | None) -> None:
        """Check until the end, or until the checker is broken."""
        while wish is not None:
            name, one_of_all = wish
            try:
                (result,) = checker.check([name])
            except Exception as error:
                if not _is_of_files(error):
                    self._give_up(wish, error)
                    return
                news: News = Failed(name, _why(error), self._left(one_of_all))
            else:
                news = CheckedOne(result, self._left(one_of_all))
            if one_of_all or self._first != name:  # else the file has changed since
                self._tell(news)
            wish = self._next()

    def _left(self, one_of_all: bool) -> int | None:
        return len(self._waiting) if one_of_all else None

    def _give_up(self, wish: tuple[str, bool], error: BaseException) -> None:
        """There is no checker: what waits would fail alike. The next wish opens another one."""
        name, one_of_all = wish
        with self._wishes:
            none_left = 0 if one_of_all or self._waiting else None
            self._waiting.clear()
        self._tell(Failed(name, _why(error), none_left))

    def _tell(self, news: News) -> None:
        if not self._closed:
            self._tell_it(news)


def _is_of_files(error: Exception) -> bool:
    """Whether the student's files were the reason, and the checker is as good as before."""
    if isinstance(error, CallError):
        return True
    from grader.sandbox.session import StudentLost  # loads torch, which is loaded by now

    return isinstance(error, StudentLost)


def _why(error: BaseException) -> str:
    if isinstance(error, CallError):
        return str(error)
    if isinstance(error, Exception) and _is_of_files(error):
        return f"Your file cannot be looked into: {error}"
    what = str(error) if isinstance(error, HostFault) else f"{type(error).__name__}: {error}"
    return f"The grader itself failed, which is not your fault: {what}\nSave to try again."


# --- saves ---------------------------------------------------------------------------------------


class Watching:
    """Calls `changed`, from within its thread, after files in these folders were saved."""

    def __init__(
        self, folders: Sequence[Path], changed: Callable[[], None], *, poll: bool = False
    ) -> None:
        self._folders = folders
        self._changed = changed
        self._poll = poll
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watching", daemon=True)
        self._seen: Snapshot = {}

    def start(self) -> None:
        """Begin to watch; what is saved from now on is noticed."""
        self._seen = snapshot(self._folders, SOURCES, SKIPPED)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        seen, stop = self._seen, self._stop
        for _ in saves(self._folders, SOURCES, SKIPPED, seen, stop, poll=self._poll):
            self._changed()


# --- an answer's lines at work -------------------------------------------------------------------


class LinesAtWork(Protocol):
    """What is needed of a `grader.student.showing.Showing`."""

    def read(self) -> str:
        """Wait for its end, and return what it showed."""
        ...

    def end(self) -> None:
        """End it now."""
        ...


@dataclass(frozen=True)
class Shown:
    """The lines of an answer at work, or why there is nothing to see."""

    name: str
    text: str
    failed: bool = False


class ShowWorker:
    """Has answers shown, each in a thread of its own; only the last one that was asked for."""

    def __init__(self, start: Callable[[str], LinesAtWork], tell: Callable[[Shown], None]) -> None:
        self._start = start
        self._tell = tell
        self._run: LinesAtWork | None = None

    def show(self, name: str) -> None:
        """Show this one, and not the one before, if that still runs."""
        self.close()
        self._run = run = self._start(name)
        threading.Thread(target=self._read, args=(name, run), name="shows", daemon=True).start()

    def close(self) -> None:
        """End what runs; nothing is told of it any more."""
        run, self._run = self._run, None
        if run is not None:
            run.end()

    def _read(self, name: str, run: LinesAtWork) -> None:
        try:
            news = Shown(name, run.read())
        except CallError as error:
            news = Shown(name, str(error), failed=True)
        if self._run is run:
            self._tell(news)
