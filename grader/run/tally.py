"""The progress of a grading: grades so far, time left and troubles, as a bar or as lines."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import IO, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from grader.records.grade import SubmissionStatus, TestStatus
from grader.records.rows import CONFLICT, Row, counted, number
from grader.run.batch import BookedGrade, Report

OUTCOMES: tuple[SubmissionStatus, ...] = ("graded", "empty", "unreadable", "grader_error")
# Statuses of tests to report while a grading can still be stopped, and the words for each.
ENDINGS: dict[TestStatus, str] = {
    "timeout": "out of time", "memory": "out of memory", "crashed": "crashed",
}  # fmt: skip


@dataclass
class Tally:
    """Counts the grades of a grading, and measures its time with `clock`."""

    total: int
    clock: Callable[[], float] = time.monotonic
    reused: int = 0
    graded: int = 0  # computed in this run, and not reused
    statuses: Counter[SubmissionStatus] = field(default_factory=Counter)
    # For each status in `ENDINGS`, the number of submissions that have a test with this status.
    endings: Counter[TestStatus] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._began = self._first = self.clock()

    def add(self, done: BookedGrade) -> None:
        """Count one more grade."""
        self.statuses[done.grade.status] += 1
        results = done.grade.exercises
        self.endings.update({test.status for e in results for test in e.tests} & ENDINGS.keys())
        if done.reused:
            self.reused += 1
        else:
            self.graded += 1
        if self.graded <= 1:
            self._first = self.clock()  # the time before includes loading torch

    @property
    def done(self) -> int:
        """The number of submissions that have a grade."""
        return self.reused + self.graded

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self._began

    @property
    def left(self) -> float | None:
        """The estimated seconds until the end; None before the second grade."""
        return None if self._each is None else self._each * (self.total - self.done)

    @property
    def _each(self) -> float | None:
        """The mean of the seconds from one grade to the next; None before the second grade."""
        return None if self.graded < 2 else (self.clock() - self._first) / (self.graded - 1)

    # --- in words --------------------------------------------------------------------------------

    @property
    def pace(self) -> str:
        """The pace in words: ``2.3 s each, 3 min 12 s left``; empty before the second grade."""
        if self._each is None or self.left is None:
            return ""
        return f"{_paced(self._each)}, {duration(self.left)} left"

    @property
    def outcomes(self) -> str:
        """The number of submissions by status: ``280 graded, 2 without a file, 1 grader error``."""
        return ", ".join(
            _outcome(status, self.statuses[status]) for status in OUTCOMES if self.statuses[status]
        )

    @property
    def troubles(self) -> str:
        """The number of submissions with a test in `ENDINGS`: ``2 out of time, 1 crashed``."""
        return ", ".join(
            f"{self.endings[ending]} {words}"
            for ending, words in ENDINGS.items()
            if self.endings[ending]
        )

    @property
    def state(self) -> str:
        """The results so far in words: outcomes, troubles, and the number of reused grades."""
        reused = f"{self.reused} reused" if self.reused else ""
        return _joined(self.outcomes, self.troubles, reused)

    @property
    def line(self) -> str:
        """The progress in one line: the number of grades, the pace and the results so far."""
        return _joined(f"{self.done} of {self.total}", self.pace, self.state)

    def summary(self, rows: Sequence[Row]) -> str:
        """A line about the finished grading, to paste into a mail; `rows` are the gradebook's."""
        graded = f"graded, {self.graded or 'none'} of them now," if self.reused else "graded"
        pace = f" ({_paced(self.seconds / self.graded)})" if self.graded else ""
        mean, most = mean_of(rows)
        left_out = sum(row.status == CONFLICT for row in rows)
        conflicts = f"{counted(left_out, 'student')} in a conflict" if left_out else ""
        average = "" if mean is None else f"mean {mean:.1f} of {number(most)}"
        return (
            f"{counted(self.done, 'submission')} {graded} in {duration(self.seconds)}{pace}: "
            f"{_joined(self.outcomes, conflicts, average)}"
        )


def mean_of(rows: Sequence[Row]) -> tuple[float | None, float]:
    """The mean total of graded students, as in the report, and the maximum total."""
    graded = [row for row in rows if row.status == "graded" and not row.unlisted]
    totals = [row.total for row in graded if row.total is not None]
    most = max((row.max for row in rows if row.max is not None), default=0.0)
    return statistics.fmean(totals) if totals else None, most


def duration(seconds: float) -> str:
    """Seconds in words: ``6 min 12 s``."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _paced(each: float) -> str:
    """A pace in words: ``2.3 s each``, or ``4.2 a second`` if each takes less than a second."""
    if 0 < each < 1:
        return f"{1 / each:.{0 if each < 0.1 else 1}f} a second"
    return f"{each:.1f} s each" if each < 10 else f"{duration(each)} each"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _outcome(status: SubmissionStatus, count: int) -> str:
    if status == "grader_error":
        return counted(count, "grader error")
    return f"{count} without a file" if status == "empty" else f"{count} {status}"


# --- display: in a terminal, in a log, for a program, or none ------------------------------------


DisplayKind = Literal["people", "json", "json lines", "quiet"]

EVERY = 10.0  # seconds between lines in a log


def following(
    tally: Tally, kind: DisplayKind, stdout: IO[str], stderr: Console
) -> AbstractContextManager[Report]:
    """A context that yields a function, which counts a grade and shows the progress."""
    if kind == "json lines":
        return _json_lines(tally, stdout)
    if kind == "quiet":
        return nullcontext(tally.add)
    return _bar(tally, stderr) if stderr.is_terminal else _log(tally, stderr)


@contextmanager
def _bar(tally: Tally, console: Console) -> Iterator[Report]:
    """Show a progress bar above the results so far; both disappear at the end."""
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
def _log(tally: Tally, console: Console) -> Iterator[Report]:
    """Print a line about the progress every few seconds, except shortly before the end."""
    last = tally.seconds

    def follow(done: BookedGrade) -> None:
        nonlocal last
        tally.add(done)
        if tally.graded <= 1:
            last = tally.seconds
        elif tally.seconds - last >= EVERY <= (tally.left or 0):
            last = tally.seconds
            console.print(f"grading: {tally.line}", soft_wrap=True)

    yield follow


@contextmanager
def _json_lines(tally: Tally, stdout: IO[str]) -> Iterator[Report]:
    """Print a JSON object for each submission."""

    def follow(done: BookedGrade) -> None:
        tally.add(done)
        grade = done.grade
        _print_json(
            stdout,
            student=grade.student,
            status=grade.status,
            total=grade.total if grade.status != "grader_error" else None,
            max=grade.max,
            reused=done.reused,
            seconds=grade.seconds,
        )

    yield follow


def sum_up(tally: Tally, rows: Sequence[Row], stdout: IO[str]) -> None:
    """Print a JSON object for each student without a grade, and a last object with the totals."""
    mean, most = mean_of(rows)
    for row in rows:
        if row.grade is None:
            _print_json(
                stdout,
                student=row.student,
                status=row.status,
                total=None,
                max=None,
                reused=False,
                seconds=0.0,
            )
    _print_json(
        stdout,
        submissions=tally.done,
        reused=tally.reused,
        statuses=tally.statuses,
        mean=mean,
        max=most,
        seconds=round(tally.seconds, 3),
    )


def _print_json(stdout: IO[str], **fields: object) -> None:
    # Flush each line, because a program at the other end of a pipe may be waiting for the line.
    print(json.dumps(fields), file=stdout, flush=True)
