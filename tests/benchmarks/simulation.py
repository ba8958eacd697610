"""Simulates 100,000 submissions on many machines, from measurements on one machine.

``python -m tests.benchmarks.simulation grades/`` reads the seconds of each submission in a
gradebook, and measures how long this machine takes to commit a grade. It then simulates workers,
which each take the next submission, and a single writer, which commits one grade after another.
`grader/README.md` lists its assumptions.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grader.grades.gradebook import Gradebook, existing_gradebook, open_gradebook
from tests.benchmarks.throughput import course


@dataclass(frozen=True)
class World:
    """Measurements and assumptions, in seconds."""

    grading: Sequence[float]  # of one submission by one worker: each submission draws one of these
    commit: float  # of one grade by the writer
    dispatch: float = 0.014  # of one submission and its grade, by Dask, before it is written
    start: float = 20.0  # until a worker is ready: torch, references, tests
    message: float = 0.01  # one way; two submissions are with a worker, so it waits for none
    lost_after: float = 24 * 3600.0  # of a worker, in the mean; it comes back after `start`
    workers: int = 2  # of a machine: one for each core


@dataclass(frozen=True)
class Run:
    """How it went."""

    seconds: float
    busy: float  # share of the workers' time in which they graded what counted
    writer: float  # share of the time in which Dask's client and the writer were at work
    lost: int  # workers


def simulate(world: World, submissions: int, machines: int, seed: int = 7) -> Run:
    """Events in order of time: a worker is ready, and takes the next submission."""
    draw = random.Random(seed)
    ready = [(world.start, worker) for worker in range(machines * world.workers)]
    heapq.heapify(ready)
    dies = [draw.expovariate(1 / world.lost_after) for _ in ready]
    ended: list[float] = []
    graded, lost = 0.0, 0
    while len(ended) < submissions:
        now, worker = heapq.heappop(ready)
        seconds = draw.choice(world.grading)
        if now + seconds > dies[worker]:  # the submission is redone, by whoever is free
            lost += 1
            now = max(now, dies[worker]) + world.start
            dies[worker] = now + draw.expovariate(1 / world.lost_after)
        else:
            graded += seconds
            now += seconds
            ended.append(now)
        heapq.heappush(ready, (now, worker))
    written, each = 0.0, world.dispatch + world.commit
    for moment in sorted(ended):
        written = max(written, moment + world.message) + each
    busy = graded / (written * len(dies))
    return Run(written, busy, submissions * each / written, lost)


def seconds_of_a_commit(book: Gradebook, folder: Path) -> float:
    """Measured by writing the grades of a gradebook into a new one."""
    handed_in = {one.student: one for one in book.submissions()}
    grades = [grade for grade in book.grades() if grade.submission in handed_in]
    with open_gradebook(folder, course().name) as copy:
        moments = []
        for grade in grades:
            started = time.perf_counter()
            copy.record(grade, handed_in[grade.submission])
            moments.append(time.perf_counter() - started)
    return statistics.median(moments)


def main() -> None:
    """Measure the commit, simulate, print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.simulation", description=__doc__
    )
    parser.add_argument("gradebook", type=Path, help="a folder that grader grade --jobs 2 wrote")
    parser.add_argument("--submissions", type=int, default=100_000)
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 8, 64])
    given = parser.parse_args()
    with (
        existing_gradebook(given.gradebook, course().name) as book,
        tempfile.TemporaryDirectory() as folder,
    ):
        seconds = [grade.seconds for grade in book.grades() if grade.status == "graded"]
        world = World(seconds, seconds_of_a_commit(book, Path(folder)))
    mean = statistics.mean(seconds)
    print(
        f"{given.submissions:,} submissions like these {len(seconds)}: "
        f"{mean:.2f} s each in the mean, "
        f"{world.dispatch * 1000:.0f} ms to send and fetch, {world.commit * 1000:.1f} ms to commit"
    )
    table = Table(
        "machines",
        "workers",
        "hours",
        "times as fast",
        "workers busy",
        "writer busy",
        "workers lost",
    )
    first: float | None = None
    for count in given.machines:
        run = simulate(world, given.submissions, count)
        first = first or run.seconds
        table.add_row(
            str(count),
            str(count * world.workers),
            f"{run.seconds / 3600:.2f}",
            f"{first / run.seconds:.1f}",
            f"{run.busy:.1%}",
            f"{run.writer:.1%}",
            str(run.lost),
        )
    Console().print(table)


if __name__ == "__main__":
    main()
