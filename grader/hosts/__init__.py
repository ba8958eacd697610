"""Systems that call us to grade one submission: Gradescope, GitHub Classroom, otter-grader.

Each file here speaks one system's formats; the grading itself is that of `grader grade`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.course.course import Course
from grader.intake import Submission
from grader.records.grade import Grade
from grader.run.workers import Order
from grader.sandbox.isolation import Isolation


def grade_one(
    course: Course, submission: Submission, *, seed: str | None = None, only: Sequence[str] = (),
    isolation: Isolation = "strong", secrets: Sequence[Path] = (),
) -> Grade:  # fmt: skip
    """Grade one submission with public checks and hidden graders.

    `secrets` is what no submission may read, besides the solutions. Raises `CallError` where the
    isolation that is asked for cannot be had.
    """
    order = Order(
        course, seed or course.hidden_seed(), course.test_files(), course.select(only),
        isolation=isolation, secrets=tuple(secrets),
    )  # fmt: skip
    with order.desk() as desk:
        from grader.grading.ladder import (
            grade,  # it loads torch, which the desk began to load beside us
        )

        return grade(desk, submission)
