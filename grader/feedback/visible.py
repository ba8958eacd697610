"""Removes from a grade the parts that a student must not see.

Every screen that shows a grade to a student must show the result of `for_students`.
"""

from __future__ import annotations

import msgspec

from grader.course.course import Course
from grader.course.file import Disclosure
from grader.records.grade import ExerciseResult, Grade, TestResult

FAILED_ITSELF = "the grader itself failed here: that is no fault of yours, and is being looked into"


def for_students(grade: Grade, course: Course) -> Grade:
    """The grade without the seed, and without the inputs and numbers of hidden tests.

    A hidden test keeps its title, status and points, the broken rules, and a known mistake with its
    hint, or a description of the answer's behaviour. It loses its message, which holds numbers.
    ``[feedback] hidden`` in ``course.toml`` may remove more. If the grader itself failed, the
    message is only `FAILED_ITSELF`, since a traceback reveals hidden tests.
    """
    level = course.file.feedback.hidden
    exercises = tuple(_visible(exercise, level) for exercise in grade.exercises)
    message = FAILED_ITSELF if grade.status == "grader_error" else grade.message
    return msgspec.structs.replace(grade, seed="", exercises=exercises, message=message)


def _visible(exercise: ExerciseResult, level: Disclosure) -> ExerciseResult:
    tests = [
        _without_numbers(test, level) if test.hidden else _without_traceback(test)
        for test in exercise.tests
    ]
    hidden = [test for test in tests if test.hidden]
    if level == "nothing" and hidden:
        tests = [test for test in tests if not test.hidden] + [_summed_up(hidden)]
    return msgspec.structs.replace(exercise, tests=tuple(tests))


def _without_numbers(test: TestResult, level: Disclosure) -> TestResult:
    if level != "mistakes":
        test = msgspec.structs.replace(
            test, mistake=None, hint=None, follows=None, rules={}, behaviour=()
        )
    return msgspec.structs.replace(test, message=None, picture=None, case=None, position=None)


def _without_traceback(test: TestResult) -> TestResult:
    if test.status != "grader_error":
        return test
    return msgspec.structs.replace(test, message=FAILED_ITSELF, case=None)


def _summed_up(hidden: list[TestResult]) -> TestResult:
    """A single result for all hidden tests: whether all passed, and the sum of their points."""
    statuses = {test.status for test in hidden}
    status = next((s for s in ("grader_error", "failed") if s in statuses), None)
    return TestResult(
        "hidden",
        f"All {len(hidden)} hidden tests pass",
        status or ("passed" if statuses == {"passed"} else "failed"),
        round(sum(test.points for test in hidden), 3),
        round(sum(test.max for test in hidden), 3),
    )
