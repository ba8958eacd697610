"""Lists the sites of an answer: values that a probe can see, and small changes of its text.

A question about an answer is found by running it with a site probed or changed, see
`grader.questions`. This module only reads syntax. The trusted side puts the new text in its place.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from grader.guest.loader import LoadedSubmission
from grader.wire import MAX_NAME, MAX_TEXT, Site
from grader.wire.changes import LINKS, NEIGHBOURS, OPPOSITES, SIBLINGS, TRANSPOSES
from grader.wire.source import TopStatement

MOST_SITES = 400
LONGEST = 120  # characters of a value's text
PROBE = "_probe_"  # the name under which a probed text finds `Guest.probe`
LOOPS = (ast.For, ast.While, ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.DictComp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
# Changing these raises a NameError, or changes no result.
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "defaults", "kw_defaults", "exc")


def sites_of(submission: LoadedSubmission, name: str) -> list[Site]:
    """The sites of an answer and of its helpers, without other exercises that it uses."""
    winner = submission.winner(name)
    if winner is None:
        return []
    own = [s for s in submission.reach(winner) if s.is_definition and _is_own(submission, s, name)]
    found = (site for statement in own for site in _Reader(statement).sites())
    return [*islice(found, MOST_SITES)]


def _is_own(submission: LoadedSubmission, statement: TopStatement, name: str) -> bool:
    other = getattr(statement.node, "name", "")
    return other == name or not submission.is_exercise(other)


class _Reader:
    """Reads the sites of one definition."""

    def __init__(self, definition: TopStatement) -> None:
        self._definition = definition
        self._lines = definition.file.lines

    def sites(self) -> Iterator[Site]:
        """All sites, in the order of the text."""
        yield from self._within(self._definition.node, self._definition.node, loops=False)

    def _within(self, node: ast.AST, statement: ast.stmt, *, loops: bool) -> Iterator[Site]:
        if isinstance(node, ast.JoinedStr) or _prints(node):
            return
        inside = loops or isinstance(node, LOOPS)
        for field, value in ast.iter_fields(node):
            if field in UNTOUCHED or (field == "test" and _refuses(node)):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                around = child if isinstance(child, ast.stmt) else statement
                yield from self._at(child, node, around, loops=inside)
                if not _is_docstring(child):
                    yield from self._within(child, around, loops=inside)

    def _at(
        self, node: ast.AST, parent: ast.AST, statement: ast.stmt, *, loops: bool
    ) -> Iterator[Site]:
        """The sites at one node."""
        if isinstance(node, ast.expr) and not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            if name := _bound_to(node, parent):
                yield from self._site("value", node, name=name, loops=loops)
            elif _is_step(node):
                yield from self._site("value", node, loops=loops)
            whole = isinstance(parent, ast.Expr) or _takes_apart(parent, node)
            for new in () if whole or _moves(node) else self._without(node, parent):
                if self._cancels(parent, new):
                    continue
                if name and new == name:  # `x = x` says less than the line left out
                    yield from self._site("leave out", statement, "pass", loops=loops)
                else:
                    yield from self._site("leave out", node, new, loops=loops)
            for new in self._changed(node, parent):
                yield from self._site("change", node, new, loops=loops)
        elif isinstance(node, ast.stmt) and _can_go(node):
            yield from self._site("leave out", node, "pass", loops=loops)

    def _site(
        self,
        kind: Literal["value", "leave out", "change"],
        node: ast.expr | ast.stmt,
        new: str = "",
        *,
        name: str = "",
        loops: bool,
    ) -> Iterator[Site]:
        text = self._text(node)
        long = len(text) > (LONGEST if kind == "value" else MAX_TEXT) or len(new) > MAX_TEXT
        if long or text == new or len(name) > MAX_NAME:
            return
        assert node.end_lineno is not None
        place = self._definition.file.place(node.lineno)
        yield Site(
            kind,
            place,
            self._column(node.lineno, node.col_offset),
            place.line + node.end_lineno - node.lineno,
            self._column(node.end_lineno, node.end_col_offset or 0),
            text,
            new,
            name,
            loops,
        )

    # --- text ------------------------------------------------------------------------------------

    def _column(self, line: int, offset: int) -> int:
        """A column in characters; the syntax tree counts bytes of UTF-8."""
        return len(self._lines[line - 1].encode()[:offset].decode("utf-8", "replace"))

    def _text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        assert node.end_lineno is not None
        start = self._column(node.lineno, node.col_offset)
        end = self._column(node.end_lineno, node.end_col_offset or 0)
        if node.lineno == node.end_lineno:
            return self._lines[node.lineno - 1][start:end]
        first, *middle = self._lines[node.lineno - 1 : node.end_lineno - 1]
        return "\n".join([first[start:], *middle, self._lines[node.end_lineno - 1][:end]])

    def _offset(self, node: ast.expr, part: ast.expr | ast.keyword) -> int:
        """Where a part begins in the node's text."""
        lines = self._text(node).split("\n")[: part.lineno - node.lineno]
        column = self._column(part.lineno, part.col_offset)
        if not lines:
            return column - self._column(node.lineno, node.col_offset)
        return sum(len(line) + 1 for line in lines) + column

    def _put(self, node: ast.expr, part: ast.expr, new: str) -> str:
        """The node's text with new text in place of one of its parts."""
        whole, at = self._text(node), self._offset(node, part)
        return whole[:at] + new + whole[at + len(self._text(part)) :]

    def _swapped(self, node: ast.expr, one: ast.expr, other: ast.expr) -> str:
        """The node's text with two of its parts in the other order."""
        whole, at = self._text(node), self._offset(node, other)
        after = self._text(one) + whole[at + len(self._text(other)) :]
        between = whole[self._offset(node, one) + len(self._text(one)) : at]
        return whole[: self._offset(node, one)] + self._text(other) + between + after

    def _between(self, node: ast.expr, one: ast.expr, other: ast.expr, old: str, new: str) -> str:
        """The node's text with another operator between two of its parts."""
        whole, end = self._text(node), self._offset(node, one) + len(self._text(one))
        between = whole[end : self._offset(node, other)]
        if "#" in between:  # a comment may contain the operator
            return whole
        return whole[:end] + between.replace(old, new, 1) + whole[end + len(between) :]

    def _inner(self, part: ast.expr) -> str:
        """A part that takes the place of the whole."""
        text = self._text(part)
        return text if isinstance(part, SIMPLE) and "\n" not in text else f"({text})"

    # --- changes ---------------------------------------------------------------------------------

    def _without(self, node: ast.expr, parent: ast.AST) -> Iterator[str]:
        """The texts of an expression without a link of a chain, a call, a keyword or a divisor."""
        match node:
            case ast.Attribute(value=x, attr=name) if name in TRANSPOSES:
                yield self._inner(x)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[x], keywords=[]):
                yield self._inner(x)
            case ast.Call(func=ast.Name(id=name), args=[ast.Name() as x, *_]):
                if name.islower() and not hasattr(builtins, name):  # a function of the student's
                    yield self._inner(x)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch" | "F"), attr=name), args=[x, *_]
            ):
                if name in LINKS:
                    yield self._inner(x)
            case ast.Call(func=ast.Attribute(value=x, attr=name)) if name in LINKS:
                yield self._inner(x)
            case ast.BinOp(
                left=left, op=ast.Div() | ast.Pow() | ast.Sub() | ast.Add() | ast.Mult()
            ) if not isinstance(left, ast.Constant):
                yield self._inner(left) if isinstance(parent, ast.expr) else self._text(left)
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("keepdim", "keepdims", "diagonal", "unbiased", "correction"):
                    yield self._without_keyword(node, keyword)

    def _cancels(self, parent: ast.AST, new: str) -> bool:
        """Whether this new part makes `x / x` or `x - x`, which asks for no thought."""
        match parent:
            case ast.BinOp(left=left, op=ast.Div() | ast.Sub(), right=right):
                return new in (self._text(left), self._text(right))
        return False

    def _without_keyword(self, call: ast.Call, keyword: ast.keyword) -> str:
        whole, at = self._text(call), self._offset(call, keyword)
        before, after = whole[:at].rstrip(), whole[at + len(self._text(keyword)) :]
        if before.endswith(","):
            return before[:-1].rstrip() + after.lstrip()
        return before + after.lstrip().removeprefix(",").lstrip()

    def _changed(self, node: ast.expr, parent: ast.AST) -> Iterator[str]:
        """The texts of an expression with another number, operator or order of arguments."""
        match node:
            case ast.Constant(value=bool(flag)):
                if isinstance(parent, ast.keyword) and parent.arg not in ("keepdim", "keepdims"):
                    yield str(not flag)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(n))):
                if not _is_size(parent):
                    yield str(-n - 1)
            case ast.Constant(value=int(n)) if not _is_fixed(node, parent):
                yield str(n - 1 if n > 0 else 1)
                if n > 0 and not isinstance(parent, ast.Subscript | ast.Call):
                    yield str(n + 1)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                yield f"{self._inner(right)} @ {self._inner(left)}"
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                yield self._between(node, left, right, SIGNS[type(op)], SIGNS[OPPOSITES[type(op)]])
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                for neighbour in NEIGHBOURS[type(op)]:
                    old, new = COMPARED[type(op)], COMPARED[neighbour]
                    yield self._between(node, left, right, old, new)
            case ast.Call(func=ast.Attribute(attr=name) as function, args=args):
                siblings = () if name in DULL else SIBLINGS.get(name, ())
                for other in [one for one in siblings if one[-1] != "_" and one not in DULL][:2]:
                    start = self._text(function).removesuffix(name)
                    yield self._put(node, function, start + other)
                if len(args) > 1 and name in ORDERED:
                    yield self._swapped(node, args[-2], args[-1])


# Another factor asks for arithmetic alone, so `*` and `/` stay.
SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-"}
COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
# Calls whose siblings only raise, or that give a result which is seen without thought.
DULL = ("ModuleList", "arange", "argmin", "dot", "log", "log_softmax", "ones", "removesuffix")
ORDERED = ("where", "masked_fill", "bmm", "matmul", "div", "sub")  # the order of arguments matters


def _bound_to(node: ast.expr, parent: ast.AST) -> str:
    """The name that gets a value; "" if there is none, or several."""
    match parent:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is node:
            return name
    return ""


def _takes_apart(parent: ast.AST, node: ast.expr) -> bool:
    """Whether a statement binds the parts of a value to several names."""
    return (
        isinstance(parent, ast.Assign)
        and parent.value is node
        and isinstance(parent.targets[0], ast.Tuple)
    )


def _is_step(node: ast.expr) -> bool:
    """Whether an expression computes something."""
    return isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Compare)


def _can_go(node: ast.stmt) -> bool:
    """Whether a statement may be left out: one that changes a value, and binds no name."""
    match node:
        case ast.Expr(value=ast.Call(func=function) as call) if not _prints(call):
            text = ast.unparse(function)  # without `append`, a list is empty: that only raises
            return not (text.startswith(("super()", "self.register")) or text.endswith(".append"))
        case ast.AugAssign():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Subscript) for target in targets)
    return False


def _refuses(node: ast.AST) -> bool:
    """Whether a statement only refuses bad input, which the inputs of a question are not."""
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.If) and all(isinstance(one, ast.Raise) for one in node.body)
    )


def _is_fixed(node: ast.expr, parent: ast.AST) -> bool:
    """Whether a number is part of a negative one, or another one would ask for no thought."""
    match parent:
        case ast.UnaryOp() | ast.Call(func=ast.Attribute(attr="expand" | "reshape" | "view")):
            return True
        case ast.BinOp(left=left, op=ast.Sub()):  # as in `1 - p`
            return left is node
    return False


def _is_size(parent: ast.AST) -> bool:
    """Whether a -1 under this node is a size that torch finds out; -2 would only raise."""
    match parent:
        case ast.Tuple():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ("expand", "reshape", "unflatten", "view")
    return False


def _moves(node: ast.AST) -> bool:
    """Whether an expression moves a tensor to a device: what happens without depends on it."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to")):
            return "device" in ast.unparse(node)
    return False


def _prints(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
