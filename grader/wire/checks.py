"""Statements that only check or print: an answer gives the same results without them.

The cost of an answer is the cost of its work. An assertion about the whole result, or a printed
maximum, is no part of this work. Therefore a call that costs too much is counted once more without
such statements (see `grader.grading.ladder`). The text alone decides which statements are removed.
That is safe, because the second count is used only if all results are the same to the byte.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable

# Functions that print or warn; objects of which all methods do. Functions that check begin with
# ``assert``, such as ``torch.testing.assert_close``.
PRINTING = frozenset({"print", "pprint", "pp", "display", "warn"})
LOGS = frozenset({"logging", "logger", "log", "warnings"})
ASSERTING = "assert"
# Found in every text that has such a statement. The trusted process parses no submission.
MAYBE = re.compile(
    rf"\b(_*{ASSERTING}|raise\b|({'|'.join(sorted(PRINTING))})\s*\(|({'|'.join(sorted(LOGS))})\s*\.)"
)


def may_check(cells: Iterable[str]) -> bool:
    """Whether texts may have statements that only check or print; they are not parsed."""
    return any(MAYBE.search(cell) for cell in cells)


def is_check(node: ast.AST) -> bool:
    """Whether a statement only checks or prints, or is an ``if``, ``for`` or ``with`` around such.

    A statement that binds a name with ``:=`` does not count, since later lines may need the name.
    """
    return _only_checks(node) and not any(isinstance(p, ast.NamedExpr) for p in ast.walk(node))


def _only_checks(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Expr(ast.Call(ast.Name(name))):
            return _says(name)
        case ast.Expr(ast.Call(ast.Attribute(owner, name))):
            return _says(name) or (isinstance(owner, ast.Name) and owner.id in LOGS)
        case ast.If() | ast.For() | ast.With():
            inside = [*node.body, *getattr(node, "orelse", ())]
            working = [part for part in inside if not isinstance(part, ast.Pass)]
            return bool(working) and all(
                isinstance(part, ast.Raise) or _only_checks(part) for part in working
            )
    return False


def _says(function: str) -> bool:
    return function in PRINTING or function.lstrip("_").startswith(ASSERTING)


def without_checks(node: ast.stmt) -> ast.stmt:
    """A copy of a statement without its checks, and without variables that only checks read."""
    kept: ast.AST = copy.deepcopy(node)
    unused: frozenset[str] = frozenset()
    while True:
        remover = _Remover(unused)
        kept = remover.visit(kept)
        unused = frozenset(remover.read - _reads(kept))
        if not unused:
            assert isinstance(kept, ast.stmt)
            return kept


class _Remover(ast.NodeTransformer):
    """Replaces checks, and assignments to these unused names only, by ``pass``."""

    def __init__(self, unused: frozenset[str]) -> None:
        self._unused = unused
        self.read: set[str] = set()  # the names that the replaced statements read

    def visit(self, node: ast.AST) -> ast.AST:
        """See ast.NodeVisitor."""
        if isinstance(node, ast.stmt) and (is_check(node) or self._is_unused(node)):
            self.read |= _reads(node)
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def _is_unused(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign(targets=targets):
                bound = [part for target in targets for part in _parts(target)]
                return all(isinstance(part, ast.Name) and part.id in self._unused for part in bound)
            case ast.AnnAssign(ast.Name(name)):
                return name in self._unused
        return False


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _reads(tree: ast.AST) -> set[str]:
    """The names that a tree reads; names of other scopes count too, since others may read them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()) | ast.AugAssign(ast.Name(name)):
                found.add(name)
            case ast.Global(names) | ast.Nonlocal(names):
                found.update(names)
    return found
