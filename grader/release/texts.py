"""The texts of a bundle, and where a course's own words go into them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import resources
from string import Template

import msgspec

from grader.course.course import Course
from grader.course.file import Unit
from grader.records.faults import CallError
from grader.records.rows import number
from grader.sandbox.session import WALL_FACTOR

WALKTHROUGH = """\
Say you begin with `$first`. Open `exercises/$file`, read its docstring, and replace
`raise NotImplementedError` with lines of your own. Then ask:

```console
grader check $first
```
"""

ON_GITHUB = """
## On GitHub

In a repository of GitHub Classroom these checks run again at every push, and the points that they
give are shown there. They are for you to learn by. Whoever can push to a repository can also change
its checks and its workflow, so marks are given elsewhere, on tests that are not here.
"""

NOT_ASKED = """

Where exercises are named, the others in that file are not asked of you, and do not count."""

FOR_JAILS = "# for jails\n"  # ends the lines of what only grading needs
OURS_MB = 700  # what the grader and two idle processes with torch take; 620 were measured
OURS_MINUTES = 5  # to load torch and to compute references, on half a CPU

WORKFLOW_STEP = """\
      - name: {title}
        id: {unit}
        run: grader host classroom {unit}
"""
WORKFLOW_RESULT = """\
          {name}_RESULTS: "${{{{steps.{unit}.outputs.result}}}}"
"""


def readme(course: Course) -> str:
    """The README for students; a course that has a walkthrough puts its own first steps in.

    Those are a whole course's: a part of it may begin elsewhere.
    """
    first = course.asked[0]
    file = course.stub_file(course.unit_of[first]).name
    fields = {
        "title": _title(course),
        "first": first,
        "file": file,
        "units": _units(course, "{}.py"),
    }
    own = course.folder / "walkthrough.md"
    has_own = own.is_file() and course.assigned is None
    steps = own.read_text("utf-8") if has_own else Template(WALKTHROUGH).substitute(fields)
    return _template("README.md", **fields, walkthrough=steps.strip())


def agents(course: Course) -> str:
    """What AI assistants are asked to do, and not to do."""
    return _template("AGENTS.md", title=course.file.title)


def pyproject(*, jails: bool = False) -> str:
    """What a bundle installs: the engine, and what jails are made of only where marks are given."""
    lines = _template("pyproject.toml").splitlines(keepends=True)
    return "".join(line for line in lines if jails or not line.endswith(FOR_JAILS))


def workflow(course: Course) -> str:
    """The workflow of GitHub Classroom: a step for each unit, and the one that reports."""
    units = [unit.name for unit in course.units]
    return _template(
        "classroom.yml",
        steps="".join(
            WORKFLOW_STEP.format(title=json.dumps(u.title), unit=u.name) for u in course.units
        ),
        results="".join(WORKFLOW_RESULT.format(name=unit.upper(), unit=unit) for unit in units),
        units=",".join(units),
    )


def gradescope(course: Course) -> str:
    """What an instructor does with the bundle for Gradescope, and what its container needs."""
    limits = course.file.limits
    return _template(
        "gradescope/README.md",
        title=_title(course),
        points=number(course.most(course.asked) * course.worth),
        gigabytes=f"{math.ceil((OURS_MB + limits.memory_mb) / 512) / 2:g}",
        minutes=str(math.ceil(limits.submission_seconds * WALL_FACTOR / 60) + OURS_MINUTES),
    )


def program(name: str) -> str:
    """A program that Gradescope runs, as it stands."""
    return _read(f"gradescope/{name}")


def otter(course: Course) -> str:
    """What an instructor does with the folder for otter."""
    first = course.asked[0]
    return _template(
        "otter/README.md", title=_title(course), first=first, first_unit=course.unit_of[first]
    )


def otter_student(course: Course) -> str:
    """The README for students whose notebooks are otter's."""
    first = course.asked[0]
    return _template(
        "otter/student.md", title=_title(course), first=first, first_unit=course.unit_of[first],
        units=_units(course, "{0}/{0}.ipynb"),
    )  # fmt: skip


def formulas(course: Course) -> Mapping[str, str]:
    """LaTeX by exercise, as the course's ``formulas.toml`` gives it; a course may have none."""
    path = course.folder / "formulas.toml"
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise CallError(f"{path}: {error}") from None
    for name in found:
        if name not in course.exercises and course.assigned is None:
            raise CallError(f"{path}: there is no exercise called {name!r}")
    return found


def _title(course: Course) -> str:
    """The course's, and the assignment's with the day that it is due."""
    assigned = course.assigned
    due = (
        f", due {assigned.due:%A, %d %B %Y, %H:%M %Z}".rstrip() if assigned and assigned.due else ""
    )
    return course.titled(assigned) + due


def _template(name: str, **fields: str) -> str:
    return Template(_read(name)).substitute(fields)


def _read(name: str) -> str:
    return (resources.files("grader.release") / "templates" / name).read_text("utf-8")


def _units(course: Course, file: str) -> str:
    """One row of a table for each unit, whose name goes into `file`; below, what counts."""
    rows = [
        f"| {number} | `{file.format(unit.name)}` | {unit.title} | {_exercises(course, unit)} |"
        for number, unit in enumerate(course.units, start=1)
    ]
    return "\n".join(rows) + (NOT_ASKED if len(course.asked) < len(course.exercises) else "")


def _exercises(course: Course, unit: Unit) -> str:
    """How many there are; and by name which of them an assignment asks for, if not all."""
    asked, of = course.asked_in(unit.name), len(unit.exercise)
    names = ", ".join(f"`{name}`" for name in asked)
    return f"{of}" if len(asked) == of else f"{len(asked)} of {of}: {names}"
