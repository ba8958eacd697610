"""A step of a GitHub workflow: `grader host classroom UNIT`.

Runs the public checks of a unit on the repository it stands in, prints what `grader check` would,
and leaves the results as the step's output for the reporter of GitHub Classroom.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from grader.course.course import load_course
from grader.course.location import find_course
from grader.export import classroom
from grader.feedback import terminal
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult
from grader.student.checking import open_checker


def check_unit(unit: str) -> None:
    """Write ``result=…`` to the file that GitHub reads a step's outputs from.

    Raises `CallError` outside of a workflow, and for a unit that is not in the course.
    """
    output = os.environ.get("GITHUB_OUTPUT")
    if not output:
        raise CallError(f"this is a step of a workflow on GitHub; you want: grader check {unit}")
    course = load_course(find_course(None, student=True))
    course.select([unit])
    try:
        with open_checker(course, course.asked_in(unit)) as checker:
            checked = checker.check()
        results = classroom.results(course, unit, checked)
        _print(checked)
    except (CallError, HostFault) as error:
        results = classroom.unknown(course, unit, str(error))
        print(f"grader: {error}", file=sys.stderr)
    with Path(output).open("a", encoding="utf-8") as file:
        file.write(f"result={results.encoded()}\n")


def _print(checked: Sequence[ExerciseResult]) -> None:
    console = Console(highlight=False)
    with _no_commands():
        for exercise in checked:
            terminal.verdict(console, exercise, detail=not exercise.solved)


@contextmanager
def _no_commands() -> Iterator[None]:
    """Meanwhile, a line such as ``::error::``, which an answer may print, is no command."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    yield
    print(f"::{token}::", flush=True)
