"""Runs a student's file as a program, and finds the statements that a check does not run."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from grader.course.course import Course
from grader.intake.files import Listed
from grader.intake.own import own_files
from grader.records.faults import CallError
from grader.wire import SourceText
from grader.wire.definitions import is_untouched, skeleton
from grader.wire.source import DEFINITIONS, Condition, original_stem, read_file

SHOWN = 60  # a message quotes at most this many characters of a line of code


def run_file(course: Course, name: str) -> int:
    """Run the file of an exercise's unit from top to bottom, and return Python's exit code.

    The file may read input, print, and import files next to it. Raises `CallError` if the file does
    not exist.
    """
    unit, path = _file_of(course, name)
    if not path.is_file():
        raise CallError(_gone(course, unit, path))
    return subprocess.run([sys.executable, str(path)], check=False).returncode


def left_out(course: Course, name: str) -> Iterator[str]:
    """Lines about statements of an exercise's file that a check does not run.

    If the file is missing, a line says that instead.
    """
    unit, path = _file_of(course, name)
    try:
        text = path.read_text("utf-8-sig")
        file = read_file(SourceText(path.name, (text,)))
        running = (one for one in file.statements if one.may_run and not isinstance(one, Condition))
        statements = [statement.node for statement in running]
    except FileNotFoundError:
        yield _gone(course, unit, path)
        return
    except (OSError, UnicodeDecodeError):  # the verdict reports the error
        return
    written = [
        node
        for node in statements
        if isinstance(node, DEFINITIONS) and node.name == name and not is_untouched(node)
    ]
    if len({skeleton(node) for node in written}) > 1:
        lines = " and ".join(str(node.lineno) for node in written)
        yield f"{path.name} defines {name} in lines {lines}: the last definition counts"
    acting = next(filter(_acts, statements), None)
    if acting is not None:
        line = text.splitlines()[acting.lineno - 1].strip()[:SHOWN]
        yield (
            f"a check runs definitions only, and not line {acting.lineno} of {path.name} "
            f"({line}): to run the whole file, type grader run {unit}"
        )


def _file_of(course: Course, name: str) -> tuple[str, Path]:
    course.select([name])  # raises an error with similar names, if the name is unknown
    unit = course.unit_of.get(name, name)
    return unit, course.stub_file(unit)


def _gone(course: Course, unit: str, path: Path) -> str:
    copies = [
        f.name for f in own_files(course) if isinstance(f, Listed) and original_stem(f.name) == unit
    ]
    if copies:
        return f"{path.name} does not exist, and {copies[-1]} counts in its place: rename it?"
    return f"{path.name} does not exist: grader reset {unit} brings back its stubs"


def _acts(node: ast.stmt) -> bool:
    """Whether a top-level statement, other than a definition, calls something for its effect."""
    return not isinstance(node, DEFINITIONS) and any(
        isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) for part in ast.walk(node)
    )
