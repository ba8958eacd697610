"""Writes courses as folders: the kit's own course, an overlay, a part, a copy in a bundle."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import msgspec

import grader
from grader.course.course import Course, load_course
from grader.course.file import Assignment, Unit
from grader.records.bundles import bundled
from grader.records.faults import CallError
from grader.records.files import drafted, files_in, require_empty, write_secret
from grader.release.engine import copy_source
from grader.release.texts import write_text

CARRIED = Path(grader.__file__).parent / "bundle"


def write_course(to: Path) -> list[Path]:
    """Copy the course in this install to a new or empty folder; return the files of the copy."""
    if not (CARRIED / "exercises" / "course.toml").is_file():
        raise CallError(
            "this install contains no course: make a bundle with `grader release student --to DIR`"
        )
    require_empty(to)
    names = [path for path in files_in(CARRIED) if "__pycache__" not in path.parts]
    with bundled(to) as draft:
        for name in names:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CARRIED / name, draft / name)
    return [to / name for name in names]


# --- overlay -------------------------------------------------------------------------------------
#
# An overlay is a private course: its solutions are laid over those of a public course.


def write_overlay(course: Course, to: Path) -> None:
    """Start an overlay of `course` in `to`: write a seed, a README and a ``course.toml``.

    Also makes empty folders for hidden tests and mistakes. The path of the public course is
    relative if both may move together: if `to` is in the clone of the public course, or next to it.
    Raises `CallError` if `to` is a course, is not empty, or is inside the course's folder, which
    students get, or if `course` is private itself.
    """
    if (to / "course.toml").is_file():
        raise CallError(
            f"{to} is a course already: use it, as with --course {to}, or name another folder"
        )
    if course.private is not None:
        raise CallError(
            f"{course.private} is a private course, too: name the public course, {course.folder}"
        )
    require_empty(to)
    if to.resolve().is_relative_to(course.folder):
        raise CallError(f"{to} is inside {course.folder}, which students get: name another folder")
    public, place = course.folder, to.resolve()
    if place.parent in public.parents[:2]:
        public = Path(os.path.relpath(public, place))
    fields = {"course": public.as_posix(), "title": course.file.title}
    with drafted(to) as draft:
        draft.chmod(0o700)
        (draft / "solutions" / "graders").mkdir(parents=True)
        (draft / "solutions" / "mistakes").mkdir()
        write_secret(draft / "solutions" / "seed", secrets.token_hex(16) + "\n")
        for name in ("course.toml", "README.md"):
            text = (resources.files("grader.release") / "templates" / "overlay" / name).read_text(
                "utf-8"
            )
            (draft / name).write_bytes(Template(text).substitute(fields).encode())


# --- assignments ---------------------------------------------------------------------------------
#
# These functions find the part of a course that belongs to an assignment, and write the
# ``course.toml`` of any course.


def part_of(course: Course, name: str) -> Course:
    """The part of a course with the units that an assignment needs, and no others.

    Exercises of the part no longer require exercises of the units that are left out.
    """
    assignment = course.assignment(name)
    wanted = {course.unit_of[name] for name in course.select(assignment.exercises)}
    units = [unit for unit in course.units if unit.name in wanted]
    known = {exercise.name for unit in units for exercise in unit.exercise}
    file = msgspec.structs.replace(
        course.file,
        assigned=name,
        assignment=(assignment,),
        unit=tuple(_within(unit, known) for unit in units),
    )
    return replace(course, file=file)


def _within(unit: Unit, known: set[str]) -> Unit:
    exercises = [
        msgspec.structs.replace(e, requires=tuple(name for name in e.requires if name in known))
        for e in unit.exercise
    ]
    return msgspec.structs.replace(unit, exercise=tuple(exercises))


def course_toml(course: Course) -> str:
    """The text of a ``course.toml`` for `course`, comments included.

    For a whole public course, this is the text of the course's own file. For a part of a course and
    for a private course, the text of that file is edited.
    """
    text = (course.folder / "course.toml").read_text("utf-8")
    text = re.sub(r"^#:schema .*\n", "", text)  # students get no schema
    if course.private is None and course.assigned is None:
        return text
    try:
        import tomlkit
    except ModuleNotFoundError:
        raise CallError(
            "a part of a course needs a library: pip install 'attention-grader[instructor]'"
        ) from None
    document: Any = tomlkit.parse(text)
    file = course.file
    if file.assigned:
        document["assigned"] = file.assigned
    for key in ("limits", "feedback"):
        document[key] = msgspec.structs.asdict(getattr(file, key))
    requires = {name: list(exercise.requires) for name, exercise in course.exercises.items()}
    names = {unit.name for unit in course.units}
    units = document["unit"]
    for place in reversed(range(len(units))):
        if units[place]["name"] not in names:
            del units[place]
    for exercise in (exercise for unit in units for exercise in unit["exercise"]):
        if "requires" in exercise:
            exercise["requires"] = requires[exercise["name"]]
    document.pop("assignment", None)
    document["assignment"] = [_table(assignment) for assignment in file.assignment]
    return tomlkit.dumps(document)


def _table(assignment: Assignment) -> dict[str, Any]:
    """An assignment as a table of TOML, without empty fields."""
    fields = msgspec.structs.asdict(assignment)
    return {key: value for key, value in fields.items() if value not in (None, "")}


def copy_exercises(course: Course, to: Path) -> None:
    """Copy the public files of a course: course.toml, stubs, checks, afterwards, experiments."""
    (to / "checks").mkdir(parents=True)
    write_text(to / "course.toml", course_toml(course))
    for path in (course.stub_file(unit.name) for unit in course.units):
        shutil.copyfile(path, to / path.name)
    for path in course.check_files():
        shutil.copyfile(path, to / "checks" / path.name)
    experiments = dict.fromkeys(one for names in course.experiments.values() for one in names)
    for path in (*course.after_files(), *map(course.experiment_file, experiments)):
        copy = to / path.relative_to(course.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


# --- carrying ------------------------------------------------------------------------------------
#
# These functions copy a course with its solutions into an autograder's bundle, and open the copy
# there. A private course is copied to a folder of its own, since the public course's hidden tests
# may be used, too.


PRIVATE = "private"


def carry(course: Course, to: Path) -> None:
    """Copy all files of a course that grading needs into the new folder `to`."""
    copy_exercises(course, to / "exercises")
    copy_source(course.solutions, to / "solutions")
    if course.private is not None:
        copy_source(course.private / "solutions", to / PRIVATE / "solutions")
        write_text(to / PRIVATE / "course.toml", 'overlay = "../exercises"\n')


def carried_seed(course: Course) -> str:
    """The path of the hidden seed below a folder written by `carry`."""
    return f"{PRIVATE}/solutions/seed" if course.private is not None else "solutions/seed"


def load_carried(folder: Path) -> Course:
    """The course in a folder written by `carry`."""
    private = folder / PRIVATE
    return load_course(private if private.is_dir() else folder / "exercises")
