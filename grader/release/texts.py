"""The texts of a bundle, with the course's title, units and other facts filled in."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from string import Template

from grader.course.course import Course
from grader.course.file import Unit
from grader.records.faults import HostFault

WALKTHROUGH = """\
Say you begin with `$first`. Open `exercises/$file`, read its docstring, and replace
`raise NotImplementedError` with lines of your own. Then ask:

```console
grader check $first
```
"""

NOT_ASKED = """

If a row names exercises, only these are assigned; the other exercises in the file do not count."""

IF_THERE = re.compile(r" <!-- (\w+) -->$", re.MULTILINE)  # see `_without_lacking`
FOR_GRADING = "# for grading\n"  # the end of each line that names a library for grading only


def readme(course: Course) -> str:
    """The README for students, with the first steps from the course's walkthrough, if it has one.

    A part of a course does not use the walkthrough, since the part may begin with another exercise.
    """
    first = course.asked[0]
    file = course.stub_file(course.unit_of[first]).name
    fields = {
        "title": full_title(course),
        "first": first,
        "file": file,
        "units": table_of_units(course, "{}.py"),
    }
    own = course.folder / "walkthrough.md"
    has_own = own.is_file() and course.assigned is None
    steps = own.read_text("utf-8") if has_own else Template(WALKTHROUGH).substitute(fields)
    text = template("README.md", **fields, walkthrough=steps.strip())
    return _without_lacking(course, text)


def agents(course: Course) -> str:
    """The rules for AI assistants."""
    return _without_lacking(course, template("AGENTS.md", title=course.file.title))


def _without_lacking(course: Course, text: str) -> str:
    """A text without the lines about commands for which the course has no content.

    Such a line ends in a comment with the command's name, as in ``<!-- play -->``.
    """
    lines = text.splitlines(keepends=True)
    kept = (line for line in lines if not {*IF_THERE.findall(line)} & course.lacking)
    return "".join(IF_THERE.sub("", line) for line in kept)


def pyproject(course: Course, *, grading: bool = False) -> str:
    """The bundle's `pyproject.toml`; with `grading` it also requires what only grading needs."""
    name = f"{slug(course.name)}-exercises".lstrip("-")
    lines = template("pyproject.toml", project=name).splitlines(keepends=True)
    return "".join(line for line in lines if grading or not line.endswith(FOR_GRADING))


def full_title(course: Course) -> str:
    """The title of a course; for an assignment, also the assignment's title and due date."""
    assigned = course.assigned
    title = course.titled(assigned)
    if assigned is None or assigned.due is None:
        return title
    return f"{title}, due {course.local(assigned.due):%A, %d %B %Y, %H:%M %Z}".rstrip()


def slug(name: str) -> str:
    """The lower-case letters, digits and hyphens of a name, where nothing else is allowed."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def template(name: str, room: str = "grader.release", **fields: str) -> str:
    """The text of a template, with these fields filled in."""
    return Template(as_it_is(name, room)).substitute(fields)


def as_it_is(name: str, room: str = "grader.release") -> str:
    """The unfilled text of a template; `name` is its path below ``templates/`` in the room."""
    return (resources.files(room) / "templates" / name).read_text("utf-8")


def table_of_units(course: Course, file: str) -> str:
    """A table row for each unit, and a note if not all exercises count.

    `file` is the pattern of a unit's file name.
    """
    rows = [
        f"| {number} | `{file.format(unit.name)}` | {unit.title} | {_exercises(course, unit)} |"
        for number, unit in enumerate(course.units, start=1)
    ]
    return "\n".join(rows) + (NOT_ASKED if len(course.asked) < len(course.exercises) else "")


def _exercises(course: Course, unit: Unit) -> str:
    """The number of a unit's exercises, with names if an assignment has only some of them."""
    asked, of = course.asked_in(unit.name), len(unit.exercise)
    names = ", ".join(f"`{name}`" for name in asked)
    return f"{of}" if len(asked) == of else f"{len(asked)} of {of}: {names}"


def licence() -> str:
    """The engine's licence."""
    from importlib import metadata  # slow to import, and every command loads this module

    text = metadata.distribution("attention-grader").read_text("licenses/LICENSE")
    if text is None:
        raise HostFault("this install of attention-grader came without its LICENSE")
    return text


def write_text(path: Path, text: str) -> None:
    """Write a text file, and make its folder if the folder is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())  # as bytes, so that lines end alike on every system
