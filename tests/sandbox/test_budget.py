"""What is left of a submission's time: numbers alone, without a process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grader.sandbox import budget
from grader.sandbox.budget import (
    IDLE_MOMENT,
    IDLE_SUBMISSION,
    IDLE_TEST,
    SHORT_BUT_ENDING,
    WALL_FACTOR,
    Budget,
    Left,
    Used,
)

PER_TEST, IN_ALL = 5.0, 120.0


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock on the wall, which the test sets."""
    wall = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: wall.now))
    return wall


@pytest.fixture
def time(wall: SimpleNamespace) -> Budget:
    """Of a submission that has only begun."""
    del wall
    return Budget(PER_TEST, IN_ALL)


def test_a_test_has_what_it_has_not_used_itself(time: Budget) -> None:
    time.begin_case("center", Used(cpu=3.0))
    assert time.left(Used(cpu=4.0)) == Left(PER_TEST - 1.0, "test")


def test_what_a_process_used_still_counts_when_it_is_gone(time: Budget) -> None:
    time.begin_case("center", Used(cpu=3.0, idle=1.0))
    time.note_end(Used(cpu=5.0, idle=2.5))
    assert time.left(Used(cpu=1.0)) == Left(PER_TEST - 3.0, "test", IDLE_TEST - 1.5)
    assert time.left(Used(idle=0.5)).idle_seconds == IDLE_TEST - 2.0


@pytest.mark.parametrize(("used", "whose"), [(IN_ALL - 2, "test"), (IN_ALL + 2, "submission")])
def test_no_test_has_more_than_is_left_of_the_submission(
    time: Budget, used: float, whose: str
) -> None:
    time.begin_case("center", Used(cpu=used))
    left = time.left(Used(cpu=used))
    assert (left.seconds, left.whose) == (IN_ALL - used, whose)
    assert time.left_to_list(Used(cpu=used)).seconds == IN_ALL - used


def test_a_new_process_has_as_long_to_list_as_a_test_whatever_the_last_one_used(
    time: Budget,
) -> None:
    time.begin_case("center", Used())
    time.note_end(Used(cpu=PER_TEST))
    assert time.left_to_list(Used()) == Left(PER_TEST, "submission")


def test_who_waits_uses_up_a_test_and_a_submission_by_the_clock_on_the_wall(
    time: Budget, wall: SimpleNamespace
) -> None:
    time.begin_case("center", Used())
    wall.now += WALL_FACTOR * 1.0
    assert time.left(Used()) == Left(PER_TEST - 1.0, "test")
    wall.now += WALL_FACTOR * (IN_ALL - 1.0)
    assert time.left(Used()).whose == "submission"
    assert time.left_to_list(Used()).seconds == 0.0


def test_who_has_rested_for_long_may_still_rest_for_a_moment_in_each_test(time: Budget) -> None:
    time.begin_case("center", Used())
    assert time.left(Used()).idle_seconds == IDLE_TEST
    assert time.left(Used(idle=IDLE_TEST + 1.0)).idle_seconds == 0.0
    time.begin_case("center", Used(idle=IDLE_SUBMISSION - 1.0))
    assert time.left(Used(idle=IDLE_SUBMISSION - 1.0)).idle_seconds == 1.0
    assert time.left(Used(idle=IDLE_SUBMISSION + 1.0)).idle_seconds == IDLE_MOMENT


@pytest.mark.parametrize(
    ("timeouts", "seconds"), [(2, PER_TEST), (3, 0.3), (9, 0.3), (10, 0.12), (50, 0.12)]
)
def test_after_timeouts_a_test_has_little_time(time: Budget, timeouts: int, seconds: float) -> None:
    for _ in range(timeouts):
        time.begin_case("endless", Used())
        time.note_timeout()
    time.begin_case("endless", Used())
    assert time.left(Used()).seconds == seconds


@pytest.mark.parametrize(("timeouts", "seconds"), [(2, PER_TEST), (3, SHORT_BUT_ENDING)])
def test_an_exercise_that_has_come_to_an_end_has_more_after_timeouts(
    time: Budget, timeouts: int, seconds: float
) -> None:
    time.begin_case("ends", Used())
    for _ in range(timeouts):
        time.begin_case("endless", Used())
        time.note_timeout()
    time.begin_case("ends", Used())
    assert time.left(Used()).seconds == seconds
