"""A course with its solutions in another system's folder: written there, and found again.

A private course that is laid over another one stays so: it may add hidden tests to the other's.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course, load_course
from grader.release.student import copy_exercises, copy_source, write_text

PRIVATE = "private"


def carry(course: Course, to: Path) -> None:
    """Copy all that grades a course into the new folder `to`."""
    copy_exercises(course, to / "exercises")
    copy_source(course.solutions, to / "solutions")
    if course.private is not None:
        copy_source(course.private / "solutions", to / PRIVATE / "solutions")
        write_text(to / PRIVATE / "course.toml", 'overlay = "../exercises"\n')


def carried_seed(course: Course) -> str:
    """Where the hidden seed lies in a folder that a course was carried into."""
    return f"{PRIVATE}/solutions/seed" if course.private is not None else "solutions/seed"


def load_carried(folder: Path) -> Course:
    """The course that was carried into this folder."""
    private = folder / PRIVATE
    return load_course(private if private.is_dir() else folder / "exercises")
