"""What a shell offers when a user presses Tab: exercises and assignments.

`grader --install-completion` sets it up. Whatever goes wrong, nothing is offered: an error message
would tear up the line that the user types.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import typer

from grader.course.course import Course, find_course, load_course


def exercises(ctx: typer.Context, incomplete: str) -> list[str]:
    """The units and exercises whose names begin with the typed text."""
    found: list[str] = []
    with suppress(Exception):
        course = course_of(ctx)
        found += [unit.name for unit in course.units]
        found += course.exercises
    return beginning(dict.fromkeys(found), incomplete)


def assignments(ctx: typer.Context, incomplete: str) -> list[str]:
    """The assignments whose names begin with the typed text."""
    found: list[str] = []
    with suppress(Exception):
        found += [assignment.name for assignment in course_of(ctx).file.assignment]
    return beginning(found, incomplete)


def course_of(ctx: typer.Context) -> Course:
    """The course of the line that the user types."""
    return load_course(find_course(ctx.params.get("course"), student=True))


def beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin with the typed text."""
    return [name for name in names if name.startswith(incomplete)]
