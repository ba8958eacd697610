"""What every grade must show: points only for tests that ran and passed."""

from __future__ import annotations

from grader.records.grade import Grade


def assert_only_what_passed_is_paid(grade: Grade) -> None:
    """Each test has all its points or none, all only if it passed; and they add up."""
    for exercise in grade.exercises:
        for test in exercise.tests:
            assert test.points in (0, test.max), (exercise.name, test.name)
            assert test.points == 0 or test.status == "passed", (exercise.name, test.name)
        earned = sum(round(test.points * 1000) for test in exercise.tests)
        assert exercise.points == earned / 1000
    assert grade.total == round(sum(exercise.points for exercise in grade.exercises), 3)
