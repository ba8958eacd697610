"""A made-up class, graded by the whole command, as an instructor does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psutil

from tests.benchmarks.startup import COURSE, GRADER


@dataclass(frozen=True)
class Pace:
    """Between the first grade and the last: submissions a second, and CPU seconds of each."""

    rate: float
    trusted: float  # workers, mistakes that they replay, and who keeps the gradebook
    jails: float  # and what they are forked from


def write(folder: Path, students: int) -> Path:
    """Write the submissions of a varied class of this size, with mistakes, gaps and copies."""
    command = [*GRADER, "new", "class", str(folder), "--students", str(students)]
    subprocess.run([*command, "--course", COURSE], check=True, stdout=subprocess.DEVNULL)
    return folder / "submissions.zip"


def pace(handed_in: Path, out: Path, cache: Path, jobs: int) -> Pace:
    """Grade them all; `cache` keeps how known mistakes end."""
    command = [
        *(*GRADER, "grade", str(handed_in), "--course", COURSE, "--out", str(out), "--no-pages"),
        *("--jobs", str(jobs), "--json-lines"),
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    moments: list[float] = []
    spent: list[Mapping[bool, float]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as grading:
        assert grading.stdout is not None
        for line in grading.stdout:
            if json.loads(line).get("status") == "graded":
                moments.append(perf_counter())
                spent.append(_spent(psutil.Process(grading.pid)))
    assert grading.returncode == 0
    graded = len(moments) - jobs  # the first of each job was half done when the count began
    trusted, jails = (
        (spent[-1][jailed] - spent[jobs - 1][jailed]) / graded for jailed in (False, True)
    )
    return Pace(graded / (moments[-1] - moments[jobs - 1]), trusted, jails)


def _spent(process: psutil.Process) -> Mapping[bool, float]:
    """CPU seconds of a process and all below it that live or were waited for: jails', or not."""
    found = {False: 0.0, True: 0.0}
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            jailed = "grader.guest.warm" in one.cmdline()
            found[jailed] += sum(one.cpu_times()[:4])
    return found
