"""No hidden test of the course can lose its assertions unnoticed."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from grader.author.audit import audit_course
from grader.course.course import load_course
from tests.support.places import ROOT

HOLLOWED = [  # a value, a property, a count and a gradient
    "prefix_sum_matrix/test_prefix_sum_matrix_agrees_with_the_reference",
    "normalize_by_sum/test_normalize_by_sum_leaves_the_scores_alone",
    "attention_scores/test_attention_scores_take_one_product",
    "context_vector/test_context_vector_has_the_right_gradient",
]


def asserted(node: ast.AST) -> list[ast.expr]:
    """What an assertion looks at; empty for any other statement."""
    match node:
        case ast.Assert(test):
            return [test]
        case ast.Expr(ast.Call(ast.Name(name), arguments)) if name.startswith("assert_"):
            return arguments
    return []


def hollow(text: str, name: str) -> str:
    """The text of a test file, in which one test looks at its results and asserts nothing."""
    tree = ast.parse(text)
    (test,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    removed = 0
    for node in ast.walk(test):
        for body in (field for _, field in ast.iter_fields(node) if isinstance(field, list)):
            for number, statement in enumerate(body):
                if values := asserted(statement):
                    looked_at = ast.Expr(ast.Tuple(values, ast.Load()))
                    body[number] = ast.copy_location(looked_at, statement)
                    removed += 1
    assert removed, f"{name} asserts nothing"
    return ast.unparse(tree)


@pytest.mark.usefixtures("one_warm_process")
def test_a_test_without_its_assertions_fails_the_audit(tmp_path: Path) -> None:
    for folder in ("exercises", "solutions"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    course = load_course(tmp_path / "exercises")
    exercises = [id.partition("/")[0] for id in HOLLOWED]
    for exercise, id in zip(exercises, HOLLOWED, strict=True):
        graders = course.solutions / "graders" / f"test_{course.unit_of[exercise]}.py"
        graders.write_text(hollow(graders.read_text("utf-8"), id.partition("/")[2]), "utf-8")
    findings = {finding.name: finding for finding in audit_course(course, exercises, jobs=1)}
    told = {id: (findings[id].text, findings[id].well) for id in HOLLOWED}
    assert told == dict.fromkeys(HOLLOWED, ("catches no wrong answer", False))
