"""`grader doctor`: versions, the course, and the isolation layers of a jail on this machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from grader.cli.app import AUTHORS, CourseOption, JsonOption, app
from grader.course.course import Course, find_course, load_course
from grader.records.faults import CallError, HostFault
from grader.records.rows import counted
from grader.records.torches import TRIED, is_untried

PACKAGES = (
    "torch", "numpy", "pytest", "msgspec", "typer", "rich", "textual", "watchfiles",
)  # fmt: skip
GRADING = ("jaxtyping", "sandlock")  # libraries that students do not need
UNTRIED = f": untried, so marks may differ; this kit was tried with {', '.join(TRIED)}"
State = Literal["well", "bad", "absent"]  # absent: missing, but not needed here


@dataclass(frozen=True)
class Condition:
    """A line of the report: the state of one part of this machine or of the course, and a text."""

    topic: str
    name: str
    state: State
    text: str


def examine(given: Path | None) -> list[Condition]:
    """Examine versions, course and isolation; a text about a missing part says how to get it."""
    try:
        course: Course | CallError = load_course(find_course(given, student=True))
    except CallError as error:
        course = error
    student = isinstance(course, Course) and course.recorded.is_dir()
    return [*_versions(student), *_course(course), *_isolation(course, student)]


def _state(well: bool, needed: bool = True) -> State:
    return "well" if well else "bad" if needed else "absent"


def _versions(student: bool) -> list[Condition]:
    python, linux = sys.version_info[:2], sys.platform == "linux"
    findings = [
        Condition(
            "versions",
            "python",
            _state(python >= (3, 11)),
            platform.python_version() + ("" if python >= (3, 11) else ": 3.11 or newer is needed"),
        ),
        Condition(
            "versions",
            "system",
            _state(linux, not student),
            platform.platform() + ("" if linux else ": jails need Linux, and grading needs jails"),
        ),
    ]
    for name in (*PACKAGES, *GRADING):
        needed = name in PACKAGES or not student
        try:
            version = metadata.version(name)
            untried = UNTRIED if name == "torch" and is_untried(version) else ""
            findings.append(Condition("versions", name, "well", version + untried))
        except metadata.PackageNotFoundError:
            why = f"missing: pip install {name}" if needed else "not here: only grading needs it"
            findings.append(Condition("versions", name, _state(False, needed), why))
    return findings


def _course(course: Course | CallError) -> list[Condition]:
    if isinstance(course, CallError):
        return [Condition("course", "course.toml", "bad", str(course))]
    about = f"{counted(len(course.exercises), 'exercise')} in {course.folder}"
    return [Condition("course", course.name, "well", about), _answers(course)]


def _answers(course: Course) -> Condition:
    """Whether there are solutions or recordings to compare answers with."""
    if course.has_solutions:
        return Condition("course", "solutions", "well", str(course.solutions))
    if not course.recorded.is_dir():
        why = "neither solutions nor recordings are here: checks and grading need one of them"
        return Condition("course", "solutions", "bad", why)
    try:
        from grader.grading.recorded import Recorded

        Recorded(course).rows.verify()
    except (CallError, ImportError) as error:
        return Condition("course", "recordings", "bad", str(error))
    return Condition("course", "recordings", "well", f"{course.recorded}: enough to check answers")


def _isolation(course: Course | CallError, student: bool) -> list[Condition]:
    """The layers of a jail, and whether they suffice, with the reason for each missing layer."""
    try:
        from grader.sandbox.jails import MEANING, Warm, shortfall
        from grader.sandbox.session import Limits
    except ImportError as error:
        return [Condition("isolation", "jail", _state(False, not student), str(error))]
    secrets = course.secrets if isinstance(course, Course) and not student else ()
    try:
        with Warm() as warm:
            warm.open(Limits()).close()
            missing = warm.ready.missing
            reach = shortfall(warm, secrets)
    except (HostFault, OSError) as error:
        why = f"no jail could be made: {error}"
        return [Condition("isolation", "jail", _state(False, not student), why)]
    return [
        *(
            Condition("isolation", layer, "absent", f"none: {missing[layer]}")
            if layer in missing
            else Condition("isolation", layer, "well", text)
            for layer, text in MEANING.items()
        ),
        Condition(
            "isolation",
            "all in all",
            _state(reach is None, not student),
            reach or "enough to grade with",
        ),
    ]


@app.command(rich_help_panel=AUTHORS, epilog="Example: grader doctor")
def doctor(course: CourseOption = None, as_json: JsonOption = False) -> None:
    """Show versions, the course, the isolation layers, and anything missing.

    The exit code is 1 if this machine lacks something that it needs to grade or check.
    """
    findings = examine(course)
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        console = Console()
        signs = {"well": "[green]✓[/green]", "bad": "[red]✗[/red]", "absent": "-"}
        for topic in dict.fromkeys(finding.topic for finding in findings):
            table = Table(title=topic, title_justify="left", show_header=False)
            for finding in findings:
                if finding.topic == topic:
                    table.add_row(signs[finding.state], finding.name, finding.text)
            console.print(table)
    raise typer.Exit(1 if any(finding.state == "bad" for finding in findings) else 0)
