"""A grading as it is watched: in a terminal, in a log, by a program, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from grader.batch import Done
from grader.records.rows import Row
from grader.tally import Tally, mean_of

Follow = Callable[[Done], None]
Kind = Literal["people", "json", "json lines", "quiet"]

EVERY = 10.0  # seconds between two lines in a log


def following(
    tally: Tally, kind: Kind, stdout: IO[str], stderr: Console
) -> AbstractContextManager[Follow]:  # fmt: skip
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
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )  # fmt: skip
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

    def follow(done: Done) -> None:
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

    def follow(done: Done) -> None:
        tally.add(done)
        _say(stdout, **_told(done))

    yield follow


def sum_up(tally: Tally, rows: Sequence[Row], stdout: IO[str]) -> None:
    """The objects that follow the last submission's: who is absent, and what came out for all."""
    mean, most = mean_of(rows)
    for row in rows:
        if row.grade is None:
            _say(
                stdout, student=row.student, status=row.status, total=None, max=None,
                reused=False, seconds=0.0,
            )  # fmt: skip
    _say(
        stdout, submissions=tally.done, reused=tally.reused, statuses=tally.statuses, mean=mean,
        max=most, seconds=round(tally.seconds, 3),
    )  # fmt: skip


@contextmanager
def _quiet(tally: Tally) -> Iterator[Follow]:
    yield tally.add


def _told(done: Done) -> dict[str, object]:
    grade = done.grade
    return {
        "student": grade.student, "status": grade.status,
        "total": grade.total if grade.status != "grader_error" else None, "max": grade.max,
        "reused": done.reused, "seconds": grade.seconds,
    }  # fmt: skip


def _say(stdout: IO[str], **told: object) -> None:
    # At once, also into a pipe: whoever reads may be waiting for it.
    print(json.dumps(told), file=stdout, flush=True)
