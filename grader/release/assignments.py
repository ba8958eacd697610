"""The part of a course that an assignment hands out: whole units, since a unit is one file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.course import Assignment, Course, decode_course
from grader.faults import CallError


def part_of(course: Course, assignment: Assignment) -> tuple[Course, str]:
    """The course as if it had nothing but the units of an assignment; and its ``course.toml``.

    What an exercise requires of other units is left out: they are not there to be asked about.
    """
    try:
        import tomlkit
    except ModuleNotFoundError:
        raise CallError(
            "a part of a course needs a library: pip install 'attention-grader[instructor]'"
        ) from None
    exercises = course.select(assignment.exercises)
    units = {course.unit_of[name] for name in exercises}
    document: Any = tomlkit.parse((course.folder / "course.toml").read_text("utf-8"))
    kept = [unit for unit in document["unit"] if unit["name"] in units]
    names = {exercise["name"] for unit in kept for exercise in unit["exercise"]}
    for unit in kept:
        for exercise in unit["exercise"]:
            if "requires" in exercise:
                exercise["requires"] = [name for name in exercise["requires"] if name in names]
    _keep(document, "unit", kept)
    _keep(document, "assignment", [])
    text = tomlkit.dumps(document)
    file = decode_course(course.folder / "course.toml", text)
    return replace(course, file=file, assigned=assignment), text


def _keep(document: Any, key: str, kept: list[Any]) -> None:
    """Leave only these tables under a key."""
    for place in reversed(range(len(document.get(key, [])))):
        if not any(document[key][place] is one for one in kept):
            del document[key][place]
