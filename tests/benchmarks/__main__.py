"""Speed, compared with alternatives: ``make bench`` prints one table, and writes it as JSON.

Both sides of a comparison run in turn in one call, so that a busy machine slows both. The table has
medians of several rounds. ``--long`` adds a batch of 5,000 submissions. ``--compare OLD.json``
exits with 1 if a ratio fell by more than a tenth since OLD was written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from grader.records.rows import counted
from grader.run.cluster import share_on_cluster
from grader.run.workers import share
from tests.benchmarks import classes, direct, lockdown, others, startup, throughput, verdict
from tests.support.places import ROOT

ROUNDS = 5
NOTABLY = 0.9  # times the ratio of before: less is called slower
WRITTEN = ROOT / "build" / "bench.json"
UNIT_TIMED_BY_JOBS = "self_attention"
STUDENTS = 60


@dataclass(frozen=True)
class Line:
    """A line of the table: two durations in seconds, or two rates, and what is asked of them."""

    what: str
    ours: float
    beside: str
    theirs: float
    asked: str = ""
    higher_is_better: bool = False

    @property
    def ratio(self) -> float:
        """How many times the other's time ours goes into; of rates, ours by theirs."""
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--long", action="store_true", help="also 5,000 submissions in one batch")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of each pair ({ROUNDS})")
    parser.add_argument("--json", type=Path, default=WRITTEN, help="where to write the table")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="say what became slower since")
    given = parser.parse_args()
    console = Console(stderr=True)
    before = ratios(given.compare) if given.compare else {}
    lines: list[Line] = []
    for line in measured(given.rounds, long=given.long):
        console.print(f"{line.what}: {line.ratio:.3g} × {line.beside}")
        lines.append(line)
    Console(width=120).print(table(lines))
    given.json.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(line), "ratio": line.ratio} for line in lines]
    given.json.write_text(json.dumps({"versions": versions(), "lines": rows}, indent=2), "utf-8")
    console.print(f"written to {given.json}")
    slower = [
        f"slower: {line.what}, {line.ratio:.3g} × {line.beside}, and {ratio:.3g} × before"
        for line in lines
        if (ratio := before.get((line.what, line.beside))) and line.ratio < NOTABLY * ratio
    ]
    for told in slower:
        console.print(told)
    raise SystemExit(1 if slower else 0)


def ratios(path: Path) -> dict[tuple[str, str], float]:
    """Of an earlier table, by what was measured and beside what; machines differ, ratios less."""
    lines = json.loads(path.read_text("utf-8"))["lines"]
    return {(line["what"], line["beside"]): line["ratio"] for line in lines}


def measured(rounds: int, *, long: bool) -> Iterator[Line]:
    """The lines, as they are known."""
    yield from starting(rounds)
    yield from one_exercise(rounds)
    yield from whole_course(rounds)
    yield two_jobs()
    yield on_a_cluster()
    yield from a_class()
    bare, locked = lockdown.measure()
    yield Line("a jail, one after another", locked, "the same without layers", bare)
    save, cold = verdict.medians()
    yield Line("a student's save to the verdict", save, "cold pytest", cold)
    if long:
        yield from many()


def starting(rounds: int) -> Iterator[Line]:
    """From a cold start, beside one import of torch; and what workers hold."""
    seconds = {what: median(some) for what, some in startup.measured(rounds).items()}
    torch = seconds["torch"]
    yield Line("a cold check of one exercise", seconds["check"], "import torch", torch, "≥ 0.67")
    for jobs in (1, 2, 4):
        what = f"until the first grade, {counted(jobs, 'job')}"
        yield Line(what, seconds[f"first {jobs}"], "import torch", torch, "≥ 0.5")
        yield Line("… until the last of eight", seconds[f"last {jobs}"], "import torch", torch)
    for jobs in (1, 2, 4):
        what = f"memory of a worker of its own, {counted(jobs, 'job')}, MB"
        # A single job loads torch itself: nobody else does.
        asked = "≥ 1" if jobs > 1 else ""
        yield Line(what, startup.megabytes(jobs), "allowed", 200, asked)


def one_exercise(rounds: int) -> Iterator[Line]:
    """A submission of one exercise, beside a cold pytest and otter."""
    ours: list[float] = []
    colds: list[float] = []
    otters: list[float] = []
    answer = (throughput.ADA / f"{others.UNIT}.py").read_text("utf-8")
    submissions = throughput.answers([others.UNIT], 20 * rounds + 1)
    with (
        throughput.order(others.EXERCISE).desk() as desk,
        throughput.gradebook() as book,
        tempfile.TemporaryDirectory() as folder,
    ):
        throughput.seconds_each(desk, islice(submissions, 1), book)  # the first round warms up
        for _ in range(rounds):
            ours += throughput.seconds_each(desk, islice(submissions, 20), book)
            colds.append(others.seconds_of_pytest(Path(folder), answer))
            otter = others.seconds_of_otter(Path(folder), answer)
            otters += [otter] if otter is not None else []
    checks = sum(len(test.cases) for test in desk.tests[others.EXERCISE])
    what = f"one exercise, {checks} checks"
    yield Line(what, median(ours), "cold pytest, 8 checks", median(colds), "≥ 50")
    if otters:
        yield Line(what, median(ours), "otter run, 8 checks", median(otters), "≥ 150")


def whole_course(rounds: int) -> Iterator[Line]:
    """A right answer to everything, and its calls and comparisons alone."""
    course = throughput.course()
    submissions = throughput.answers([unit.name for unit in course.units], rounds + 2)
    graded, calls = [], []
    with throughput.order().desk() as desk, throughput.gradebook() as book:
        throughput.seconds_each(desk, islice(submissions, 1), book)
        (plain,) = islice(submissions, 1)
        directly = direct.script_of(desk, plain)
        for _ in range(rounds):
            graded += throughput.seconds_each(desk, islice(submissions, 1), book)
            calls.append(direct.seconds_of(directly))
    what = f"the whole course, {len(desk.tests)} exercises"
    beside = "its calls and comparisons alone, in one process"
    yield Line(what, median(graded), beside, median(calls))


def two_jobs() -> Line:
    """Submissions a second by one job and by two."""
    what = throughput.order(UNIT_TIMED_BY_JOBS)
    submissions = list(throughput.answers([UNIT_TIMED_BY_JOBS], 41))
    one, two = (
        throughput.rate(partial(share, jobs=jobs), jobs, what, submissions) for jobs in (1, 2)
    )
    return Line("two jobs, submissions a second", two, "one job", one, "≥ 1.7", True)


def on_a_cluster() -> Line:
    """Submissions of one exercise a second by one worker of Dask's, and by one job without it."""
    what = throughput.order(others.EXERCISE)
    submissions = list(throughput.answers([others.UNIT], 201))
    ours = throughput.rate(partial(share_on_cluster, "local:1"), 1, what, submissions)
    plain = throughput.rate(partial(share, jobs=1), 1, what, submissions)
    return Line("one worker of Dask's, submissions a second", ours, "one job", plain, "", True)


def a_class() -> Iterator[Line]:
    """Sixty students, unlike and with mistakes: how much of two cores is at work for them."""
    cores = min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        handed_in = classes.write(Path(folder, "class"), STUDENTS)
        pace = classes.pace(handed_in, Path(folder, "out"), Path(folder, "cache"), cores)
    what = f"a class of {STUDENTS}, {counted(cores, 'job')}, submissions a second"
    allowed = cores / (pace.trusted + pace.jails)
    yield Line(what, pace.rate, "cores by CPU seconds of each", allowed, "≥ 0.9", True)
    yield Line("… CPU seconds of each: jails", pace.jails, "workers", pace.trusted)


def many() -> Iterator[Line]:
    """5,000 submissions in one batch: as fast in the end, and holding no more; the median of three.

    That is the one whose last tenth, beside its first, was neither the fastest nor the slowest.
    """
    count, jobs, runs = 5000, 2, 3
    what = throughput.order(others.EXERCISE)
    submissions = list(throughput.answers([others.UNIT], count))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{runs} times {count:,} submissions", total=runs * count)
        ran = [
            throughput.endure(what, submissions, jobs, lambda _: progress.advance(task))
            for _ in range(runs)
        ]
    long = sorted(ran, key=lambda one: one.last / one.first)[runs // 2]
    yield Line(
        f"{count:,} in one batch: the last tenth", long.last, "the first", long.first, "≥ 0.9"
    )
    yield Line(
        "… memory at the end, MB",
        long.late.megabytes,
        "after the first tenth",
        long.early.megabytes,
        "≥ 0.95",
    )
    yield Line(
        "… descriptors",
        long.late.descriptors,
        "after the first tenth",
        long.early.descriptors,
        "≥ 1",
    )
    yield Line(
        "… processes", long.late.processes, "after the first tenth", long.early.processes, "≥ 1"
    )


def versions() -> dict[str, str]:
    """Of what was measured, and of the machine."""
    found = {"python": platform.python_version(), "cores": str(os.cpu_count())}
    for name in ("attention-grader", "torch", "pytest", "otter-grader"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def table(lines: list[Line]) -> Table:
    """For people."""
    drawn = Table(title=", ".join(f"{name} {number}" for name, number in versions().items()))
    for head in ("", "ours", "beside", "theirs", "ratio", "asked"):
        drawn.add_column(head, justify="left" if head in ("", "beside") else "right")
    for line in lines:
        drawn.add_row(
            line.what,
            f"{line.ours:.3g}",
            line.beside,
            f"{line.theirs:.3g}",
            f"{line.ratio:.3g}",
            line.asked,
        )
    return drawn


if __name__ == "__main__":
    main()
