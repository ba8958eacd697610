"""A rule for every grade: only tests that ran and passed earn points."""

from __future__ import annotations

from grader.records.grade import HEART, Grade


def assert_only_what_passed_is_paid(grade: Grade) -> None:
    """Each test has all its points or none, all only if it passed; and they add up.

    Without its heart, an exercise has half of its points at most, shared out among what passed.
    """
    for exercise in grade.exercises:
        heartless = any(test.name == HEART for test in exercise.tests)
        assert not heartless or 2 * exercise.points <= exercise.max, exercise.name
        for test in exercise.tests:
            whole = test.points in (0, test.max)
            assert whole or (heartless and 0 < test.points < test.max), (exercise.name, test.name)
            assert test.points == 0 or test.status == "passed", (exercise.name, test.name)
        earned = sum(round(test.points * 1000) for test in exercise.tests)
        assert exercise.points == earned / 1000
    assert grade.total == round(sum(exercise.points for exercise in grade.exercises), 3)
