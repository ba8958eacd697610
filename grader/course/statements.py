"""What an exercise asks for, as its stub says it. Read as text: nothing is imported or run."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

from grader.course.course import Course
from grader.records.faults import CallError


@dataclass(frozen=True)
class ExerciseStub:
    """The stub of one exercise."""

    name: str
    signature: str  # ``def causal_mask(num_tokens: int) -> …:``, or the class and its methods
    text: str  # the docstring, whose examples begin with ``>>>``
    stub: str  # the whole definition, as it stands in the file


def statement(course: Course, name: str) -> ExerciseStub:
    """Read an exercise's stub; raise `CallError` where it has none that can be read."""
    path = course.pristine(course.unit_of[name])
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError) as error:
        raise CallError(f"{path} cannot be read: {error}") from None
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            stub = textwrap.dedent(ast.get_source_segment(text, node) or "")
            return ExerciseStub(name, _signature(node), ast.get_docstring(node) or "", stub)
    raise CallError(f"{path} has no stub of {name}")


def opening(course: Course, unit: str) -> str:
    """The docstring of a unit's file: what the unit is about."""
    try:
        return ast.get_docstring(ast.parse(course.pristine(unit).read_text("utf-8"))) or ""
    except (OSError, SyntaxError, ValueError):
        return ""


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"def {node.name}({ast.unparse(node.args)}){returns}:"
    bases = ", ".join(map(ast.unparse, node.bases))
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    lines = [f"class {node.name}({bases}):", *(f"    {_signature(part)}" for part in methods)]
    return "\n".join(lines)
