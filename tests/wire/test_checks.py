"""Statements that only check or print are found by their text, and removed."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from grader.wire.checks import is_check, may_check, without_checks

CHECKS = [
    "assert x > 0",
    "print(x)",
    "pprint.pprint(x)",
    "warnings.warn('x')",
    "logger.debug('%s', x)",
    "torch.testing.assert_close(x, y)",
    "torch._assert(x.all(), 'text')",
    "assert_shapes(x)",
    "if x: raise ValueError",
    "if x:\n    print(x)\nelif y:\n    raise ValueError\nelse:\n    pass",
    "for n in x:\n    assert n",
    "with torch.no_grad():\n    print(x)",
]
OTHERS = [
    "x = 1",
    "check(x)",
    "out = print(x)",
    "if x: y = 1",
    "if x:\n    print(x)\n    y = 1",
    "if x:\n    pass",
    "assert (n := len(x))",
    "while x:\n    print(x)",
    "math.log(x)",
    "return print(x)",
    "raise ValueError",
    "'a docstring'",
]


@pytest.mark.parametrize("text", CHECKS)
def test_a_statement_that_only_checks_or_prints_is_found(text: str) -> None:
    inside = ast.parse(f"def f(x, y):\n{indent(text, '    ')}").body[0]
    assert isinstance(inside, ast.FunctionDef)
    assert is_check(inside.body[0])
    assert may_check([text])


@pytest.mark.parametrize("text", OTHERS)
def test_other_statements_are_no_checks(text: str) -> None:
    inside = ast.parse(f"def f(x, y):\n{indent(text, '    ')}").body[0]
    assert isinstance(inside, ast.FunctionDef)
    assert not is_check(inside.body[0])


def test_variables_that_only_checks_read_are_removed_with_them() -> None:
    text = dedent("""
        def f(x):
            total = x.sum()
            half, rest = total / 2, 1
            assert half > 0, rest
            kept = x + 1
            print(kept)
            n: int = 3
            n += 1
            print(n)
            return kept
        """)
    kept = ast.unparse(without_checks(ast.parse(text).body[0]))
    assert kept == dedent("""\
        def f(x):
            pass
            pass
            pass
            kept = x + 1
            pass
            n: int = 3
            n += 1
            pass
            return kept""")


def test_a_name_of_another_scope_is_left_alone() -> None:
    text = "def f(x):\n    global seen\n    seen = x.sum()\n    assert seen > 0\n    return x"
    assert "seen = x.sum()" in ast.unparse(without_checks(ast.parse(text).body[0]))


def test_a_text_without_such_words_is_not_counted_again() -> None:
    assert not may_check(["import torch\n\ndef f(x):\n    return torch.logsumexp(x, -1).append"])
