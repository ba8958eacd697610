"""How far a grading has come: how many, how long still, what went wrong; as a bar or as lines."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import IO, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from grader.records.grade import Grade, SubmissionStatus, TestStatus
from grader.records.rows import CONFLICT, Row, counted, number
from grader.run.batch import BookedGrade

OUTCOMES: tuple[SubmissionStatus, ...] = ("graded", "empty", "unreadable", "grader_error")
# Tests that end like this are worth a look while there is time to stop: how to say it of many.
ENDINGS: dict[TestStatus, str] = {
    "timeout": "out of time", "memory": "out of memory", "crashed": "crashed",
}  # fmt: skip


@dataclass
class Tally:
    """Counts grades as they come; seconds are those of `clock`."""

    total: int
    clock: Callable[[], float] = time.monotonic
    reused: int = 0
    graded: int = 0  # in this run
    statuses: Counter[SubmissionStatus] = field(default_factory=Counter)
    endings: Counter[TestStatus] = field(default_factory=Counter)  # submissions with such a test

    def __post_init__(self) -> None:
        self._began = self._first = self.clock()

    def add(self, done: BookedGrade) -> None:
        """Count one more."""
        self.statuses[done.grade.status] += 1
        self.endings.update(_endings(done.grade))
        if done.reused:
            self.reused += 1
        else:
            self.graded += 1
        if self.graded <= 1:
            self._first = self.clock()  # before it, torch was loaded

    @property
    def done(self) -> int:
        """How many have a grade."""
        return self.reused + self.graded

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.clock() - self._began

    @property
    def left(self) -> float | None:
        """Seconds until the end, at the pace so far; None until there is a pace."""
        return None if self._each is None else self._each * (self.total - self.done)

    @property
    def _each(self) -> float | None:
        """Seconds from one grade to the next."""
        return None if self.graded < 2 else (self.clock() - self._first) / (self.graded - 1)

    # --- in words --------------------------------------------------------------------------------

    @property
    def pace(self) -> str:
        """``2.3 s each, 3 min 12 s left``, or nothing yet."""
        if self._each is None or self.left is None:
            return ""
        return f"{_paced(self._each)}, {duration(self.left)} left"

    @property
    def outcomes(self) -> str:
        """``280 graded, 2 without a file, 1 grader error``."""
        return ", ".join(
            _outcome(status, self.statuses[status]) for status in OUTCOMES if self.statuses[status]
        )

    @property
    def troubles(self) -> str:
        """``2 out of time, 1 crashed``: in how many submissions a test ended like that."""
        return ", ".join(
            f"{self.endings[ending]} {told}"
            for ending, told in ENDINGS.items()
            if self.endings[ending]
        )

    @property
    def state(self) -> str:
        """What came out so far."""
        reused = f"{self.reused} reused" if self.reused else ""
        return _joined(self.outcomes, self.troubles, reused)

    @property
    def line(self) -> str:
        """All of it while it goes on, in one line."""
        return _joined(f"{self.done} of {self.total}", self.pace, self.state)

    def summary(self, rows: Sequence[Row]) -> str:
        """All of it in the end, in one line that can be pasted into a mail; `rows` came of it."""
        graded = f"graded, {self.graded or 'none'} of them now," if self.reused else "graded"
        pace = f" ({_paced(self.seconds / self.graded)})" if self.graded else ""
        mean, most = mean_of(rows)
        left_out = sum(row.status == CONFLICT for row in rows)
        told = f"; {counted(left_out, 'student')} in a conflict" if left_out else ""
        told += "" if mean is None else f"; mean {mean:.1f} of {number(most)}"
        return (
            f"{counted(self.done, 'submission')} {graded} in {duration(self.seconds)}{pace}: "
            f"{self.outcomes}{told}"
        )


def mean_of(rows: Sequence[Row]) -> tuple[float | None, float]:
    """The mean of those that were graded, as the report has it, and what one can have."""
    totals = [row.total for row in rows if row.status == "graded" and row.total is not None]
    most = max((row.grade.max for row in rows if row.grade is not None), default=0.0)
    return statistics.fmean(totals) if totals else None, most


def duration(seconds: float) -> str:
    """``6 min 12 s``."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _paced(each: float) -> str:
    """``2.3 s each``, and ``4.2 a second`` where that is the larger number."""
    if 0 < each < 1:
        return f"{1 / each:.{0 if each < 0.1 else 1}f} a second"
    return f"{each:.1f} s each" if each < 10 else f"{duration(each)} each"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _endings(grade: Grade) -> Iterator[TestStatus]:
    found = {test.status for exercise in grade.exercises for test in exercise.tests}
    return (ending for ending in ENDINGS if ending in found)


def _outcome(status: SubmissionStatus, count: int) -> str:
    if status == "grader_error":
        return counted(count, "grader error")
    return f"{count} without a file" if status == "empty" else f"{count} {status}"


# --- display -------------------------------------------------------------------------------------
#
# A grading as it is watched: in a terminal, in a log, by a program, or not at all.


Follow = Callable[[BookedGrade], None]
DisplayKind = Literal["people", "json", "json lines", "quiet"]

EVERY = 10.0  # seconds between two lines in a log


def following(
    tally: Tally, kind: DisplayKind, stdout: IO[str], stderr: Console
) -> AbstractContextManager[Follow]:
    """What is told of each grade; all of them are counted by `tally`."""
    if kind == "json lines":
        return _json_lines(tally, stdout)
    if kind == "quiet":
        return _quiet(tally)
    return _bar(tally, stderr) if stderr.is_terminal else _log(tally, stderr)


@contextmanager
def _bar(tally: Tally, console: Console) -> Iterator[Follow]:
    """A bar that is gone when the work is done, and below it what came out so far."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    task = bar.add_task("loading torch, grading the first", total=tally.total, pace="")

    def drawn() -> Group:
        bar.update(task, completed=tally.done, pace=tally.pace)
        if tally.graded:
            bar.update(task, description="grading")
        return Group(bar.get_renderable(), Text(tally.state, style="dim"))

    with Live(console=console, transient=True, get_renderable=drawn):
        yield tally.add


@contextmanager
def _log(tally: Tally, console: Console) -> Iterator[Follow]:
    """A line now and then, while there is a then to wait for."""
    told = tally.seconds

    def follow(done: BookedGrade) -> None:
        nonlocal told
        tally.add(done)
        if tally.graded <= 1:
            told = tally.seconds
        elif tally.seconds - told >= EVERY <= (tally.left or 0):
            told = tally.seconds
            console.print(f"grading: {tally.line}", soft_wrap=True)

    yield follow


@contextmanager
def _json_lines(tally: Tally, stdout: IO[str]) -> Iterator[Follow]:
    """An object for each submission."""

    def follow(done: BookedGrade) -> None:
        tally.add(done)
        _say(stdout, **_told(done))

    yield follow


def sum_up(tally: Tally, rows: Sequence[Row], stdout: IO[str]) -> None:
    """The objects that follow the last submission's: who is absent, and what came out for all."""
    mean, most = mean_of(rows)
    for row in rows:
        if row.grade is None:
            _say(
                stdout,
                student=row.student,
                status=row.status,
                total=None,
                max=None,
                reused=False,
                seconds=0.0,
            )
    _say(
        stdout,
        submissions=tally.done,
        reused=tally.reused,
        statuses=tally.statuses,
        mean=mean,
        max=most,
        seconds=round(tally.seconds, 3),
    )


@contextmanager
def _quiet(tally: Tally) -> Iterator[Follow]:
    yield tally.add


def _told(done: BookedGrade) -> dict[str, object]:
    grade = done.grade
    return {
        "student": grade.student,
        "status": grade.status,
        "total": grade.total if grade.status != "grader_error" else None,
        "max": grade.max,
        "reused": done.reused,
        "seconds": grade.seconds,
    }


def _say(stdout: IO[str], **told: object) -> None:
    # At once, also into a pipe: whoever reads may be waiting for it.
    print(json.dumps(told), file=stdout, flush=True)
