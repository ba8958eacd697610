"""Seconds until the first grade and the first verdict, compared with one import of torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.intake import Submission
from grader.run.workers import share
from tests.benchmarks import throughput
from tests.benchmarks.others import EXERCISE, UNIT
from tests.support.places import ROOT

CLASS = 8  # submissions
COURSE = str(ROOT / "exercises")
GRADER = (sys.executable, "-m", "grader")


def of_torch() -> float:
    """Seconds of an import of torch in a process of its own, and of nothing else."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "import torch"], check=True)
    return time.perf_counter() - started


def of_check(folder: Path) -> float:
    """Seconds of a cold ``grader check`` of a single right answer."""
    answers = _answers(folder, 1)
    started = time.perf_counter()
    command = [*GRADER, "check", EXERCISE, "--in", str(answers), "--course", COURSE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def of_grade(folder: Path, jobs: int) -> tuple[float, float]:
    """Seconds until the first grade of a class of eight, and until the last."""
    answers = _answers(folder, CLASS)
    command = [
        *(*GRADER, "grade", str(answers), "--only", EXERCISE, "--jobs", str(jobs), "--no-pages"),
        *("--course", COURSE, "--out", str(folder / "out"), "--json-lines"),
    ]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as grading:
        assert grading.stdout is not None
        first = json.loads(grading.stdout.readline())
        until_first = time.perf_counter() - started
        assert first["status"] == "graded", first
        grading.stdout.read()
    assert grading.returncode == 0
    return until_first, time.perf_counter() - started


def _answers(folder: Path, count: int) -> Path:
    """A fresh folder of right answers to one unit."""
    for place in (folder / "answers", folder / "out"):
        shutil.rmtree(place, ignore_errors=True)
    for number in range(count):
        (to := folder / "answers" / (f"student_{number}" if count > 1 else "")).mkdir(parents=True)
        shutil.copy(throughput.ADA / f"{UNIT}.py", to)
    return folder / "answers"


# --- memory --------------------------------------------------------------------------------------


def megabytes(jobs: int) -> float:
    """The most memory of its own that a worker holds after twenty submissions."""
    submissions = list(throughput.answers([UNIT], 20 * jobs))
    held = [*share(throughput.order(EXERCISE), _grade_and_weigh, submissions, jobs)]
    return max(held)


def _grade_and_weigh(desk: Desk, submission: Submission) -> float:
    grade_submission(desk, submission)
    return float(psutil.Process().memory_full_info().uss / 2**20)


def measured(rounds: int) -> dict[str, list[float]]:
    """All of it, in turn, so that a busy machine slows all sides."""
    found: dict[str, list[float]] = {"torch": [], "check": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            found["torch"].append(of_torch())
            found["check"].append(of_check(Path(folder)))
            for jobs in (1, 2, 4):
                first, last = of_grade(Path(folder), jobs)
                found.setdefault(f"first {jobs}", []).append(first)
                found.setdefault(f"last {jobs}", []).append(last)
    return found
