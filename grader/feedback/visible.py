"""What a student may read of a grade: all of the public tests, and some of the hidden ones.

Whoever shows a grade to a student (a page, another system) shows what comes out of `for_students`.
"""

from __future__ import annotations

import msgspec

from grader.course.course import Course
from grader.course.file import Told
from grader.records.grade import ExerciseResult, Grade, TestResult

FAILED_ITSELF = "the grader itself failed here: that is no fault of yours, and is being looked into"


def for_students(grade: Grade, course: Course) -> Grade:
    """The grade without the seed, and without what hidden tests saw.

    Of a hidden test remain its title, its status, its points, the rules of the statement that it
    found broken, and a known mistake with its hint, or how the answer behaves: never a message,
    which holds numbers. ``[feedback] hidden`` in ``course.toml`` may tell less.
    Where the grader itself failed, that is all that is told: a traceback shows what was hidden.
    """
    told = course.file.feedback.hidden
    exercises = tuple(_told(exercise, told) for exercise in grade.exercises)
    message = FAILED_ITSELF if grade.status == "grader_error" else grade.message
    return msgspec.structs.replace(grade, seed="", exercises=exercises, message=message)


def _told(exercise: ExerciseResult, told: Told) -> ExerciseResult:
    tests = [
        _without_numbers(test, told) if test.hidden else _without_traceback(test)
        for test in exercise.tests
    ]
    hidden = [test for test in tests if test.hidden]
    if told == "nothing" and hidden:
        tests = [test for test in tests if not test.hidden] + [_summed_up(hidden)]
    return msgspec.structs.replace(exercise, tests=tuple(tests))


def _without_numbers(test: TestResult, told: Told) -> TestResult:
    known = test if told == "mistakes" else _bare(test)
    return msgspec.structs.replace(known, message=None, picture=None, case=None)


def _bare(test: TestResult) -> TestResult:
    """Without anything that says what is wrong."""
    return msgspec.structs.replace(
        test, mistake=None, hint=None, follows=None, rules={}, behaviour=()
    )


def _without_traceback(test: TestResult) -> TestResult:
    if test.status != "grader_error":
        return test
    return msgspec.structs.replace(test, message=FAILED_ITSELF, case=None)


def _summed_up(hidden: list[TestResult]) -> TestResult:
    """One line for all hidden tests: whether they passed, and what they earned."""
    statuses = {test.status for test in hidden}
    status = next((s for s in ("grader_error", "failed") if s in statuses), None)
    return TestResult(
        "hidden",
        f"All {len(hidden)} hidden tests pass",
        status or ("passed" if statuses == {"passed"} else "failed"),
        round(sum(test.points for test in hidden), 3),
        round(sum(test.max for test in hidden), 3),
    )
