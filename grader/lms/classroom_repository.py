"""GitHub: writes a repository, which is a student bundle with a workflow that checks every push."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.course.course import Course
from grader.release import texts
from grader.release.engine import FOR_STUDENTS
from grader.release.student import write_student_bundle

# The modules that the workflow needs in addition to those for the student's commands.
STEP_MODULES = ("cli.host", "lms.system", "lms.classroom")

WORKFLOW = ".github/workflows/checks.yml"

ON_GITHUB = """
## On GitHub

If this folder is a repository on GitHub, its workflow runs these checks again at every push. Commit
and push whenever you have solved something, or want to show where you are stuck:

```console
git add --all
git commit -m "one more exercise"
git push
```

Then open the tab "Actions" on the repository's page. The newest line is your push; it shows the
results of the checks. They are for learning only: anyone who can push can also change the checks.
Marks come from other tests, which are not in this repository.
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
    """Write the repository into `to` as `write_student_bundle` does, and return its files."""
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
        engine=(*FOR_STUDENTS, *STEP_MODULES),
    )


def next_steps(to: Path, files: int) -> Sequence[str]:
    """The lines to print after a repository was written."""
    return (
        f"{files} files in {to}: push them to GitHub, as a template repository",
        f"students can change {WORKFLOW} and the checks: give marks with grader grade",
    )


def _workflow(course: Course) -> str:
    """The workflow: one step for each unit, then the reporter."""
    units = [unit.name for unit in course.units]
    return texts.template(
        "classroom.yml",
        __package__,
        steps="".join(STEP.format(title=json.dumps(u.title), unit=u.name) for u in course.units),
        results="".join(RESULT.format(name=unit.upper(), unit=unit) for unit in units),
        units=",".join(units),
    )
