"""Nothing is lost: whatever ends a grading, the next one goes on, and comes to the same."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from grader.course.course import Course
from grader.grades.gradebook import alone, open_gradebook
from grader.grading import ladder
from grader.grading import order as orders
from grader.grading.desk import Desk
from grader.intake import Submission
from grader.records.faults import HostFault
from grader.records.files import draft_of
from grader.records.grade import Grade
from grader.run.workers import share
from grader.sandbox.jails import Jail, Warm
from grader.sandbox.session import Limits
from grader.wire import SourceText
from grader.wire.frames import LACKS_TORCH
from tests.conftest import Grader, Ran
from tests.grades.test_gradebook import grade_of
from tests.support.gradebooks import folder
from tests.support.places import TINY
from tests.support.seats import process_of, warm_of
from tests.support.victims import (
    Deadly,
    Deskless,
    Grading,
    Roomless,
    answers_what_cannot_travel,
    dies_at_three,
    dies_once,
    dies_while_it_answers,
    raises_what_cannot_travel,
    results,
    stays,
    write_class,
)

CENTER = "def center(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"
WRONG = "def center(x):\n    return x\n"


@pytest.fixture
def students(tmp_path: Path) -> Path:
    """A class of three."""
    return folder(tmp_path / "class", ada=CENTER, bob=WRONG, cleo=CENTER)


Regrade = Callable[..., dict[str, bool]]


@pytest.fixture
def graded(grader: Grader, students: Path, tmp_path: Path) -> Regrade:
    """Grade the class into ``out``; by student, whether the grade was reused."""

    def run(*options: str | Path, course: Path = TINY) -> dict[str, bool]:
        ran = grader(
            "grade",
            students,
            "--out",
            tmp_path / "out",
            "--course",
            course,
            "--only",
            "center",
            "--jobs",
            1,
            "--no-pages",
            "--json-lines",
            *options,
        )
        assert ran.code in (0, 3), ran.err
        return reused(ran)

    return run


def reused(ran: Ran) -> dict[str, bool]:
    *lines, last = map(json.loads, ran.out.splitlines())
    assert last["submissions"] == len(lines)
    return {line["student"]: line["reused"] for line in lines}


# --- what is reused ------------------------------------------------------------------------------


def test_a_late_hand_in_is_graded_and_the_others_are_reused(
    grader: Grader, graded: Regrade, students: Path, tmp_path: Path
) -> None:
    assert graded() == {"ada": False, "bob": False, "cleo": False}
    folder(students, dan=CENTER, bob=CENTER)
    assert graded() == {"ada": True, "bob": False, "cleo": True, "dan": False}
    call = ("--only", "center", "--out", tmp_path / "out", "--course", TINY, "--no-pages")
    ran = grader("grade", students, *call)
    assert "4 of 4 are reused from" in ran.out
    assert "--fresh grades them again" in ran.out
    assert "4 submissions graded, none of them now, in" in ran.out.splitlines()[-1]


@pytest.mark.parametrize("changed", ["seed", "fresh", "isolation", "course", "stub", "torch"])
def test_what_decides_a_grade_is_graded_again(
    graded: Regrade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    course = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    assert set(graded(course=course).values()) == {False}
    assert set(graded(course=course).values()) == {True}
    options = {
        "seed": ("--seed", "another"),
        "fresh": ("--fresh",),
        "isolation": ("--isolation", "weak"),
    }
    files = {"course": "solutions/graders/test_basics.py", "stub": "exercises/basics.py"}
    if changed in files:
        with (course / files[changed]).open("a") as file:
            file.write("\n# mended\n")
    if changed == "torch":
        python, _, kit = orders._loaded()  # as a later process finds it
        monkeypatch.setattr(orders, "_loaded", lambda: (python, "0.0", kit))
    assert set(graded(*options.get(changed, ()), course=course).values()) == {False}


def test_lateness_is_todays_and_the_grade_is_the_old_one(grader: Grader, tmp_path: Path) -> None:
    canvas = folder(tmp_path / "canvas", doejane_1_10_hw=CENTER)
    call = (
        "grade",
        canvas,
        "--out",
        tmp_path / "out",
        "--course",
        TINY,
        "--only",
        "center",
        "--no-pages",
        "--json-lines",
    )
    assert reused(grader(*call)) == {"doejane": False}
    (canvas / "doejane_1_10_hw.py").rename(canvas / "doejane_LATE_1_10_hw.py")
    assert reused(grader(*call)) == {"doejane": True}
    (line,) = (tmp_path / "out" / "gradebook.csv").read_text("utf-8").splitlines()[1:]
    assert line == "doejane,doejane,graded,2,2,2,late,1,"


def test_where_the_grader_failed_it_tries_again(
    graded: Regrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork(*_: object) -> None:
        raise HostFault("there is no room for another process")

    with monkeypatch.context() as patch:
        patch.setattr(Warm, "open", fork)
        graded()
    assert graded() == {"ada": False, "bob": False, "cleo": False}


def test_who_is_forgotten_is_not_remembered_by_the_text(
    grader: Grader, graded: Regrade, tmp_path: Path
) -> None:
    graded()
    assert grader("forget", tmp_path / "out", "ada", "--yes", "--course", TINY).code == 0
    assert graded() == {"ada": False, "bob": True, "cleo": True}


# --- stopped -------------------------------------------------------------------------------------


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """From now on, Ctrl-C is pressed when it is this student's turn; at nobody's, if empty."""
    really, turn = ladder.grade_submission, ""

    def until(desk: Desk, submission: Submission) -> Grade:
        if submission.student == turn:
            raise KeyboardInterrupt
        return really(desk, submission)

    def stop(student: str) -> None:
        nonlocal turn
        turn = student

    monkeypatch.setattr(ladder, "grade_submission", until)
    return stop


def test_ctrl_c_keeps_what_was_graded_and_the_next_run_goes_on(
    grader: Grader, graded: Regrade, students: Path, tmp_path: Path, stop_at: Callable[[str], None]
) -> None:
    stop_at("bob")
    call = ("grade", students, "--out", tmp_path / "out", "--course", TINY, "--only", "center")
    ran = grader(*call, "--jobs", 1)
    assert (ran.code, "kept" in ran.err) == (130, True)
    stop_at("")
    assert graded() == {"ada": True, "bob": False, "cleo": False}


def test_grading_again_goes_on_where_it_stopped_and_keeps_the_old_grades(
    grader: Grader, graded: Regrade, tmp_path: Path, stop_at: Callable[[str], None]
) -> None:
    course = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    graded(course=course)
    tests = course / "solutions" / "graders" / "test_basics.py"
    agrees = "assert_agrees(student.center(x), reference.center(x))"
    tests.write_text(tests.read_text("utf-8").replace(agrees, ""), "utf-8")
    out = ("--out", tmp_path / "out", "--course", course)
    again = ("grade", "--again", *out, "--jobs", 1, "--no-pages", "--json-lines")
    stop_at("bob")
    assert grader(*again).code == 130
    refused = grader("export", tmp_path / "out", "--to", "csv", "--course", course)
    assert (refused.code, "run the same `grader grade --again` again" in refused.err) == (2, True)
    stop_at("")
    assert reused(grader(*again)) == {"ada": True, "bob": False, "cleo": False}
    with open_gradebook(tmp_path / "out", "tiny") as book:
        assert {student: old.total for student, old in book.earlier(1).items()} == {
            "ada": 2,
            "bob": 0,
            "cleo": 2,
        }
        assert book.last_run() == 1


# --- killed --------------------------------------------------------------------------------------


def test_a_grader_that_was_killed_leaves_nobody_behind_and_goes_on(
    grader: Grader, tmp_path: Path
) -> None:
    hand_in = write_class(tmp_path / "class", 8)
    options = ("--course", TINY, "--jobs", 1, "--no-pages", "--json-lines")
    assert grader("grade", hand_in, "--out", tmp_path / "calm", *options).code == 0
    killed = Grading(hand_in, tmp_path / "out", "--jobs", "2")
    killed.wait_for(grades=2)
    assert killed.kill("grader")
    # Its error output ends with the last process that could write to it.
    assert killed.finish()[0] == -signal.SIGKILL
    ran = grader("grade", hand_in, "--out", tmp_path / "out", *options)
    assert 2 <= sum(reused(ran).values()) < 8
    assert results(tmp_path / "out") == results(tmp_path / "calm")


# A right submission is asked 40 times: first for a list of what it defines.
MOMENTS = [1, *random.Random(8).sample(range(2, 40), 5)]


def disturbed(
    desk: Desk,
    text: str,
    moment: int,
    monkeypatch: pytest.MonkeyPatch,
    kill: Callable[[Jail], None],
) -> Grade:
    """The grade of a text, if something is killed when a jail is to be asked for this time."""
    count, really = 0, Jail.ask

    def ask(jail: Jail, question: bytes, *seconds: float) -> bytes:
        nonlocal count
        count += 1
        if count == moment:
            kill(jail)
        return really(jail, question, *seconds)

    with monkeypatch.context() as patch:
        patch.setattr(Jail, "ask", ask)
        grade = grade_text(desk, text)
    assert count >= moment
    return grade


def grade_text(desk: Desk, text: str) -> Grade:
    grade = ladder.grade_submission(desk, Submission("ada", (SourceText("ada.py", (text,)),)))
    return msgspec.structs.replace(grade, seconds=0)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_jail_that_others_killed_costs_nobody_anything(
    desk: Desk, right: str, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(jail: Jail) -> None:
        os.kill(jail._pid, signal.SIGKILL)

    grade = disturbed(desk, right, moment, monkeypatch, kill)
    assert grade == grade_text(desk, right)
    assert grade.total == grade.max


@pytest.mark.parametrize("moment", MOMENTS[:2])
def test_a_jail_that_was_killed_while_it_waited_costs_nobody_anything(
    desk: Desk, right: str, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it, if that happens to the one at work in the same moment."""

    def kill(_: Jail) -> None:
        ahead = warm_of(desk)._ahead
        assert ahead is not None
        warm_of(desk)._await_reply(ahead)  # it is there
        for jail in psutil.Process(process_of(warm_of(desk)).pid).children():
            jail.kill()

    assert disturbed(desk, right, moment, monkeypatch, kill) == grade_text(desk, right)


@pytest.mark.parametrize("moment", MOMENTS[:2])
def test_a_warm_process_that_others_killed_costs_nobody_anything(
    desk: Desk, right: str, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(_: Jail) -> None:
        process = process_of(warm_of(desk))
        process.kill()
        process.wait()

    assert disturbed(desk, right, moment, monkeypatch, kill) == grade_text(desk, right)


def test_a_warm_process_that_others_killed_while_it_loaded_is_started_again() -> None:
    with Warm() as warm:
        process_of(warm).kill()
        assert "process" in warm.layers


def test_a_jail_of_a_warm_process_that_was_started_again_is_let_go_of_and_harms_no_other() -> None:
    limits = Limits()
    with Warm() as warm:
        old = warm.open(limits)
        process_of(warm).kill()
        new = warm.open(limits)  # in a second warm process, which knows nothing of the old jail
        old.close(grace=0)
        assert old.ended_by == signal.SIGKILL
        second = process_of(warm).pid
        new.close(grace=0)
        warm.open(limits).close(grace=0)
        assert (new.ended_by, process_of(warm).pid) == (signal.SIGKILL, second)


# --- more of torch -------------------------------------------------------------------------------


def test_an_answer_that_asks_for_more_of_torch_is_asked_again_where_it_is(
    desk: Desk, right: str
) -> None:
    uses = "torch.func.grad(lambda t: t.sum())(torch.ones(2))"
    text = right.replace("    return x - x.mean", f"    {uses}\n    return x - x.mean")
    assert text != right
    assert points(grade_text(desk, text)) == points(grade_text(desk, right))
    at_import = f"import torch.nn.attention.flex_attention\n{uses}\n{right}"
    assert points(grade_text(desk, at_import)) == points(grade_text(desk, right))


def test_who_ends_its_process_as_if_more_of_torch_were_asked_for_gains_nothing(
    desk: Desk, right: str
) -> None:
    ends = f"import os\n    os._exit({LACKS_TORCH})\n"
    text = right.replace("    return x - x.mean", f"    {ends}    return x - x.mean")
    grade = grade_text(desk, text)
    assert grade.total < grade.max
    (told,) = {test.message for test in grade.exercises[0].tests if test.status == "crashed"}
    assert told == "the code ended its own process"


def points(grade: Grade) -> dict[str, float]:
    return {exercise.name: exercise.points for exercise in grade.exercises}


def test_a_submission_that_kills_its_own_process_is_believed_the_third_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    jails = 0
    really = desk.backend.open

    def opened(limits: Limits) -> Any:
        nonlocal jails
        jails += 1
        return really(limits)

    monkeypatch.setattr(desk.backend, "open", opened)
    grade = grade_text(desk, "import os\ndef center(x):\n    os.kill(os.getpid(), 9)\n")
    (center,) = (exercise for exercise in grade.exercises if exercise.name == "center")
    assert [test.status for test in center.tests].count("crashed") == 2
    assert (center.points, jails) == (0, 6)  # a public and a hidden test, each in three jails


def test_the_work_of_a_process_that_was_killed_is_done_by_another(
    tiny: Course, tmp_path: Path
) -> None:
    order = Deskless(tiny, "", {})
    done = share(order, partial(dies_once, tmp_path), range(8), 2)
    assert sorted(done) == [*range(8)]
    with pytest.raises(
        HostFault, match=r"^3: 2 processes ended unexpectedly while they worked on it"
    ):
        list(share(order, dies_at_three, range(8), 2))


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (dies_while_it_answers, "^3: 2 processes ended unexpectedly while they worked on it"),
        (raises_what_cannot_travel, "cannot be put into words"),
        (answers_what_cannot_travel, "pickle"),
    ],
)
def test_whatever_keeps_a_process_from_answering_is_told(
    tiny: Course, work: Callable[[object, int], int], told: str
) -> None:
    with pytest.raises(HostFault, match=told):
        list(share(Deskless(tiny, "", {}), work, range(8), 2))


def test_why_a_desk_cannot_be_opened_is_told_by_its_own_words(tiny: Course) -> None:
    with pytest.raises(HostFault, match=r"^no room for a desk$"):
        list(share(Roomless(tiny, "", {}), stays, range(4), 2))


def test_where_no_process_can_begin_one_line_says_so(tiny: Course) -> None:
    with pytest.raises(HostFault, match="worker processes end before they can begin"):
        list(share(Deadly(tiny, "", {}), stays, range(4), 2))


# --- a full disk ---------------------------------------------------------------------------------


@contextmanager
def full(disk: str) -> Iterator[None]:
    """A disk on which the database cannot grow beyond twenty pages, or no file."""
    if disk == "no file may be large":
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 * 4096, hard))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return
    really = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = really(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield


@pytest.mark.parametrize("disk", ["no file may be large", "few pages"])
def test_a_full_disk_is_told_in_one_line_and_the_next_run_goes_on(
    grader: Grader, right: str, tmp_path: Path, disk: str
) -> None:
    names = [f"student_{number:02}" for number in range(8)]
    hand_in = folder(tmp_path / "class", **dict.fromkeys(names, right))
    call = ("grade", hand_in, "--course", TINY, "--jobs", 1, "--no-pages", "--json-lines")
    assert grader(*call, "--out", tmp_path / "calm").code == 0
    with full(disk):
        ran = grader(*call, "--out", tmp_path / "out")
    before = len(ran.out.splitlines())
    assert 0 < before < 8
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert "make room, and run the same command again" in ran.err
    assert not (tmp_path / "out" / "gradebook.csv").exists()
    assert sum(reused(grader(*call, "--out", tmp_path / "out")).values()) == before
    assert results(tmp_path / "out") == results(tmp_path / "calm")


# --- cut off -------------------------------------------------------------------------------------


def test_what_was_half_written_is_undone(tmp_path: Path) -> None:
    with open_gradebook(tmp_path / "out", "tiny") as book:
        book.record(grade_of("ada", 1, 1))
    connection = sqlite3.connect(tmp_path / "out" / "grades.db")
    connection.execute("PRAGMA cache_size = 1")  # so that changes go to the file at once
    connection.execute("BEGIN")
    connection.execute("UPDATE grades SET grade = zeroblob(100000)")
    shutil.copytree(tmp_path / "out", tmp_path / "killed")
    connection.close()
    assert (tmp_path / "killed" / "grades.db-journal").stat().st_size
    with open_gradebook(tmp_path / "killed", "tiny") as book:
        assert [grade.total for grade in book.grades()] == [2]


def test_drafts_that_a_killed_process_left_are_removed(graded: Regrade, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ended = os.fork() or os._exit(0)
    os.waitpid(ended, 0)
    left = draft_of(out / "gradebook.csv").with_suffix(f".{ended}")
    left.write_text("half of it")
    kept = out / ".gradebook.csv.mine"
    kept.touch()
    graded()
    assert (left.exists(), kept.exists()) == (False, True)


# --- two at once ---------------------------------------------------------------------------------


def test_two_gradings_never_share_a_folder_and_readers_may(
    grader: Grader, graded: Regrade, students: Path, tmp_path: Path
) -> None:
    graded()
    out = ("--out", tmp_path / "out", "--course", TINY)
    with alone(tmp_path / "out"):
        for call in (("grade", students, "--only", "center"), ("grade", "--again")):
            ran = grader(*call, *out)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            assert "another grading into" in ran.err
        with open_gradebook(tmp_path / "out", "tiny") as book:
            book.unfinished = "grader grade"
        assert grader("explain", tmp_path / "out", "bob", "center", "--course", TINY).code == 0
        assert grader("report", tmp_path / "out", "--course", TINY).code == 0
        refused = grader("export", tmp_path / "out", "--to", "csv", "--course", TINY)
        assert (refused.code, "wait until it ends" in refused.err) == (2, True)
    assert set(graded().values()) == {True}
