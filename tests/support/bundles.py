"""Recordings of a course, made once and shared: recording takes minutes."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.release.recording import (
    record_course,  # the real one, whatever is put in its place later
)
from grader.release.student import write_student_bundle
from tests.support.places import REAL, ROOT

KEPT = ROOT / "build" / "recordings"  # ignored by git, and removed by `make clean`

# For tests that need the real course's recordings: the first such test waits until they are made.
waits_for_recordings = pytest.mark.timeout(1800)

# Rooms whose code may change a recording.
ROOMS = ("course", "grading", "mistakes", "proxies", "testing", "unsandboxed", "wire")
MAKERS = [
    ROOT / "grader/release/recording.py",
    *(path for room in ROOMS for path in (ROOT / "grader" / room).glob("*.py")),
]


def recordings(course: Course) -> Path:
    """The folder of a course's current recordings. Copy it; do not write into it."""
    digest = hashlib.blake2b(course.fingerprint().encode(), digest_size=16)
    stubs = (course.stub_file(unit.name) for unit in course.units)
    for path in (*sorted(MAKERS), *stubs):
        digest.update(path.read_bytes())
    kept = KEPT / digest.hexdigest()
    KEPT.mkdir(parents=True, exist_ok=True)
    # One lock a course: test processes wait only for the recordings that they need.
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            draft = kept.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            record_course(course, draft, jobs=2)
            draft.rename(kept)
    return kept


def release_recorded(to: Path) -> None:
    """Write the course's bundle with the shared recordings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.release.recording.record_course", recorded_once)
        write_student_bundle(load_course(REAL), to)


def recorded_once(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
    most: int | None = None,
) -> None:
    """A stand-in for `grader.release.recording.record_course` that copies the shared recordings."""
    shutil.copytree(recordings(course), to)


def recorded_in_name(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
    most: int | None = None,
) -> None:
    """A stand-in for `record_course` that records nothing, for tests of the rest of a bundle."""
    (to / "stubs").mkdir(parents=True)
    (to / course.sheet.name).write_text("")
    for unit in course.units:
        shutil.copyfile(course.stub_file(unit.name), to / "stubs" / f"{unit.name}.py")
        report(unit.name)
