"""What there is once an exercise is solved: how far the student is, and what to read and look at.

Each screen renders the same `Reward`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from grader.course.afterwards import afterwards
from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.rows import counted
from grader.student.progress import Progress

SOLVE_FIRST = "solve {} first: what there is to read about it would give too much away"
NOTHING_TO_READ = "this course has no text to read after {}"
NO_TEXT = "The text to read after it cannot be shown"
LOOK = "This unit is complete. To see it at work: {}"


@dataclass(frozen=True)
class Reward:
    """What a solved exercise brings."""

    progress: str  # of its unit and of the course, in exercises and points; one line
    sections: tuple[tuple[str, str], ...]  # heading and paragraph; none if the course has none
    look: str  # the command that shows the whole unit at work, once all of it is solved; or empty


def reward(course: Course, name: str, progress: Progress) -> Reward:
    """What this exercise brings to someone who has solved it."""
    unit = course.unit_of[name]
    solved = progress.solved - progress.failing | {name}
    complete = solved >= {*course.asked_in(unit)}
    return Reward(
        progress_line(course, unit, solved),
        _sections(course, name),
        f"grader look {unit}" if complete and course.look_file(unit).is_file() else "",
    )


def _sections(course: Course, name: str) -> tuple[tuple[str, str], ...]:
    """The texts; an author's slip takes nothing else from a student."""
    try:
        texts = afterwards(course, name)
    except CallError as error:
        return ((NO_TEXT, str(error)),)
    return texts.sections if texts is not None else ()


def progress_line(course: Course, unit: str, solved: Collection[str]) -> str:
    """How much of a unit and of the course is solved: exercises and points that are asked."""
    of_unit = _points(course, course.asked_in(unit), solved)
    of_all = _points(course, course.asked, solved)
    count = sum(name in solved for name in course.asked_in(unit))
    exercises = f"{count} of {counted(len(course.asked_in(unit)), 'exercise')}"
    return f"{unit}: {exercises}, {of_unit} points; the whole course: {of_all} points"


def _points(course: Course, names: Sequence[str], solved: Collection[str]) -> str:
    got = course.most(name for name in names if name in solved)
    return f"{got:g} of {course.most(names):g}"


def in_lines(found: Reward) -> Iterator[Text]:
    """A reward as a terminal shows it."""
    yield Text(found.progress, "green")
    for heading, paragraph in found.sections:
        yield Text(f"\n{heading}", "bold")
        yield Text(paragraph)
    if found.look:
        yield Text(f"\n{LOOK.format(found.look)}", "bold")


def after(course: Course, name: str, progress: Progress) -> Reward:
    """What there is to read after an exercise; raises `CallError` unless it was solved once.

    So does a text that is there and not right.
    """
    course.one(name, "name one of its exercises")
    if name not in progress.solved:
        raise CallError(SOLVE_FIRST.format(name))
    if afterwards(course, name) is None:
        raise CallError(NOTHING_TO_READ.format(name))
    return reward(course, name, progress)
