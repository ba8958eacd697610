"""Half of a class is hostile: the other half is graded as if it were alone, and nothing is left."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import find_submissions, read_submission
from grader.records.grade import Grade
from tests.support.attacks_table import Attack, all_attacks
from tests.support.places import ROOT, SAMPLES
from tests.support.seats import process_of, warm_of

UNITS = ("softmax", "causal_attention")
EACH_HALF = 50
PR_SET_CHILD_SUBREAPER = 36
FIRST_UID_OF_A_JAIL = 2_100_000_000
WRITABLE = ("/tmp", "/dev/shm", "/var/tmp", "/run")


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course with low limits: attacks wait for them."""
    root = tmp_path_factory.mktemp("course")
    for part in ("exercises", "solutions"):
        shutil.copytree(ROOT / part, root / part)
    toml = root / "exercises" / "course.toml"
    text = toml.read_text("utf-8").replace("test_seconds = 3.0", "test_seconds = 0.6")
    toml.write_text(text.replace("memory_mb = 1024", "memory_mb = 512"), "utf-8")
    course = load_course(root / "exercises")
    assert course.file.limits.test_seconds == 0.6
    return course


@pytest.fixture(scope="module")
def alone(impatient: Course) -> Iterator[Desk]:
    files = impatient.tests_of()
    seed = impatient.hidden_seed()
    order = Order(impatient, seed, files, only=UNITS, isolation="weak")
    with order.desk() as desk:
        yield desk


@pytest.fixture(scope="module", autouse=True)
def orphans_become_children_of_this_process() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command(folder: Path, out: Path, course: Course) -> list[str]:
    """Grade a folder with two processes."""
    return [
        *(sys.executable, "-m", "grader", "grade", str(folder), "--out", str(out)),
        *("--course", str(course.folder), "--jobs", "2"),
        *(word for unit in UNITS for word in ("--only", unit)),
    ]


def quick(attacks: list[Attack]) -> list[Attack]:
    """Attacks of every class, few of those that take seconds to give up."""
    slow = [attack for attack in attacks if attack.klass in ("endless", "exhaustion")]
    others = [attack for attack in attacks if attack.klass not in ("endless", "exhaustion")]
    return [*slow[::3], *others]


def hand_in(source: Path, folder: Path, name: str) -> None:
    if source.is_dir():
        shutil.copytree(source, folder / name)
    else:
        shutil.copy(source, folder / f"{name}{source.suffix}")


def apart_from_names_and_time(grade: Grade) -> Grade:
    """The grade without the names of the student and of the student's file."""
    change = msgspec.structs.replace
    exercises = tuple(
        change(one, tests=tuple(change(test, position=None) for test in one.tests))
        for one in grade.exercises
    )
    return change(grade, student="", submission="", seconds=0, notes=(), exercises=exercises)


def children() -> set[int]:
    """Processes below this one, and orphans among their children."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
        if parent == os.getpid():
            found.add(int(status.parent.name))
    return found


def environment(**more: str) -> dict[str, str]:
    """This process's own, without what torch puts there when a test has loaded its compiler."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("TORCHINDUCTOR")}
    return {**known, **more}


def left_over(before: set[int]) -> set[int]:
    """Processes that are there since then and do not go."""
    # Python's own tracker of resources sees the grader's end, and goes a moment later.
    deadline = time.monotonic() + 10
    while children() - before and time.monotonic() < deadline:
        for pid in children() - before:
            os.waitpid(pid, os.WNOHANG)
    return children() - before


def descriptors(pid: int | str = "self") -> list[str]:
    return sorted(entry.name for entry in Path(f"/proc/{pid}/fd").iterdir())


def of_jails(*folders: str) -> list[Path]:
    """What a jail's user owns there."""
    return [
        path
        for folder in folders
        if Path(folder).is_dir()
        for path in Path(folder).iterdir()
        if path.lstat().st_uid >= FIRST_UID_OF_A_JAIL
    ]


def shared_kernel_objects() -> dict[str, int]:
    return {kind: len(Path("/proc/sysvipc", kind).read_text()) for kind in ("shm", "msg", "sem")}


def test_a_hundred_half_of_them_hostile_end_and_leave_nothing_behind(
    impatient: Course, alone: Desk, tmp_path: Path
) -> None:
    class_folder, out, temporary = (tmp_path / name for name in ("class", "grades", "t"))
    class_folder.mkdir()
    temporary.mkdir()
    samples = sorted(path for path in SAMPLES.iterdir())
    hostile = quick(all_attacks())
    for n in range(EACH_HALF):
        # In turn, so that each honest one has hostile neighbours in both processes.
        honest = samples[n % len(samples)]
        hand_in(honest, class_folder, f"{n:03}-honest-{honest.stem}")
        attack = hostile[n * len(hostile) // EACH_HALF]
        attack.put(class_folder, f"{n:03}-hostile")
    before = children()
    files, kernel = of_jails(*WRITABLE), shared_kernel_objects()

    ran = subprocess.run(
        command(class_folder, out, impatient),
        env=environment(TMPDIR=str(temporary)),
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stderr
    assert left_over(before) == set()
    lines = (out / "results.jsonl").read_bytes().splitlines()
    grades = [Grade.from_json(line) for line in lines]
    assert len(grades) == 2 * EACH_HALF
    expected = {
        sample.stem: apart_from_names_and_time(grade_submission(alone, read_submission("", sample)))
        for sample in samples
    }
    for graded in grades:
        if "honest" in graded.student:
            sample = graded.student.partition("-honest-")[2]
            assert apart_from_names_and_time(graded) == expected[sample]
    assert sorted(path.name for path in out.iterdir()) == [
        ".lock",
        "feedback",
        "gradebook.csv",
        "grades.db",
        "report.html",
        "results.jsonl",
    ]
    assert len(list((out / "feedback").iterdir())) == 2 * EACH_HALF
    assert list(temporary.iterdir()) == []
    assert of_jails(*WRITABLE) == files
    assert shared_kernel_objects() == kernel


@pytest.mark.timeout(120)
def test_ctrl_c_ends_every_process_and_keeps_what_was_graded(
    impatient: Course, tmp_path: Path
) -> None:
    class_folder, out = tmp_path / "class", tmp_path / "grades"
    class_folder.mkdir()
    hand_in(SAMPLES / "blank", class_folder, "ann")
    for n in range(12):
        hand_in(SAMPLES / "gil_endless_loop", class_folder, f"gil{n}")
    before = children()
    running = subprocess.Popen(
        command(class_folder, out, impatient),
        start_new_session=True,
        stderr=subprocess.PIPE,
        # A shell's background job ignores Ctrl-C, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not graded_so_far(out):
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate()
    assert running.returncode == 130
    assert told.decode().startswith("grader: stopped; the grades so far are kept in")
    assert left_over(before) == set()
    assert 0 < graded_so_far(out) < 13


def graded_so_far(out: Path) -> int:
    if not (out / "grades.db").exists():
        return 0
    with closing(sqlite3.connect(f"file:{out / 'grades.db'}?mode=ro", uri=True)) as book:
        try:
            return int(book.execute("SELECT count(*) FROM grades").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # not made yet


def test_neither_the_grader_nor_the_warm_process_keeps_a_descriptor_of_an_attack(
    alone: Desk,
) -> None:
    attacks = [attack for attack in quick(all_attacks()) if attack.klass in ("replies", "exits")]
    warm = process_of(warm_of(alone)).pid
    held = []
    for path in (SAMPLES / "ada", *(attack.path for attack in attacks[:20])):
        (submission,) = find_submissions([path], alone.course, single=True)
        assert grade_submission(alone, submission).status == "graded"
        held.append((len(descriptors()), len(descriptors(warm))))
    # After each of them a jail waits for the next one, at descriptors that were free.
    assert held == [held[0]] * len(held)
