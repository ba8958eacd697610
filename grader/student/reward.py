"""The reward of a solved exercise: the student's progress, texts to read, and a demonstration.

All screens show the same `Reward`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from grader.course.afterwards import afterwards
from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.rows import counted
from grader.student.standing import Standing

SOLVE_FIRST = "solve {} first: the text to read after it would give too much away"
NOTHING_TO_READ = "this course has no text to read after {}"
NO_TEXT = "The text to read after it cannot be shown"
LOOK = "This unit is complete. To see it at work: {}"


@dataclass(frozen=True)
class Reward:
    """The reward of a solved exercise, for a screen to show."""

    progress: str  # a line with the solved exercises and points
    sections: tuple[tuple[str, str], ...]  # heading and paragraph of each text
    look: str  # the command for the unit's look, if the whole unit is solved


def reward(standing: Standing, name: str) -> Reward:
    """The reward of this exercise, which must be solved."""
    course, unit = standing.course, standing.course.unit_of[name]
    solved = {one for one in course.asked if standing.is_solved(one)}
    complete = solved >= {*course.asked_in(unit)}
    return Reward(
        _progress_line(course, unit, solved),
        _sections(course, name),
        f"grader look {unit}" if complete and course.look_file(unit).is_file() else "",
    )


def after(standing: Standing, name: str) -> Reward:
    """The reward of an exercise that is solved, or was solved at an earlier time.

    Raises `CallError` if the exercise was never solved, or if its text is missing or not valid.
    """
    course = standing.course
    course.one(name, "name one of its exercises")
    if name not in standing.progress.solved:
        raise CallError(SOLVE_FIRST.format(name))
    if afterwards(course, name) is None:
        raise CallError(NOTHING_TO_READ.format(name))
    return reward(standing, name)


def _sections(course: Course, name: str) -> tuple[tuple[str, str], ...]:
    """The texts to read, or an error message in their place, so that the rest is still shown."""
    try:
        texts = afterwards(course, name)
    except CallError as error:
        return ((NO_TEXT, str(error)),)
    return texts.sections if texts is not None else ()


def _progress_line(course: Course, unit: str, solved: Collection[str]) -> str:
    """The solved exercises and points of a unit, and the solved points of the course."""
    of_unit = _points(course, course.asked_in(unit), solved)
    of_all = _points(course, course.asked, solved)
    count = sum(name in solved for name in course.asked_in(unit))
    exercises = f"{count} of {counted(len(course.asked_in(unit)), 'exercise')}"
    return f"{unit}: {exercises}, {of_unit} points; the whole course: {of_all} points"


def _points(course: Course, names: Sequence[str], solved: Collection[str]) -> str:
    got = course.most(name for name in names if name in solved)
    return f"{got:g} of {course.most(names):g}"


def in_lines(found: Reward) -> Iterator[Text]:
    """A reward as styled lines for a terminal."""
    yield Text(found.progress, "green")
    for heading, paragraph in found.sections:
        yield Text(f"\n{heading}", "bold")
        yield Text(paragraph)
    if found.look:
        yield Text(f"\n{LOOK.format(found.look)}", "bold")
