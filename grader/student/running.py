"""A student's file as a program: what no check runs of it, and a run of all of it."""

from __future__ import annotations

import ast
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from grader.course.course import Course
from grader.records.faults import CallError
from grader.wire.source import UNPARSABLE, flatten, parse


def run_file(course: Course, name: str) -> int:
    """Run the file of an exercise's unit from top to bottom, and return Python's exit code.

    It may ask, print, and import what lies beside it; it is stopped by Ctrl-C.
    """
    path = _file_of(course, name)
    if not path.is_file():
        raise CallError(f"{path} is not there: grader reset {name} brings back its stub")
    return subprocess.run([sys.executable, str(path)], check=False).returncode


def left_out(course: Course, name: str) -> str:
    """Which lines of an exercise's file do something that no check runs, in words; or nothing."""
    path = _file_of(course, name)
    with suppress(OSError, *UNPARSABLE):
        text = path.read_text("utf-8")
        for node in flatten(parse(text, magics=False).body):
            if _acts(node):
                line = text.splitlines()[node.lineno - 1].strip()[:60]
                return (
                    f"a check runs definitions only, and not line {node.lineno} of {path.name} "
                    f"({line}): to run the whole file, type grader run {name}"
                )
    return ""


def _file_of(course: Course, name: str) -> Path:
    course.select([name])  # says what is near, if nothing has this name
    return course.stub_file(course.unit_of.get(name, name))


def _acts(node: ast.stmt) -> bool:
    """Whether a top-level statement does something, and binds no name."""
    if isinstance(node, ast.Expr):
        return any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, (ast.For, ast.While, ast.With, ast.If, ast.Assert))
