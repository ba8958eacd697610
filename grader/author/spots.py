"""Finds the spots of a definition: the nodes of its syntax tree that a mutant may change.

The scope of a spot knows the names that a person could confuse there.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

# --- places --------------------------------------------------------------------------------------

# Fields of syntax nodes that no mutant changes, since they do not affect results.
UNTOUCHED = frozenset({"annotation", "returns", "decorator_list", "bases", "type_params", "exc"})

Target = ast.Name | ast.Attribute


@dataclass(frozen=True)
class Spot:
    """A node of a definition's syntax tree, with its place in the tree."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    scope: Scope

    @property
    def line(self) -> int:
        """The node's line in the bare definition; see `mutants`."""
        return getattr(self.node, "lineno", 0)

    @property
    def position(self) -> tuple[int, int]:
        """The node's line and column in the bare definition."""
        return self.line, getattr(self.node, "col_offset", 0)

    @property
    def text(self) -> str:
        """The node as source text."""
        return ast.unparse(self.node)

    @property
    def followers(self) -> list[ast.stmt]:
        """The statements that follow this statement in the same block."""
        assert self.index is not None
        return list(getattr(self.parent, self.field)[self.index + 1 :])

    def with_instead(self, new: str, tree: ast.stmt) -> str:
        """The tree's source with `new` in place of this node; the tree itself stays unchanged."""
        old = getattr(self.parent, self.field)
        try:
            setattr(self.parent, self.field, self._put(old, new))
            return ast.unparse(tree)
        finally:
            setattr(self.parent, self.field, old)

    def _put(self, old: object, new: str) -> object:
        if isinstance(self.node, ast.stmt):
            assert isinstance(old, list)
            assert self.index is not None
            body = old[: self.index] + ast.parse(new).body + old[self.index + 1 :]
            return body or [ast.Pass()]
        expression = ast.parse(new, mode="eval").body
        if self.index is None:
            return expression
        assert isinstance(old, list)
        return [*old[: self.index], expression, *old[self.index + 1 :]]

    def change(self, new: str) -> str:
        """The part of a mutant's id that describes the change: ``diagonal=1->diagonal=0``."""
        if isinstance(self.node, ast.stmt):
            return _statement_change(self.text, new)
        new = ast.unparse(ast.parse(new, mode="eval"))
        keyword = f"{self.parent.arg}=" if isinstance(self.parent, ast.keyword) else ""
        return f"{keyword}{self.text}->{keyword}{new}"


def _statement_change(old: str, new: str) -> str:
    first = old.splitlines()[0]
    if not new:
        return f"without {first}"
    added = [line.strip() for line in new.splitlines() if line.strip() not in old]
    if added:
        return f"{first}->{'; '.join(added)}" if old not in new else f"{first}->then {added[0]}"
    return f"always {first}"  # the condition is removed, but not its body


def spots_in(definition: ast.stmt) -> Iterator[Spot]:
    """A spot for each node of the definition that a mutant may change."""
    attributes = _kin_attributes(definition)

    def within(parent: ast.AST, scope: Scope) -> Iterator[Spot]:
        if isinstance(parent, ast.FunctionDef):
            scope = Scope(parent, attributes)
        for name, value in ast.iter_fields(parent):
            if name in UNTOUCHED or isinstance(parent, ast.JoinedStr):
                continue
            for number, node in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(node, ast.AST):
                    index = number if isinstance(value, list) else None
                    yield Spot(node, parent, name, index, scope)
                    if not is_signed_number(node):
                        yield from within(node, scope)

    empty = Scope(ast.parse("def nothing(): pass").body[0], attributes)
    yield from within(definition, empty)


# --- names that are easily confused --------------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """The names that can be used in a function, and which of them are similar."""

    function: ast.AST
    attributes: dict[str, list[str]]  # similar attributes of `self`: see `_kin_attributes`

    @cached_property
    def bound(self) -> dict[str, int]:
        """The line on which each local name is first bound."""
        lines: dict[str, int] = {}
        for node in ast.walk(self.function):
            if isinstance(node, ast.arg):
                lines.setdefault(node.arg, node.lineno)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
        return lines

    @cached_property
    def kin(self) -> dict[str, list[str]]:
        """For each name, similar names: with the same annotation, or assigned in the same way."""
        groups: dict[str, list[str]] = defaultdict(list)
        for node in ast.walk(self.function):
            match node:
                case ast.arg(arg=name, annotation=ast.AST() as kind):
                    groups[f"argument {ast.unparse(kind)}"].append(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    groups[f"like {form_of(value)}"].append(name)
                case ast.Assign(targets=[ast.Tuple(elts=parts)]):
                    groups[f"line {node.lineno}"] += [ast.unparse(part) for part in parts]
        kin: dict[str, list[str]] = defaultdict(list)
        for names in groups.values():
            _introduce(names, kin)
        return kin

    def confused(self, node: Target) -> list[str]:
        """At most two similar names, which a person could write in place of this name."""
        text = ast.unparse(node)
        if isinstance(node, ast.Attribute):
            return self.attributes.get(text, [])[:2]
        return [name for name in self.kin.get(text, []) if self.is_bound(name, node.lineno)][:2]

    def is_bound(self, name: str, line: int) -> bool:
        """Whether a local name has a value before this line."""
        return self.bound.get(name, line) < line


def _introduce(names: Sequence[str], kin: dict[str, list[str]]) -> None:
    """Add to `kin`, for each name, all other names, beginning with the following name."""
    names = list(dict.fromkeys(names))
    for number, name in enumerate(names):
        others = names[number + 1 :] + names[:number]
        kin[name] += [other for other in others if other not in kin[name]]


def _kin_attributes(definition: ast.stmt) -> dict[str, list[str]]:
    """For each attribute of `self`, the attributes that are assigned the same expression.

    For example, the layers for queries, keys and values.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self")) as made]):
                groups[ast.unparse(node.value)].append(ast.unparse(made))
    kin: dict[str, list[str]] = defaultdict(list)
    for names in groups.values():
        _introduce(names, kin)
    return kin


def form_of(node: ast.AST) -> str:
    """The structure of an expression as text; most names are left out."""
    match node:
        case ast.Name():
            return "_"
        case ast.Attribute(value=value):
            return f"{form_of(value)}._"
        case ast.Call(func=function, args=args):
            # Keep the names of arguments: calls of any function on the same argument are similar.
            parts = [arg.id if isinstance(arg, ast.Name) else form_of(arg) for arg in args]
            return f"{form_of(function)}({','.join(parts)})"
    inner = ",".join(form_of(child) for child in ast.iter_child_nodes(node))
    return f"{type(node).__name__}({inner})"


def number_of(node: ast.AST) -> int | float | None:
    """The value of a number, infinity included, with its sign; None for other expressions."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(n) | float(n)):
            return n
        case ast.Attribute(attr="inf"):
            return math.inf
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
            return float(text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = number_of(operand)
            return None if positive is None else -positive
    return None


def is_signed_number(node: ast.AST) -> bool:
    """Whether a node is a number with a minus sign, such as ``-1``."""
    return isinstance(node, ast.UnaryOp) and number_of(node) is not None
