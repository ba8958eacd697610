"""Writes a new course: a folder that grades, checks, audits and releases as it is."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from grader.author.changes import quoted
from grader.author.schema import Schema, schema
from grader.author.texts import template
from grader.records.faults import CallError
from grader.records.files import drafted, require_empty, write_secret

UNIT = "vectors"  # the only unit of a new course

# The files of a new course, and the templates from which they are made. The templates of Python
# files have another suffix, so that no tool takes them for modules of the engine.
FILES = {
    "README.md": "README.md",
    "Makefile": "Makefile",
    ".gitignore": "gitignore",
    ".github/workflows/audit.yml": "audit.yml",
    "exercises/course.toml": "course.toml",
    f"exercises/{UNIT}.py": "stub.txt",
    f"exercises/checks/test_{UNIT}.py": "check.txt",
    f"solutions/{UNIT}.py": "reference.txt",
    f"solutions/graders/test_{UNIT}.py": "grader.txt",
    f"solutions/mistakes/{UNIT}.py": "mistake.txt",
    "solutions/mistakes/audit.toml": "audit.toml",
}

SCHEMAS: Mapping[str, Schema] = {"exercises": "course", "solutions/mistakes": "audit"}  # by folder


def write_course(to: Path, title: str = "", name: str = "") -> None:
    """Write a course with one exercise and a random seed to the new or empty folder `to`.

    Without a name, the course is called like the folder; without a title, like its name. Raises
    `CallError` if `to` is not empty, or if a name or title has a line break.
    """
    require_empty(to)
    name = name or _slug(to.resolve().name)
    title = title or name.replace("-", " ").replace("_", " ").capitalize()
    for key, text in (("--name", name), ("--title", title)):
        if not text.isprintable() or not text.strip():
            raise CallError(f"{key} {text!r} is not a line of text")
    fields = {
        "title": title,
        "name_in_toml": quoted(name),
        "title_in_toml": quoted(title),
        "seed_in_toml": quoted(f"{name}-public"),
    }
    with drafted(to, private=True) as draft:
        for path, source in FILES.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(template(f"course/{source}", **fields).encode())
        for folder, kind in SCHEMAS.items():
            (draft / folder / f"{kind}.schema.json").write_bytes(schema(kind).encode())
        write_secret(draft / "solutions" / "seed", secrets.token_hex(16) + "\n")


def _slug(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text.lower()).strip("-") or "course"
