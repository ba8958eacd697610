"""A course with its recordings, made once: to record it takes minutes, and tests need it often."""

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

# What may decide a recording, besides the course.
ROOMS = ("course", "grading", "mistakes", "proxies", "testing", "unsandboxed", "wire")
MAKERS = [
    ROOT / "grader/release/recording.py",
    *(path for room in ROOMS for path in (ROOT / "grader" / room).glob("*.py")),
]


def recordings(course: Course) -> Path:
    """A folder with the recordings of a course as it stands now. To be copied, not written into."""
    digest = hashlib.blake2b(course.fingerprint().encode(), digest_size=16)
    stubs = (course.stub_file(unit.name) for unit in course.units)
    for path in (*sorted(MAKERS), *stubs):
        digest.update(path.read_bytes())
    kept = KEPT / digest.hexdigest()
    KEPT.mkdir(parents=True, exist_ok=True)
    # Tests run in several processes: nobody waits for the recordings of another course.
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            draft = kept.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            record_course(course, draft, jobs=2)
            draft.rename(kept)
    return kept


def release_recorded(to: Path) -> None:
    """The course's bundle, with the recordings that are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.release.recording.record_course", recorded_once)
        write_student_bundle(load_course(REAL), to)


def recorded_once(
    course: Course, to: Path, report: Callable[[str], None] = lambda _: None, jobs: int = 1
) -> None:
    """In place of `grader.release.recording.record_course`."""
    shutil.copytree(recordings(course), to)


def recorded_in_name(
    course: Course, to: Path, report: Callable[[str], None] = lambda _: None, jobs: int = 1
) -> None:
    """In place of `grader.release.recording.record_course`, for tests of the rest of a bundle."""
    (to / "stubs").mkdir(parents=True)
    (to / course.sheet.name).write_text("")
    for unit in course.units:
        shutil.copyfile(course.stub_file(unit.name), to / "stubs" / f"{unit.name}.py")
        report(unit.name)
