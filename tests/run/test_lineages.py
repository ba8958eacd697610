"""Torch is loaded twice in a grading, whatever the number of jobs: for workers, and for jails."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from grader.course.course import Course
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.run.workers import share
from grader.sandbox.jails import Jail
from grader.sandbox.session import Limits
from grader.wire.frames import NO_MADE_CODE, PROCESSOR

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")


def below(ancestor: int, pid: int) -> int:
    """The child of a process from which another one comes."""
    parents = {one.pid: one for one in psutil.Process(pid).parents()}
    line = [pid, *parents]
    return line[line.index(ancestor) - 1]


HARMLESS = {
    "HOME", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH",
    "TORCHINDUCTOR_CACHE_DIR",
    *("LINES", "COLUMNS"),  # what readline sets behind Python's back
}  # fmt: skip


class Seen(NamedTuple):
    worker: int
    lineage: int  # the process that it was forked from, and the first of those
    of_jails: int  # the same of a jail
    environment: dict[str, str]


def look(grader: int, desk: Desk, _: int) -> Seen:
    """Where this worker comes from, and where its jails do."""
    jail = desk.backend.open(Limits())
    assert isinstance(jail, Jail)
    try:
        pid = os.getpid()
        return Seen(pid, below(grader, pid), below(grader, jail._pid), {**os.environ})
    finally:
        jail.close()


@pytest.fixture(name="order")
def order_of_tiny(tiny: Course) -> Order:
    return Order(tiny, "a seed", tiny.tests_of(), isolation="weak")


def test_four_jobs_load_torch_twice(order: Order) -> None:
    seen = [*share(order, partial(look, os.getpid()), range(12), jobs=4)]
    workers, jails = {one.lineage for one in seen}, {one.of_jails for one in seen}
    assert (len(workers), len(jails)) == (1, 1)
    assert workers != jails  # student code knows the address of nothing on the trusted side
    assert workers.isdisjoint(one.worker for one in seen)


def test_who_is_ready_when_all_is_done_goes_in_silence(
    order: Order, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len([*share(order, partial(look, os.getpid()), [1], jobs=1)]) == 1
    work = share(order, partial(look, os.getpid()), range(4), jobs=4)
    next(work)
    work.close()
    assert capfd.readouterr().err == ""


def test_what_workers_are_forked_from_knows_nothing_and_they_do(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_INSTRUCTOR", "a secret")
    for seen in share(order, partial(_look_at_mother, os.getpid()), range(2), jobs=2):
        assert seen.environment["OF_THE_INSTRUCTOR"] == "a secret"
    assert "OF_THE_INSTRUCTOR" in os.environ


def _look_at_mother(grader: int, desk: Desk, item: int) -> Seen:
    seen = look(grader, desk, item)
    # Into the one of jails nobody but root may look.
    for process in (seen.lineage, seen.of_jails)[: 2 if os.geteuid() == 0 else 1]:
        names = {*psutil.Process(process).environ()}
        assert not (more := names - {*PROCESSOR, *NO_MADE_CODE, *HARMLESS}), more
    return seen


def test_a_temporary_folder_with_too_long_a_name_is_one_line(tiny: Course, tmp_path: Path) -> None:
    place = tmp_path / ("x" * 100)
    place.mkdir()
    for name in ("ada", "bob"):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "basics.py").write_text("def center(x):\n    return x\n")
    paths = (tmp_path / "class", "--out", tmp_path / "grades", "--course", tiny.folder)
    ran = subprocess.run(
        [*(sys.executable, "-I", "-m", "grader", "grade"), *map(str, paths), *("--jobs", "2")],
        env={**os.environ, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "set TMPDIR to a folder with a shorter name" in ran.stderr
    assert "Traceback" not in ran.stderr
