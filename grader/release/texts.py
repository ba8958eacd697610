"""The texts of a bundle, and where a course's own words go into them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from string import Template

import msgspec

from grader.course import Course
from grader.faults import CallError

WALKTHROUGH = """\
Say you begin with `$first`. Open `exercises/$file`, read its docstring, and replace
`raise NotImplementedError` with lines of your own. Then ask:

```console
grader check $first
```
"""


def readme(course: Course) -> str:
    """The README for students; a course that has a walkthrough puts its own first steps in.

    Those are a whole course's: a part of it may begin elsewhere.
    """
    first = next(iter(course.exercises))
    file = course.stub_file(course.unit_of[first]).name
    fields = {"title": _title(course), "first": first, "file": file, "units": _units(course)}
    own = course.folder / "walkthrough.md"
    has_own = own.is_file() and course.assigned is None
    steps = own.read_text("utf-8") if has_own else Template(WALKTHROUGH).substitute(fields)
    return _template("README.md", **fields, walkthrough=steps.strip())


def agents(course: Course) -> str:
    """What AI assistants are asked to do, and not to do."""
    return _template("AGENTS.md", title=course.file.title)


def pyproject() -> str:
    """What a student installs: the engine, and nothing that only instructors need."""
    return _template("pyproject.toml")


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
    if assigned is None:
        return course.file.title
    due = f", due {assigned.due:%A, %d %B %Y, %H:%M %Z}".rstrip() if assigned.due else ""
    return f"{course.file.title}: {assigned.title or assigned.name}{due}"


def _template(name: str, **fields: str) -> str:
    path = resources.files("grader.release") / "templates" / name
    return Template(path.read_text("utf-8")).substitute(fields)


def _units(course: Course) -> str:
    """One row of a table for each unit."""
    return "\n".join(
        f"| {number} | `{unit.name}.py` | {unit.title} | {len(unit.exercise)} |"
        for number, unit in enumerate(course.units, start=1)
    )
