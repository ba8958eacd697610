"""What there is once an exercise is solved: how far the student is, and what to read and look at.

Each screen renders the same `Reward`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from grader.course.afterwards import afterwards
from grader.course.course import Course
from grader.records.rows import counted
from grader.student.progress import Progress

NO_TEXT = "this course has nothing to read after {}"
SOLVE_FIRST = "{} is not solved yet: what there is to say about it would give too much away"


@dataclass(frozen=True)
class Reward:
    """What a solved exercise brings."""

    progress: str  # of its unit and of the course, in exercises and points; one line
    sections: tuple[tuple[str, str], ...]  # heading and paragraph; none if the course has none
    look: str  # the command that shows the whole unit at work, once all of it is solved; or empty


def reward(course: Course, name: str, progress: Progress) -> Reward:
    """What this exercise brings to someone who has solved it; raises as `afterwards` does."""
    unit = course.unit_of[name]
    solved = progress.solved - progress.failing | {name}
    texts = afterwards(course, name)
    complete = solved >= {*course.asked_in(unit)}
    return Reward(
        progress_line(course, unit, solved),
        texts.sections if texts is not None else (),
        f"grader look {unit}" if complete and course.look_file(unit).is_file() else "",
    )


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
