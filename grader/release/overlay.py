"""A private course: solutions of one's own, laid over a course that everyone may read."""

from __future__ import annotations

import os
import secrets
from importlib import resources
from pathlib import Path
from string import Template

from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.files import drafted, require_empty


def new_course(course: Course, to: Path) -> None:
    """Write the beginning of an overlay of `course` into `to`: a seed, and a place for the rest.

    Raises `CallError` where `to` is not a new or an empty folder, or lies where students look.
    """
    require_empty(to)
    if to.resolve().is_relative_to(course.folder):
        raise CallError(f"{to} is inside {course.folder}, which students get: name another folder")
    fields = {"course": course.folder.as_posix(), "title": course.file.title}
    with drafted(to) as draft:
        draft.chmod(0o700)
        (draft / "solutions" / "graders").mkdir(parents=True)
        (draft / "solutions" / "mistakes").mkdir()
        seed = draft / "solutions" / "seed"
        with os.fdopen(os.open(seed, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_hex(16) + "\n")
        for name in ("course.toml", "README.md"):
            text = (resources.files("grader.release") / "templates" / "overlay" / name).read_text(
                "utf-8"
            )
            (draft / name).write_bytes(Template(text).substitute(fields).encode())
