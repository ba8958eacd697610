"""GitHub Classroom: the repository that it hands out, a student bundle with a workflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.course.course import Course
from grader.release import texts
from grader.release.engine import DESK
from grader.release.student import write_student_bundle

# What the workflow runs, besides a student's own commands.
STEP_MODULES = ("cli.host", "lms.system", "lms.classroom")

WORKFLOW = ".github/workflows/classroom.yml"

ON_GITHUB = """
## On GitHub

In a repository of GitHub Classroom these checks run again at every push, and the points that they
give are shown there. They are for you to learn by. Whoever can push to a repository can also change
its checks and its workflow, so marks are given elsewhere, on tests that are not here.
"""

STEP = """\
      - name: {title}
        id: {unit}
        run: grader host classroom {unit}
"""
RESULT = """\
          {name}_RESULTS: "${{{{steps.{unit}.outputs.result}}}}"
"""


def release_classroom(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
    jobs: int = 1,
) -> list[Path]:
    """Write the repository into `to`, and return its files; else like `write_student_bundle`."""
    return write_student_bundle(
        course,
        to,
        report,
        replace=replace,
        jobs=jobs,
        texts_beside={
            WORKFLOW: _workflow(course),
            "README.md": texts.readme(course) + ON_GITHUB,
        },
        engine=(*DESK, *STEP_MODULES),
    )


def said(to: Path, files: int) -> Sequence[str]:
    """The lines about a repository of so many files."""
    return (
        f"{files} files in {to}: push them to the assignment's template repository",
        f"students can change {WORKFLOW} and the checks: give marks elsewhere",
    )


def _workflow(course: Course) -> str:
    """The workflow of GitHub Classroom: a step for each unit, and the one that reports."""
    units = [unit.name for unit in course.units]
    return texts.template(
        "classroom.yml",
        __package__,
        steps="".join(STEP.format(title=json.dumps(u.title), unit=u.name) for u in course.units),
        results="".join(RESULT.format(name=unit.upper(), unit=unit) for unit in units),
        units=",".join(units),
    )
