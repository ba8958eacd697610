"""What there is once an exercise is solved: how far the student is, and what to read and look at.

Each screen renders the same `Reward`.
"""

from __future__ import annotations

import ast
import os
import runpy
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

from rich.text import Text

from grader.course.afterwards import afterwards
from grader.course.course import NAMED, Course
from grader.records.faults import CallError
from grader.records.rows import counted
from grader.student.progress import Progress
from grader.wire.source import CODE_PREFIX

SOLVE_FIRST = "solve {} first: what there is to read about it would give too much away"
ENDED = "{} ended at {}: {}: {} (grader check says more of that exercise)"
NOTHING_TO_READ = "this course has no text to read after {}"
LOOK = "This unit is complete. To see it at work: {}"
NOTHING_TO_SEE = "there is nothing to look at for {}; the units that have something: {}"


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


def in_lines(found: Reward) -> Iterator[Text]:
    """A reward as a terminal shows it."""
    yield Text(found.progress, "green")
    for heading, paragraph in found.sections:
        yield Text(f"\n{heading}", "bold")
        yield Text(paragraph)
    if found.look:
        yield Text(f"\n{LOOK.format(found.look)}", "bold")


def after(course: Course, name: str, progress: Progress) -> Reward:
    """What there is to read after an exercise; raises `CallError` unless it was solved once."""
    course.one(name, "name one of its exercises")
    if name not in progress.solved:
        raise CallError(SOLVE_FIRST.format(name))
    found = reward(course, name, progress)
    if not found.sections:
        raise CallError(NOTHING_TO_READ.format(name))
    return found


# --- something to look at ------------------------------------------------------------------------
#
# A unit's script runs in this process, with the student's own answers: see `grader.mine`.


def title_of_look(course: Course, name: str) -> str:
    """What the script of a unit, or of an exercise's unit, shows; raises `CallError` if none."""
    unit = _unit(course, name)
    return ast.get_docstring(ast.parse(course.look_file(unit).read_text("utf-8"))) or unit


def run_look(course: Course, name: str) -> None:
    """Run the script of a unit; raises as `title_of_look`, and as `run_script`."""
    run_script(course, course.look_file(_unit(course, name)), "the look")


def run_script(course: Course, path: Path, called: str) -> dict[str, Any]:
    """Run a course's script on the student's answers, and return its names.

    Raises `CallError` for a missing answer, and for what the script, or an answer, raises.
    """
    before = os.environ.get(NAMED)
    os.environ[NAMED] = str(course.folder)  # of these answers, wherever this is typed
    try:
        with ended_by_answers(called):
            return runpy.run_path(str(path))
    finally:
        del os.environ[NAMED]
        if before is not None:
            os.environ[NAMED] = before


@contextmanager
def ended_by_answers(called: str) -> Iterator[None]:
    """What student code raises inside becomes a `CallError` with the line."""
    try:
        yield
    except CallError:
        raise
    except Exception as error:
        where, kind = _where(error), type(error).__name__
        raise CallError(ENDED.format(called, where, kind, error)) from None


def _where(error: Exception) -> str:
    """The line of the student's that an error came from, or else that of the script."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [(file, line) for file, line in frames if file.startswith(CODE_PREFIX)]
    file, line = own[-1] if own else frames[-1]
    return f"{Path(file).name} line {line}"


def _unit(course: Course, name: str) -> str:
    course.select([name])  # says what is near, if nothing has this name
    unit = course.unit_of.get(name, name)
    if not course.look_file(unit).is_file():
        there = [u.name for u in course.units if course.look_file(u.name).is_file()]
        raise CallError(NOTHING_TO_SEE.format(unit, ", ".join(there) or "none"))
    return unit
