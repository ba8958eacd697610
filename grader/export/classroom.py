"""Public checks of one unit in the format of GitHub Classroom's graders, version 3.

Its reporter adds up the scores, and prints each test's name; what else it knows of a test it may
print.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Literal

import msgspec

from grader.course.course import Course
from grader.feedback.terminal import safe
from grader.records.grade import ExerciseResult, TestResult, counted, scaled
from grader.records.wording import mistake_of

Status = Literal["pass", "fail", "error"]

# Results travel in a variable of the environment, and no variable may be longer than 128 KiB.
MAX_MESSAGE = 300  # characters

NOT_TRIED = "not tried, because something before it is wrong"


class Test(msgspec.Struct, frozen=True):
    """One check. The system knows no time of a single one, and no line."""

    name: str
    status: Status
    message: str | None
    score: float
    test_code: str  # how to see it at home
    task_id: int  # the exercise's place among those of its unit that are asked
    filename: str
    line_no: int = 0
    duration: float | None = None


class Results(msgspec.Struct, frozen=True):
    """What one step says."""

    status: Status
    max_score: float
    tests: tuple[Test, ...]
    version: int = 3

    def encoded(self) -> str:
        """As the reporter takes it: base64 of JSON."""
        return base64.b64encode(msgspec.json.encode(self)).decode()


def results(course: Course, unit: str, exercises: Sequence[ExerciseResult]) -> Results:
    """What the checks of a unit gave."""
    exercises = counted(exercises, course.worth)
    statuses = {test.status for exercise in exercises for test in exercise.tests}
    solved = all(exercise.solved for exercise in exercises)
    return Results(
        "error" if "grader_error" in statuses else "pass" if solved else "fail",
        round(sum(exercise.max for exercise in exercises), 3),
        tuple(
            Test(
                f"{exercise.name}: {test.title}", _status(test), _message(test), test.points,
                f"grader check {exercise.name}", place, course.stub_file(unit).name,
            )
            for place, exercise in enumerate(exercises, 1)
            for test in exercise.telling
        ),
    )  # fmt: skip


def unknown(course: Course, unit: str, why: str) -> Results:
    """What there is to say of a unit where nothing could be checked."""
    told = Test(
        unit, "error", _shown(why), 0, f"grader check {unit}", 0, course.stub_file(unit).name
    )
    return Results("error", scaled(course.most(course.asked_in(unit)), course.worth), (told,))


def _status(test: TestResult) -> Status:
    match test.status:
        case "passed":
            return "pass"
        case "failed" | "missing" | "skipped":
            return "fail"
        case _:
            return "error"


def _message(test: TestResult) -> str | None:
    said = test.message or (test.status == "skipped" and NOT_TRIED)
    parts = (mistake_of(test), test.hint, said)
    return _shown("\n".join(part for part in parts if part)) or None


def _shown(text: str) -> str:
    return safe(text)[:MAX_MESSAGE]
