"""How far a grading has come: numbers by a clock of the test's own, and how they are shown."""

from __future__ import annotations

import io
import json

import msgspec
from rich.console import Console

from grader.records.grade import SubmissionStatus, TestStatus
from grader.records.rows import Row
from grader.run.batch import BookedGrade
from grader.run.tally import EVERY, Tally, duration, following, sum_up
from tests.grades.test_gradebook import grade_of


class Clock:
    """Says what it is told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def done(
    student: str,
    total: float = 1,
    *,
    status: SubmissionStatus = "graded",
    reused: bool = False,
    ending: TestStatus = "passed",
) -> BookedGrade:
    grade = grade_of(student, total, status=status)
    (exercise,) = grade.exercises
    tests = tuple(msgspec.structs.replace(test, status=ending) for test in exercise.tests)
    exercises = (msgspec.structs.replace(exercise, tests=tests),)
    return BookedGrade(msgspec.structs.replace(grade, exercises=exercises), reused)


def rows(*grades: BookedGrade) -> list[Row]:
    return [Row(one.grade.student, one.grade) for one in grades]


def test_the_pace_is_that_of_this_run_once_torch_is_loaded() -> None:
    clock = Clock()
    tally = Tally(10, clock)
    for number in range(4):
        tally.add(done(f"old {number}", reused=True))
    assert (tally.pace, tally.left) == ("", None)
    clock.now += 60  # torch, and the first
    tally.add(done("ada"))
    clock.now += 4
    tally.add(done("bob"))
    assert (tally.done, tally.left) == (6, 16)
    assert tally.pace == "4.0 s each, 16 s left"


def test_what_went_wrong_so_far_is_told_by_how_it_ended() -> None:
    tally = Tally(5, Clock())
    tally.add(done("ada", ending="timeout"))
    tally.add(done("bob", ending="crashed"))
    tally.add(done("cleo", ending="crashed", reused=True))
    tally.add(done("dan", status="grader_error"))
    assert tally.outcomes == "3 graded, 1 grader error"
    assert tally.troubles == "1 out of time, 2 crashed"
    assert tally.line.startswith("4 of 5; ")
    assert tally.line.endswith("1 reused")


def test_the_summary_is_one_line_with_the_mean_of_the_report() -> None:
    clock = Clock()
    tally = Tally(4, clock)
    ended = [
        done("ada", 2),
        done("bob", 1),
        done("cleo", 0, status="empty"),
        done("dan", 0, status="grader_error"),
    ]
    for one in ended:
        tally.add(one)
    clock.now += 372
    assert tally.summary(rows(*ended)) == (
        "4 submissions graded in 6 min 12 s (1 min 33 s each): "
        "2 graded, 1 without a file, 1 grader error; mean 1.5 of 4"
    )


def test_durations_are_told_as_people_do() -> None:
    assert [duration(s) for s in (0.4, 59.6, 372, 3 * 3600 + 61)] == [
        "0 s",
        "1 min 0 s",
        "6 min 12 s",
        "3 h 1 min",
    ]


def test_in_a_log_there_is_a_line_now_and_then() -> None:
    clock, written = Clock(), io.StringIO()
    tally = Tally(30, clock)
    with following(tally, "people", io.StringIO(), Console(file=written)) as follow:
        follow(done("ada"))
        follow(done("bob"))
        assert written.getvalue() == ""
        clock.now += EVERY
        follow(done("cleo"))
        assert written.getvalue() == "grading: 3 of 30; 5.0 s each, 2 min 15 s left; 3 graded\n"
        tally.total = 4
        clock.now += EVERY
        follow(done("dan"))
    assert written.getvalue().count("\n") == 1


def test_in_a_terminal_a_bar_shows_what_came_out_and_is_gone_in_the_end() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with following(Tally(2), "people", io.StringIO(), console) as follow:
        follow(done("[red]ada", ending="timeout"))
        follow(done("bob"))
    assert "2/2" in written.getvalue()
    assert "2 graded; 1 out of time" in written.getvalue()
    assert "ada" not in written.getvalue()


def test_programs_get_an_object_as_each_submission_ends_and_one_in_the_end() -> None:
    clock, written = Clock(), io.StringIO()
    tally = Tally(2, clock)
    ada, bob = done("ada", 1, reused=True), done("bob", 0, status="grader_error")
    with following(tally, "json lines", written, Console(file=io.StringIO())) as follow:
        follow(ada)
        assert json.loads(written.getvalue()) == {
            "student": "ada",
            "status": "graded",
            "total": 1,
            "max": 4,
            "reused": True,
            "seconds": 0.4,
        }
        follow(bob)
    sum_up(tally, rows(ada, bob), written)
    *_, second, last = map(json.loads, written.getvalue().splitlines())
    assert (second["student"], second["total"]) == ("bob", None)
    assert last == {
        "submissions": 2,
        "reused": 1,
        "statuses": {"graded": 1, "grader_error": 1},
        "mean": 1,
        "max": 4,
        "seconds": 0,
    }


def test_programs_hear_of_the_absent_too() -> None:
    written = io.StringIO()
    sum_up(Tally(1), [*rows(done("ada", 1)), Row("cleo", None)], written)
    absent, _ = map(json.loads, written.getvalue().splitlines())
    assert absent == {
        "student": "cleo",
        "status": "absent",
        "total": None,
        "max": None,
        "reused": False,
        "seconds": 0,
    }


def test_who_wants_it_quiet_hears_nothing() -> None:
    written = io.StringIO()
    tally = Tally(1)
    with following(tally, "quiet", written, Console(file=written, force_terminal=True)) as follow:
        follow(done("ada"))
    assert (written.getvalue(), tally.done) == ("", 1)
