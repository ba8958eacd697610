"""The scripts of a course, which run in this process: looks, experiments and plays.

A look demonstrates a solved unit with the student's own answers. An experiment shows why a rule
holds. It uses the student's answer to an exercise once that is solved, and until then a function of
torch or recorded numbers. A play trains a model: see `grader.playing`. All scripts import answers
from `grader.mine`.
"""

from __future__ import annotations

import ast
import os
import runpy
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any

from rich.text import Text

from grader.course.course import NAMED, Course, answers_in
from grader.records.faults import CallError, did_you_mean
from grader.student.answers import digests_of
from grader.wire.source import CODE_PREFIX

ENDED = "{} ended at {}: {}: {} (if that line is yours: grader check)"
UNWRITTEN = "{} is not written yet in any saved file or notebook: write it first"
ALL_UNWRITTEN = "not written yet in any saved file or notebook: {}; write these first"
NOTHING_TO_SEE = "there is nothing to look at for {}; choose from these units: {}"
NO_EXPERIMENT = "there is no experiment {}{}; all of them: grader try"
WIDTH = 80
LOOK_COLUMN, EXPERIMENT_COLUMN = 27, 23  # in the lists: where the titles begin
SEE_WHY = "See why: {}"
SCRIPT = "__course__"  # the name under which a course's script runs


def said_of(path: Path) -> str:
    """The docstring of a script, which describes what the script shows."""
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or path.stem


def _title(path: Path) -> str:
    return said_of(path).splitlines()[0]


def _filled(path: Path) -> str:
    """The docstring of a script, in lines of at most `WIDTH` characters."""
    return "\n\n".join(textwrap.fill(part, WIDTH) for part in said_of(path).split("\n\n"))


# --- looks ---------------------------------------------------------------------------------------


def title_of_look(course: Course, name: str) -> str:
    """The description of a unit's look; `name` is a unit, or an exercise of the unit.

    Raises `CallError` if the unit has no look, or if an answer that the look uses is unwritten.
    """
    path = course.look_file(_unit(course, name))
    used, written = course.exercises.keys() & answers_in(path), digests_of(course)
    if missing := [one for one in course.exercises if one in used and one not in written]:
        raise unwritten(missing)
    return _filled(path)


def unwritten(names: Sequence[str]) -> CallError:
    """The error for a script that uses these answers, which no file and no notebook has."""
    if len(names) == 1:
        return CallError(UNWRITTEN.format(names[0]))
    return CallError(ALL_UNWRITTEN.format(", ".join(names)))


def listed_looks(course: Course) -> Iterator[Text]:
    """The units that have a look, each with its title."""
    for unit in course.units:
        if course.look_file(unit.name).is_file():
            yield Text(f"  {unit.name:24} {_title(course.look_file(unit.name))}")


def run_look(course: Course, name: str) -> None:
    """Run the look of a unit; raises `CallError` as `title_of_look` and `run_script` do."""
    run_script(course, course.look_file(_unit(course, name)), "the look")


def _unit(course: Course, name: str) -> str:
    course.select([name])  # raises an error with similar names, if the name is unknown
    unit = course.unit_of.get(name, name)
    if not course.look_file(unit).is_file():
        there = [u.name for u in course.units if course.look_file(u.name).is_file()]
        raise CallError(NOTHING_TO_SEE.format(unit, ", ".join(there) or "none"))
    return unit


# --- experiments ---------------------------------------------------------------------------------


def experiments_of(course: Course, name: str) -> tuple[str, ...]:
    """The experiment of this name, or all experiments of the exercise of this name.

    Raises `CallError` if there are none.
    """
    there = {one for names in course.experiments.values() for one in names}
    if name in there:
        return (name,)
    exercise = course.exercises.get(name)
    found = [one for one in exercise.experiments if one in there] if exercise is not None else []
    if not found:
        raise CallError(NO_EXPERIMENT.format(name, did_you_mean(name, there, "")))
    return tuple(found)


def run_experiment(course: Course, name: str) -> None:
    """Print an experiment's docstring, and run its script; raises `CallError` if that fails."""
    from grader.unsandboxed.in_process import undisturbed  # this import loads torch

    print(f"{_filled(course.experiment_file(name))}\n")
    with undisturbed():
        run_script(course, course.experiment_file(name), "the experiment")


def see_why(course: Course, name: str) -> str:
    """A line that names the commands for an exercise's experiments; empty if there are none."""
    there = {one for names in course.experiments.values() for one in names}
    commands = [f"grader try {one}" for one in course.exercises[name].experiments if one in there]
    return SEE_WHY.format(", ".join(commands)) if commands else ""


def listed_experiments(course: Course) -> Iterator[Text]:
    """All experiments by unit, each with its title."""
    titles = {unit.name: unit.title for unit in course.units}
    for unit, names in course.experiments.items():
        if names:
            yield Text()
            yield Text.assemble((unit, "bold"), f": {titles[unit]}")
        for name in names:
            yield Text(f"  {name:20} {_title(course.experiment_file(name))}")


# --- running -------------------------------------------------------------------------------------


def run_script(course: Course, path: Path, called: str) -> dict[str, Any]:
    """Run a course's script, which imports the student's answers, and return its variables.

    Raises `CallError` if an answer is missing, and for any exception in the script or an answer.
    """
    before = os.environ.get(NAMED)
    os.environ[NAMED] = str(course.folder)  # for `grader.mine`, in any working directory
    try:
        with ended_by_answers(called):
            return runpy.run_path(str(path), run_name=SCRIPT)
    finally:
        del os.environ[NAMED]
        if before is not None:
            os.environ[NAMED] = before


@contextmanager
def ended_by_answers(called: str) -> Iterator[None]:
    """Turn an exception in the `with` block into a `CallError` that names the student's line."""
    try:
        yield
    except CallError:
        raise
    except Exception as error:
        where, kind = _where(error), type(error).__name__
        raise CallError(ENDED.format(called, where, kind, error)) from None


def _where(error: Exception) -> str:
    """The line of student code that raised an error, or else the line of the script."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [(file, line) for file, line in frames if file.startswith(CODE_PREFIX)]
    file, line = own[-1] if own else frames[-1]
    return f"{Path(file).name} line {line}"
