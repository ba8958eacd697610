"""Grading on many machines: a real scheduler, and workers that are processes of this one."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from grader.course.course import Course, load_course
from grader.grading.order import Order, deciding
from grader.intake import NO_ROSTER, Arrivals, Submission, take_in
from grader.records.faults import CallError, HostFault
from grader.records.grade import Grade
from grader.run import batch
from grader.run.batch import BookedGrade, grade_into
from tests.conftest import Grader
from tests.support import crews
from tests.support.crews import Bare

pytest.importorskip("distributed", reason="many machines need the extra [cluster]")

from distributed import LocalCluster

from grader.run import cluster
from tests.support.places import ROOT, TINY

ADDRESS = re.compile(r"Scheduler at: +(tcp://\S+)")
NAMES = tuple(f"student_{number}" for number in range(8))
SUBMISSIONS = [Submission(name, ()) for name in NAMES]


@contextmanager
def machines(workers: int, threads: int = 1, *, processes: bool = True) -> Iterator[LocalCluster]:
    """A scheduler, and workers; a process that ends is replaced."""
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=processes,
        dashboard_address="127.0.0.1:0",
    ) as machines:
        yield machines


@contextmanager
def running(*words: str) -> Iterator[Popen[str]]:
    """One of Dask's own commands, until it is killed."""
    process = Popen(
        [sys.executable, "-m", "dask", *words, "--no-dashboard"], cwd=ROOT, stderr=PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def by_hand() -> Iterator[tuple[Popen[str], str]]:
    """A scheduler as its own command starts it, with its address, and a worker."""
    with running("scheduler", "--host", "127.0.0.1", "--port", "0") as scheduler:
        assert scheduler.stderr is not None
        address = next(filter(None, map(ADDRESS.search, scheduler.stderr)))[1]
        with running("worker", address, "--nthreads", "1"):
            yield scheduler, address


@pytest.fixture(scope="module")
def pair() -> Iterator[LocalCluster]:
    with machines(2) as pair:
        yield pair


@pytest.fixture
def two(pair: LocalCluster) -> LocalCluster:
    """Two workers; those whom an earlier test killed have come back."""
    pair.wait_for_workers(2)
    return pair


@pytest.fixture
def order(tiny: Course) -> Order:
    return Order(tiny, tiny.hidden_seed(), tiny.tests_of())


@pytest.fixture
def bare(order: Order) -> Bare:
    """An order for desks that cost nothing."""
    return Bare(order.course, order.seed, order.files)


# --- what is done ------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["here", "on a cluster"])
def test_what_ends_its_worker_twice_is_set_aside_and_all_else_is_graded(
    two: LocalCluster,
    bare: Bare,
    arrivals: Arrivals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    monkeypatch.setattr(batch, "_grade", crews.kill)
    workers = {"cluster": two.scheduler_address} if where == "on a cluster" else {"jobs": 2}
    rows = {row.student: row for row in grade_into(tmp_path / "out", bare, arrivals, **workers)}
    assert sorted(rows) == sorted(NAMES)
    assert [name for name, row in rows.items() if row.status != "graded"] == [crews.KILLER]
    aside = rows[crews.KILLER].grade
    assert aside is not None
    assert (aside.status, aside.total, aside.max) == ("grader_error", 0.0, 10.0)
    assert re.match(r"2 (workers|processes) .*ended .*; to see why, .* alone", str(aside.message))


def test_a_scheduler_that_is_killed_is_told_in_one_line(bare: Bare) -> None:
    with by_hand() as (scheduler, address):
        grades = cluster.share_on_cluster(address, bare, crews.mark, SUBMISSIONS, Grade)
        next(grades)
        scheduler.kill()
        with pytest.raises(HostFault, match=r"^the Dask scheduler is gone; .* to continue$"):
            list(grades)


def test_a_fault_of_the_call_is_told_as_it_is_here(bare: Bare) -> None:
    with pytest.raises(CallError, match=r"^a recording for student_. cannot be used$"):
        list(cluster.share_on_cluster("local:1", bare, crews.refuse, SUBMISSIONS, Grade))


# --- who may grade -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["python", "torch", "kit"])
def test_a_worker_with_another_version_is_refused_by_name(
    two: LocalCluster, bare: Bare, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    here = deciding(bare.course)
    monkeypatch.setattr(cluster, "deciding", lambda _: here._replace(**{what: "9.9"}))
    told = rf"worker tcp://127.*: it has {what} {re.escape(getattr(here, what))}, but this .* 9\.9"
    with pytest.raises(CallError, match=told):
        list(cluster.share_on_cluster(two.scheduler_address, bare, crews.mark, SUBMISSIONS, Grade))


def test_a_worker_with_another_course_at_the_path_is_refused(
    two: LocalCluster, bare: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TINY)  # the workers were started elsewhere
    course = load_course(Path("/proc/self/cwd/exercises"))
    order = replace(bare, course=course, files=course.tests_of())
    with pytest.raises(CallError, match="it has another course in /proc/self/cwd/exercises"):
        list(cluster.share_on_cluster(two.scheduler_address, order, crews.mark, SUBMISSIONS, Grade))


def test_a_worker_that_does_several_things_at_once_is_refused(bare: Bare) -> None:
    with (
        machines(1, threads=2, processes=False) as several,
        pytest.raises(CallError, match=r"it has 2 threads, .*: start it with --nthreads 1"),
    ):
        list(
            cluster.share_on_cluster(
                several.scheduler_address, bare, crews.mark, SUBMISSIONS, Grade
            )
        )


def test_without_workers_one_line_says_how_to_start_them(
    cold_grader: Grader, arrivals: Arrivals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    with machines(0) as none:
        ran = cold_grader(
            "grade",
            tmp_path / "class",
            "--out",
            tmp_path / "out",
            "--course",
            TINY,
            "--cluster",
            none.scheduler_address,
        )
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no worker came" in ran.err
    assert "dask worker ADDRESS --nthreads 1" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cluster", "local:none"), "--cluster local:N takes a number of workers, got 'none'"),
        (("--cluster", "nowhere"), "no Dask scheduler answers at nowhere: missing port number"),
        (("--cluster", "tcp://nowhere"), "no Dask scheduler answers at tcp://nowhere: missing"),
        (("--cluster", "nowhere://1"), "no Dask scheduler answers at nowhere://1"),
        (("--cluster", "local:2", "--jobs", "2"), "--cluster excludes --jobs and --watch"),
    ],
)
def test_a_cluster_that_cannot_be_is_told_in_one_line(
    cold_grader: Grader, arrivals: Arrivals, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    call = ("grade", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    ran = cold_grader(*call, *options)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert told in ran.err


# --- what is left --------------------------------------------------------------------------------


def test_who_stops_early_leaves_no_desk_open(two: LocalCluster, bare: Bare, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    order = replace(bare, pipe=tmp_path / "pipe")
    # Also for writing: a pipe that nobody reads any more would stop a worker for good.
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDWR), "rb", buffering=0) as pipe:
        work = cluster.share_on_cluster(
            two.scheduler_address, order, crews.mark, SUBMISSIONS, Grade
        )
        with closing(work) as grades:
            next(grades)
        assert [pipe.readline() for _ in two.workers] == [b"closed\n", b"closed\n"]
    assert len(two.scheduler_info["workers"]) == 2


# --- what is graded ------------------------------------------------------------------------------


@pytest.fixture
def arrivals(tiny: Course, right: str, tmp_path: Path) -> Arrivals:
    """A small class."""
    center = "def center(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"
    texts = [right, center, "def center(x):\n    return x\n", "def center(x)\n"]
    (tmp_path / "class").mkdir()
    for number, name in enumerate(NAMES):
        (tmp_path / "class" / f"{name}.py").write_text(texts[number % 4], "utf-8")
    return take_in([tmp_path / "class"], tiny, NO_ROSTER)


def test_a_worker_that_is_killed_changes_nothing_in_the_gradebook(
    one_warm_process: None, two: LocalCluster, order: Order, arrivals: Arrivals, tmp_path: Path
) -> None:
    grade_into(tmp_path / "here", order, arrivals, 1)
    victims = [0]

    def kill(_: BookedGrade) -> None:
        if victims:  # the first grade has come, and both workers are at the next
            os.kill(two.workers[victims.pop()].pid, signal.SIGKILL)

    grade_into(tmp_path / "there", order, arrivals, 1, kill, cluster=two.scheduler_address)
    there, here = ((tmp_path / place / "gradebook.csv").read_bytes() for place in ("there", "here"))
    assert not victims
    assert there == here
    assert here.count(b"graded") == len(NAMES)
