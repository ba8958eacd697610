"""What this machine offers: versions, the course, and the isolation layers of a jail."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from grader.course import find_course, load_course
from grader.faults import CallError

PACKAGES = ("torch", "numpy", "pytest", "jaxtyping", "msgspec", "nbformat", "typer", "rich")
LAYERS = {
    "process": "student code runs in a process of its own, forked from one that holds no secret",
    "rlimits": "memory, CPU time, file size and open files are limited",
    "no_new_privs": "no program it starts could gain rights",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    topic: str
    name: str
    well: bool
    text: str


def examine(given: Path | None) -> list[Finding]:
    """Look at everything; what is missing says how to get it."""
    return [*_versions(), *_course(given), *_isolation()]


def _versions() -> list[Finding]:
    python = sys.version_info[:2]
    findings = [
        Finding(
            "versions", "python", python >= (3, 11),
            platform.python_version() + ("" if python >= (3, 11) else ": 3.11 or newer is needed"),
        ),
        Finding(
            "versions", "system", sys.platform == "linux",
            platform.platform()
            + ("" if sys.platform == "linux" else ": jails need Linux, and grading needs jails"),
        ),
    ]  # fmt: skip
    for name in PACKAGES:
        try:
            findings.append(Finding("versions", name, True, metadata.version(name)))
        except metadata.PackageNotFoundError:
            findings.append(Finding("versions", name, False, f"missing: pip install {name}"))
    return findings


def _course(given: Path | None) -> list[Finding]:
    try:
        course = load_course(find_course(given))
    except CallError as error:
        return [Finding("course", "course.toml", False, str(error))]
    has = course.solutions.is_dir()
    return [
        Finding(
            "course", course.name, True, f"{len(course.exercises)} exercises in {course.folder}"
        ),
        Finding(
            "course", "solutions", has,
            str(course.solutions) if has else "not here: grading and checking need it",
        ),
    ]  # fmt: skip


def _isolation() -> list[Finding]:
    try:
        from grader.faults import HostFault
        from grader.jail.session import Limits, Warm
    except ImportError as error:
        return [Finding("isolation", "jail", False, str(error))]
    try:
        with Warm() as warm:
            jail = warm.fork(Limits())
            jail.close()
            active = warm.layers
    except (HostFault, OSError) as error:
        return [Finding("isolation", "jail", False, f"no jail could be made: {error}")]
    return [
        Finding("isolation", name, name in active, text if name in active else "not active")
        for name, text in LAYERS.items()
    ]
