"""Another definition is written as a change of the reference's text, as small as can be."""

from __future__ import annotations

import ast

from grader.author.changes import change_to
from grader.author.mutants import mutants_of
from grader.course.course import Course
from grader.mistakes import text_of_definition


def test_a_mutant_of_a_reference_is_a_change_of_the_references_text(tiny: Course) -> None:
    for unit in ("basics", "layers"):
        source = (tiny.solutions / f"{unit}.py").read_text("utf-8")
        for name in (one for one in tiny.exercises if tiny.unit_of[one] == unit):
            text = text_of_definition(source, name)
            for mutant in mutants_of(source, name):
                ((old, new),) = (change_to(text, mutant.definition) or {}).items()
                assert text.count(old) == 1
                changed = ast.parse(text.replace(old, new)).body[0]
                assert ast.unparse(without_docstrings(changed)) == mutant.definition


def without_docstrings(definition: ast.stmt) -> ast.stmt:
    for node in ast.walk(definition):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            del node.body[0]
    return definition


def test_a_change_keeps_comments_and_line_breaks_around_it() -> None:
    text = "def f(x):\n    y = (  # a comment\n        x\n        + 1\n    )\n    return y * 2\n"
    assert change_to(text, "def f(x):\n    y = x + 1\n    return y * 3") == {"y * 2": "y * 3"}
    added = change_to(text, "def f(x):\n    y = x + 1\n    y = y.T\n    return y * 2")
    assert added is not None
    ((old, new),) = added.items()
    assert ast.dump(ast.parse(text.replace(old, new))) == ast.dump(
        ast.parse("def f(x):\n    y = x + 1\n    y = y.T\n    return y * 2")
    )
    assert change_to(text, "def f(x):\n    y = x + 1\n    return y * 2") is None
