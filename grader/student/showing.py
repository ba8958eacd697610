"""An answer's own lines at work, from a process of their own: it can be ended, whatever they do.

What it prints is what `grader check NAME --show` prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Event, Timer

from grader.course.course import Course
from grader.records.faults import CallError

MOST_SHOWN = 2**16  # bytes that are kept
LIMIT = 60.0  # seconds that the lines of an answer may run, to be shown
NOTHING_SHOWN = "it showed nothing in {:.0f} s: does a loop never end?"
CUT_SHORT = "… and here it was ended, after {:.0f} s: does a loop never end?\n"


class Showing:
    """One run of an exercise's public tests; it ends by itself, at the limit, or when told to.

    With a `width`, its text has the colours of a terminal that is so wide.
    """

    def __init__(
        self, course: Course, name: str, *, width: int | None = None, limit: float = LIMIT
    ) -> None:
        # Lines that ran before an endless one are not to be lost, so nothing is held back (-u).
        command = [sys.executable, "-u", "-X", "utf8", "-I", "-m", "grader", "check", name]
        environ = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
        if width is not None:
            environ |= {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm-256color"}
        self._limit = limit
        self._is_late = Event()
        self._process = subprocess.Popen(
            [*command, "--show", "--course", str(course.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
        )
        self._clock = Timer(limit, self._end_late)
        self._clock.daemon = True
        self._clock.start()

    def read(self) -> str:
        """Wait for its end, and return what it showed; raise `CallError` if that is nothing."""
        with self._process as ran:
            assert ran.stdout is not None
            shown = ran.stdout.read(MOST_SHOWN).decode(errors="replace")
            self.end()
        if not shown:
            raise CallError(NOTHING_SHOWN.format(self._limit))
        if self._is_late.is_set():
            shown += CUT_SHORT.format(self._limit)
        return shown

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End it now, whatever it is at."""
        self._clock.cancel()
        self._process.kill()

    def _end_late(self) -> None:
        self._is_late.set()
        self._process.kill()
