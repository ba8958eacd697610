"""The texts of a bundle, and where a course's own words go into them."""

from __future__ import annotations

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

Where exercises are named, the others in that file are not asked of you, and do not count."""

FOR_JAILS = "# for jails\n"  # ends the lines of what only grading needs


def readme(course: Course) -> str:
    """The README for students; a course that has a walkthrough puts its own first steps in.

    Those are a whole course's: a part of it may begin elsewhere.
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
    return template("README.md", **fields, walkthrough=steps.strip())


def agents(course: Course) -> str:
    """What AI assistants are asked to do, and not to do."""
    return template("AGENTS.md", title=course.file.title)


def pyproject(*, jails: bool = False) -> str:
    """What a bundle installs: the engine, and what jails are made of only where marks are given."""
    lines = template("pyproject.toml").splitlines(keepends=True)
    return "".join(line for line in lines if jails or not line.endswith(FOR_JAILS))


def full_title(course: Course) -> str:
    """The course's title, and the assignment's with the day that it is due."""
    assigned = course.assigned
    due = (
        f", due {assigned.due:%A, %d %B %Y, %H:%M %Z}".rstrip() if assigned and assigned.due else ""
    )
    return course.titled(assigned) + due


def template(name: str, room: str = "grader.release", **fields: str) -> str:
    """A text of ours, with these fields in their places."""
    return Template(as_it_is(name, room)).substitute(fields)


def as_it_is(name: str, room: str = "grader.release") -> str:
    """A text of ours; its name is a path below ``templates/`` of a room."""
    return (resources.files(room) / "templates" / name).read_text("utf-8")


def table_of_units(course: Course, file: str) -> str:
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


def licence() -> str:
    """The text under which the engine is given away."""
    from importlib import metadata  # slow to load, and every command loads this module

    text = metadata.distribution("attention-grader").read_text("licenses/LICENSE")
    if text is None:
        raise HostFault("this install of attention-grader came without its LICENSE")
    return text


def write_text(path: Path, text: str) -> None:
    """Write a file, in a folder of its own if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())  # the same line ends everywhere
