"""What this machine offers: versions, the course, and the isolation layers of a jail."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from grader.course import Course, find_course, load_course
from grader.faults import CallError, HostFault

PACKAGES = (
    "torch", "numpy", "pytest", "jaxtyping", "msgspec", "typer", "rich", "sandlock",
    "pyseccomp",
)  # fmt: skip
# Absent is what this machine lacks and can do without.
State = Literal["well", "bad", "absent"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    topic: str
    name: str
    state: State
    text: str


def examine(given: Path | None) -> list[Finding]:
    """Look at everything; what is missing says how to get it."""
    try:
        course: Course | CallError = load_course(find_course(given))
    except CallError as error:
        course = error
    return [*_versions(), *_course(course), *_isolation(course)]


def _state(well: bool) -> State:
    return "well" if well else "bad"


def _versions() -> list[Finding]:
    python = sys.version_info[:2]
    findings = [
        Finding(
            "versions", "python", _state(python >= (3, 11)),
            platform.python_version() + ("" if python >= (3, 11) else ": 3.11 or newer is needed"),
        ),
        Finding(
            "versions", "system", _state(sys.platform == "linux"),
            platform.platform()
            + ("" if sys.platform == "linux" else ": jails need Linux, and grading needs jails"),
        ),
    ]  # fmt: skip
    for name in PACKAGES:
        try:
            findings.append(Finding("versions", name, "well", metadata.version(name)))
        except metadata.PackageNotFoundError:
            findings.append(Finding("versions", name, "bad", f"missing: pip install {name}"))
    return findings


def _course(course: Course | CallError) -> list[Finding]:
    if isinstance(course, CallError):
        return [Finding("course", "course.toml", "bad", str(course))]
    has = course.solutions.is_dir()
    return [
        Finding(
            "course", course.name, "well", f"{len(course.exercises)} exercises in {course.folder}"
        ),
        Finding(
            "course", "solutions", _state(has),
            str(course.solutions) if has else "not here: grading and checking need it",
        ),
    ]  # fmt: skip


def _isolation(course: Course | CallError) -> list[Finding]:
    """Every layer of a jail, with the kernel's reason where there is none, and the bar."""
    try:
        from grader.isolation import MEANING, shortfall
        from grader.jail.jails import Warm
        from grader.jail.session import Limits
    except ImportError as error:
        return [Finding("isolation", "jail", "bad", str(error))]
    secrets = [] if isinstance(course, CallError) else [course.solutions]
    try:
        with Warm() as warm:
            warm.open(Limits()).close()
            missing = warm.ready.missing
            reach = shortfall(warm, secrets)
    except (HostFault, OSError) as error:
        return [Finding("isolation", "jail", "bad", f"no jail could be made: {error}")]
    return [
        *(
            Finding("isolation", layer, "absent", f"none: {missing[layer]}")
            if layer in missing
            else Finding("isolation", layer, "well", text)
            for layer, text in MEANING.items()
        ),
        Finding("isolation", "all in all", _state(reach is None), reach or "enough to grade with"),
    ]
