"""GitHub: checks one unit, as a step of a workflow that runs at every push.

The step's results are in the format of GitHub Classroom's graders, version 3. That service was shut
down in August 2026, but its reporter still works. The reporter is the last step of the workflow. It
adds up the scores, and prints each test's name. It may also print the other fields.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.console import Console

from grader.course.course import Course, find_course, load_course
from grader.feedback import terminal
from grader.feedback.verdict import Finding, verdict_of
from grader.lms.system import Bundle, Host, System
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult, TestStatus, counted_elsewhere

# --- the public checks of a unit, in the reporter's format ---------------------------------------

Status = Literal["pass", "fail", "error"]

# All results of a unit must fit into one environment variable of at most 128 KiB.
MAX_MESSAGE = 300  # characters

NOT_TRIED = "not tried, because an earlier check does not pass"


class UnitTest(msgspec.Struct, frozen=True):
    """The result of one check; `line_no` and `duration` are required by the format, but unused."""

    name: str
    status: Status
    message: str | None
    score: float
    test_code: str  # the command that repeats the check on the student's computer
    task_id: int  # the exercise's number among the unit's assigned exercises
    filename: str
    line_no: int = 0
    duration: float | None = None


class UnitResults(msgspec.Struct, frozen=True):
    """The results of one step of the workflow, which checks one unit."""

    status: Status
    max_score: float
    tests: tuple[UnitTest, ...]
    version: int = 3

    def encoded(self) -> str:
        """The results in the form that the reporter reads: JSON in base64."""
        return base64.b64encode(msgspec.json.encode(self)).decode()


def unit_results(course: Course, unit: str, exercises: Sequence[ExerciseResult]) -> UnitResults:
    """The results of a unit's checks, in the reporter's format."""
    exercises = counted_elsewhere(exercises, course.worth, course.shares)
    faulty = any(exercise.faulty for exercise in exercises)
    solved = all(exercise.solved for exercise in exercises)
    return UnitResults(
        "error" if faulty else "pass" if solved else "fail",
        round(sum(exercise.max for exercise in exercises), 3),
        tuple(
            UnitTest(
                f"{exercise.name}: {finding.title}",
                _status(finding.status),
                _message(finding),
                finding.points,
                f"grader check {exercise.name}",
                place,
                course.stub_file(unit).name,
            )
            for place, exercise in enumerate(exercises, 1)
            for finding in verdict_of(exercise).worth_reading
        ),
    )


def _unknown(course: Course, unit: str, why: str) -> UnitResults:
    """The results of a unit that could not be checked."""
    test = UnitTest(
        unit, "error", _shown(why), 0, f"grader check {unit}", 0, course.stub_file(unit).name
    )
    most = round(sum(course.shares[name] for name in course.asked_in(unit)), 3)
    return UnitResults("error", most, (test,))


def _status(status: TestStatus) -> Status:
    match status:
        case "passed":
            return "pass"
        case "failed" | "missing" | "skipped":
            return "fail"
        case _:
            return "error"


def _message(finding: Finding) -> str | None:
    said = finding.message or (finding.status == "skipped" and NOT_TRIED)
    return _shown("\n".join(part for part in (*finding.named, said) if part)) or None


def _shown(text: str) -> str:
    return terminal.safe(text)[:MAX_MESSAGE]


# --- the step of a workflow ----------------------------------------------------------------------


def check_unit(unit: str) -> None:
    """Check a unit of the repository in the working directory, as `grader check` does.

    Writes ``result=…`` to the file from which GitHub reads a step's outputs. Raises `CallError`
    outside of a workflow, and for a unit that is not in the course.
    """
    from grader.student.checking import open_checker

    output = os.environ.get("GITHUB_OUTPUT")
    if not output:
        raise CallError(f"this command works only in a workflow; you want: grader check {unit}")
    course = load_course(find_course(None, student=True))
    course.select([unit])
    try:
        with open_checker(course, course.asked_in(unit)) as checker:
            checked = checker.check()
        results = unit_results(course, unit, checked)
        _print(checked)
    except (CallError, HostFault) as error:
        results = _unknown(course, unit, str(error))
        print(f"grader: {error}", file=sys.stderr)
    with Path(output).open("a", encoding="utf-8") as file:
        file.write(f"result={results.encoded()}\n")


def _print(checked: Sequence[ExerciseResult]) -> None:
    console = Console(highlight=False)
    with _no_commands():
        for exercise in checked:
            terminal.show_verdict(console, verdict_of(exercise), detail=not exercise.solved)


@contextmanager
def _no_commands() -> Iterator[None]:
    """Stop GitHub from obeying lines such as ``::error::``, which an answer may print."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)


# --- the system ----------------------------------------------------------------------------------
#
# A student's repository holds this module, but not `classroom_repository`, which writes
# repositories. Therefore `classroom_repository` is imported only when a repository is written.


def _write(*given: Any, **options: Any) -> list[Path]:
    from grader.lms.classroom_repository import release_classroom

    return release_classroom(*given, **options)


def _next_steps(to: Path, files: int) -> Sequence[str]:
    from grader.lms.classroom_repository import next_steps

    return next_steps(to, files)


_HOST_HELP = """\
Check one unit in a workflow on GitHub.

The results say whether the unit is right; the exit code does not.
"""
_RELEASE_HELP = """\
Write a GitHub repository whose workflow checks every push: the student bundle, and the workflow.

Anyone who can push can change the checks, so use their results for learning only. For marks, run
`grader grade` on clones of the students' repositories.
"""

SYSTEM = System(
    "classroom",
    "GitHub",
    host=Host(
        check_unit,
        argument="UNIT",
        about="A unit of the course.",
        example="softmax",
        help=_HOST_HELP,
    ),
    bundle=Bundle(
        _write,
        _next_steps,
        example="attention-template/",
        help=_RELEASE_HELP,
        recorded=True,
    ),
)
