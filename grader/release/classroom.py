"""What GitHub Classroom hands out: the student bundle, with a workflow that checks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grader.course.course import Course
from grader.release import texts
from grader.release.student import release_student

WORKFLOW = ".github/workflows/classroom.yml"


def release_classroom(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
    jobs: int = 1,
) -> list[Path]:
    """Write the repository into `to`, and return its files; otherwise like `release_student`."""
    return release_student(
        course, to, report, replace=replace, jobs=jobs,
        texts_beside={
            WORKFLOW: texts.workflow(course),
            "README.md": texts.readme(course) + texts.ON_GITHUB,
        },
    )  # fmt: skip
