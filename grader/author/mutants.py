"""Mutants: a definition with one thing changed, made by rules and not by hand.

Knows Python's syntax tree and torch's names, and neither the course nor how anything is graded.

An operator looks at one node and tells, as source text, what could stand there instead. An id
names the line within the bare definition (no docstrings, one line per statement), so that
comments, wrapping and other definitions of the file leave it as it is.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class Mutant:
    """A definition that differs from the original in one place."""

    id: str  # causal_mask/L3:diagonal=1->diagonal=0
    description: str  # one line: what stood there, and what stands there now
    definition: str  # Python text, without docstrings and comments


def mutants_of(text: str, name: str) -> list[Mutant]:
    """All mutants of the definition called `name` in a module's text, in order of their place.

    Raises `ValueError` if the text does not define it.
    """
    tree = _bare(text, name)
    original = ast.unparse(tree)
    seen = {original}
    times: Counter[str] = Counter()
    mutants = []
    for place in sorted(_places(tree), key=lambda place: place.position):
        for operator in OPERATORS:
            for new in operator(place):
                definition = place.with_instead(new, tree)
                if definition in seen or not _compiles(definition):
                    continue
                seen.add(definition)
                id = f"{name}/L{place.line}:{place.change(new)}"
                times[id] += 1
                if times[id] > 1:  # the same change elsewhere on the line
                    id = f"{id}#{times[id]}"
                mutants.append(Mutant(id, _described(original, definition), definition))
    return mutants


def _bare(text: str, name: str) -> ast.stmt:
    """The definition without docstrings, its positions those of its own unparsed text."""
    found = None
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            found = node  # the last one counts
    if found is None:
        raise ValueError(f"{name} is not defined")
    for part in ast.walk(found):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:] or [ast.Pass()]
    return ast.parse(ast.unparse(found)).body[0]


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _described(original: str, definition: str) -> str:
    old, new = original.splitlines(), definition.splitlines()
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [opcode for opcode in opcodes if opcode[0] != "equal"]
    _, start, _, new_start, _ = changes[0]
    _, _, end, _, new_end = changes[-1]
    before, after = _one_line(old[start:end]), _one_line(new[new_start:new_end])
    if not before:
        return f"after line {start}: `{after}` is added"
    where = f"line {end}" if end == start + 1 else f"lines {start + 1} to {end}"
    return f"{where}: `{before}` becomes `{after}`" if after else f"{where}: `{before}` is left out"


def _one_line(lines: Sequence[str]) -> str:
    return "; ".join(line.strip() for line in lines).replace(":;", ":")


# --- places --------------------------------------------------------------------------------------

# Parts that say what is computed to people only.
UNTOUCHED = frozenset({"annotation", "returns", "decorator_list", "bases", "type_params", "exc"})

Target = ast.Name | ast.Attribute


@dataclass(frozen=True)
class Place:
    """A node, and where it hangs in the tree."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    scope: Scope

    @property
    def line(self) -> int:
        """The line in the bare definition."""
        return getattr(self.node, "lineno", 0)

    @property
    def position(self) -> tuple[int, int]:
        """Line and column in the bare definition."""
        return self.line, getattr(self.node, "col_offset", 0)

    @property
    def text(self) -> str:
        """The node as source text."""
        return ast.unparse(self.node)

    @property
    def followers(self) -> list[ast.stmt]:
        """The statements below it in the same block."""
        assert self.index is not None
        return list(getattr(self.parent, self.field)[self.index + 1 :])

    def with_instead(self, new: str, tree: ast.stmt) -> str:
        """The tree's text with `new` at this place; the tree stays as it is."""
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
        """``diagonal=1->diagonal=0``: the part of an id that tells mutants of a line apart."""
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
    return f"always {first}"  # a guard is gone, and what it guarded stays


def _places(definition: ast.stmt) -> Iterator[Place]:
    """Every node that may change, each once."""
    attributes = _kin_attributes(definition)

    def within(parent: ast.AST, scope: Scope) -> Iterator[Place]:
        if isinstance(parent, ast.FunctionDef):
            scope = Scope(parent, attributes)
        for name, value in ast.iter_fields(parent):
            if name in UNTOUCHED or isinstance(parent, ast.JoinedStr):
                continue
            for number, node in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(node, ast.AST):
                    index = number if isinstance(value, list) else None
                    yield Place(node, parent, name, index, scope)
                    if not _is_signed_number(node):
                        yield from within(node, scope)

    empty = Scope(ast.parse("def nothing(): pass").body[0], attributes)
    yield from within(definition, empty)


# --- names that could stand for one another ------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """The function around a place."""

    function: ast.AST
    attributes: dict[str, list[str]]  # self's, as `_kin_attributes` tells

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
        """Names that are easily confused: of one kind by annotation, or bound in one manner."""
        groups: dict[str, list[str]] = defaultdict(list)
        for node in ast.walk(self.function):
            match node:
                case ast.arg(arg=name, annotation=ast.AST() as kind):
                    groups[f"argument {ast.unparse(kind)}"].append(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    groups[f"like {_form(value)}"].append(name)
                case ast.Assign(targets=[ast.Tuple(elts=parts)]):
                    groups[f"line {node.lineno}"] += [ast.unparse(part) for part in parts]
        kin: dict[str, list[str]] = defaultdict(list)
        for names in groups.values():
            _introduce(names, kin)
        return kin

    def confused(self, node: Target) -> list[str]:
        """What may be written for this name by mistake: two others at most."""
        text = ast.unparse(node)
        if isinstance(node, ast.Attribute):
            return self.attributes.get(text, [])[:2]
        return [name for name in self.kin.get(text, []) if self.is_bound(name, node.lineno)][:2]

    def is_bound(self, name: str, line: int) -> bool:
        """Whether a local name has a value before this line."""
        return self.bound.get(name, line) < line


def _introduce(names: Sequence[str], kin: dict[str, list[str]]) -> None:
    """Note each name's kin, beginning with the one that follows it."""
    names = list(dict.fromkeys(names))
    for number, name in enumerate(names):
        others = names[number + 1 :] + names[:number]
        kin[name] += [other for other in others if other not in kin[name]]


def _kin_attributes(definition: ast.stmt) -> dict[str, list[str]]:
    """Attributes of self that are made alike, like the three projections."""
    groups: dict[str, list[str]] = defaultdict(list)
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self")) as made]):
                groups[ast.unparse(node.value)].append(ast.unparse(made))
    kin: dict[str, list[str]] = defaultdict(list)
    for names in groups.values():
        _introduce(names, kin)
    return kin


def _form(node: ast.AST) -> str:
    """The shape of an expression, whatever its names are."""
    match node:
        case ast.Name():
            return "_"
        case ast.Attribute(value=value):
            return f"{_form(value)}._"
        case ast.Call(func=function, args=args):
            # What is done to the same argument is alike.
            parts = [arg.id if isinstance(arg, ast.Name) else _form(arg) for arg in args]
            return f"{_form(function)}({','.join(parts)})"
    inner = ",".join(_form(child) for child in ast.iter_child_nodes(node))
    return f"{type(node).__name__}({inner})"


# --- operators: values ---------------------------------------------------------------------------

INFINITY = "torch.inf"


def numbers(place: Place) -> Iterator[str]:
    """A number beside it, its half or double, its opposite; an infinity the other way, or none."""
    match _number(place.node):
        case int(n):
            yield from map(str, (0 if n == 1 else n - 1, n + 1, -n))
        case float(n) if math.isinf(n):
            yield from (INFINITY if n < 0 else f"-{INFINITY}", "0.0")
        case float(n):
            yield from map(repr, (n * 2, n / 2, -n) if n else (1.0,))


def flags(place: Place) -> Iterator[str]:
    """True and False, and what is passed on as one of them."""
    match place.node, place.parent:
        case ast.Constant(value=bool(flag)), _:
            yield str(not flag)
        case ast.Name() | ast.Attribute(), ast.keyword(arg="bias"):
            yield f"not ({place.text})"


def _number(node: ast.AST) -> int | float | None:
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
            positive = _number(operand)
            return None if positive is None else -positive
    return None


def _is_signed_number(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and _number(node) is not None


# --- operators: arithmetic and logic -------------------------------------------------------------

NEIGHBOURS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPPOSITES: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv,
}  # fmt: skip


def comparisons(place: Place) -> Iterator[str]:
    """< for <= and for >, == for !=."""
    match place.node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            for other in NEIGHBOURS[type(op)]:
                yield ast.unparse(ast.Compare(left, [other()], comparators))


def logic(place: Place) -> Iterator[str]:
    """``and`` for ``or``, a ``not`` less, a ``not`` more where no comparison says it."""
    match place.node, place.parent:
        case ast.BoolOp(op=op, values=values), _:
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand), _:
            yield ast.unparse(operand)
        case ast.Name() | ast.Attribute() | ast.Call(), ast.If() | ast.While() | ast.IfExp():
            if place.field == "test":
                yield f"not ({place.text})"


def arithmetic(place: Place) -> Iterator[str]:
    """The opposite operation, operands the other way round, the right operand left out."""
    match place.node:
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) in OPPOSITES:
                yield ast.unparse(ast.BinOp(left, OPPOSITES[type(op)](), right))
            if not isinstance(op, ast.Add | ast.Mult):
                yield ast.unparse(ast.BinOp(right, op, left))
            # A number left out is like another number; a matrix left out is another shape.
            number = isinstance(right, ast.Constant) and not isinstance(op, ast.Pow)
            if not number and not isinstance(op, ast.MatMult):
                yield ast.unparse(left)


# --- operators: calls ----------------------------------------------------------------------------

# Methods and functions of torch that give another tensor of the same kind.
LINKS = frozenset({
    "abs", "amax", "clone", "contiguous", "detach", "exp", "expand", "flatten", "float", "log",
    "masked_fill", "max", "mean", "permute", "relu", "removesuffix", "repeat", "reshape", "softmax",
    "squeeze", "sqrt", "sum", "swapaxes", "t", "to", "transpose", "tril", "triu", "type_as",
    "unsqueeze", "view",
})  # fmt: skip
SIBLINGS = {
    "amax": ("amin", "sum"), "amin": ("amax",), "arange": ("ones", "zeros"), "argmax": ("argmin",),
    "cat": ("stack",), "dot": ("add",), "exp": ("exp2", "log"), "log": ("exp",),
    "log_softmax": ("softmax",), "masked_fill": ("masked_fill_",), "max": ("min",),
    "maximum": ("minimum",), "mean": ("sum",), "min": ("max",), "ModuleList": ("Sequential",),
    "new_ones": ("new_zeros",), "new_zeros": ("new_ones",), "ones": ("zeros", "eye"),
    "rand": ("zeros", "ones"), "randn": ("zeros", "rand"), "removesuffix": ("removeprefix",),
    "softmax": ("log_softmax",), "sqrt": ("square",), "stack": ("cat",), "sum": ("mean",),
    "tril": ("triu",), "triu": ("tril",), "zeros": ("ones",),
}  # fmt: skip
SYMMETRIC = frozenset({"add", "dot", "maximum", "minimum", "mul", "swapaxes", "transpose"})
TRANSPOSES = frozenset({"T", "mT", "H", "mH"})


def links(place: Place) -> Iterator[str]:
    """A link of a chain left out: ``x.contiguous()``, ``torch.exp(x)``, ``self.dropout(x)``."""
    x = _without_link(place)
    if x is not None and not _rebinds(place, x):
        yield x


def _without_link(place: Place) -> str | None:
    match place.node:
        case ast.Attribute(value=x, attr=name) if name in TRANSPOSES:
            return ast.unparse(x)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[x, *_]):
            return ast.unparse(x) if name in LINKS else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[x]):
            return ast.unparse(x)
        case ast.Call(func=ast.Attribute(attr="ModuleList"), args=[ast.GeneratorExp() as parts]):
            return ast.unparse(ast.ListComp(parts.elt, parts.generators))
        case ast.Call(func=ast.Attribute(attr="Parameter" | "ModuleList"), args=[x, *_]):
            return ast.unparse(x)
        case ast.Call(func=ast.Attribute(value=x, attr=name)) if name in LINKS:
            return ast.unparse(x)
    return None


def _rebinds(place: Place, x: str) -> bool:
    """Whether ``x = f(x)`` would become ``x = x``: leaving the statement out says the same."""
    match place.parent:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == x
    return False


def siblings(place: Place) -> Iterator[str]:
    """The function that stands beside it in torch's manual."""
    match place.node, place.parent:
        case ast.Attribute(value=value, attr=name), ast.Call(func=function):
            if function is place.node:
                for other in SIBLINGS.get(name, ()):
                    yield f"({ast.unparse(value)}).{other}"


def arguments(place: Place) -> Iterator[str]:
    """Neighbouring arguments swapped; a keyword, or the last of many, left to its default."""
    match place.node:
        case ast.Call(func=function, args=args, keywords=keywords):
            name = ast.unparse(function).rpartition(".")[2]
            for number, (one, other) in enumerate(pairwise(args)):
                # A tensor where a number belongs ends in a TypeError, which says nothing.
                if name not in SYMMETRIC and _form(one) == _form(other):
                    swapped = [*args[:number], other, one, *args[number + 2 :]]
                    yield ast.unparse(ast.Call(function, swapped, keywords))
            for keyword in keywords:
                if not isinstance(_flag(keyword.value), bool):  # a flag is turned, not left out
                    fewer = [other for other in keywords if other is not keyword]
                    yield ast.unparse(ast.Call(function, args, fewer))
            if len(args) > 3 and name[:1].isupper():
                yield ast.unparse(ast.Call(function, args[:-1], keywords))


def _flag(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def masks(place: Place) -> Iterator[str]:
    """A mask the other way round, or a buffer that torch does not hear of."""
    match place.node, place.parent:
        case node, ast.Call(func=ast.Attribute(attr="masked_fill"), args=[mask, *_]):
            if node is mask:
                yield f"~({place.text})"
        case ast.Expr(value=ast.Call(func=function, args=[ast.Constant(value=str(name)), x])), _:
            if ast.unparse(function) == "self.register_buffer":
                yield f"self.{name} = {ast.unparse(x)}"


# --- operators: names and places -----------------------------------------------------------------


def names(place: Place) -> Iterator[str]:
    """Another name of the same kind: ``W_key`` for ``W_query``, ``d_out`` for ``d_in``."""
    match place.node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            yield from place.scope.confused(place.node)


def tuples(place: Place) -> Iterator[str]:
    """Neighbours swapped where several values are returned or unpacked."""
    match place.node, place.parent:
        case ast.Tuple(elts=parts), ast.Assign() | ast.Return():
            for number in range(len(parts) - 1):
                swapped = [*parts[:number], parts[number + 1], parts[number], *parts[number + 2 :]]
                yield f"({', '.join(map(ast.unparse, swapped))})"


def slices(place: Place) -> Iterator[str]:
    """A bound one further or less far, the other end of it, no slice at all."""
    match place.node, place.parent:
        case ast.Slice(lower=None, upper=None), _:
            return
        case ast.Name(), ast.Slice() | ast.Subscript():
            if place.field in ("lower", "upper", "slice"):
                yield from (f"{place.text} - 1", f"{place.text} + 1")
        case ast.Subscript(value=value, slice=ast.Slice() | ast.Tuple() as index), _:
            yield ast.unparse(value)
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            for number, part in enumerate(parts):
                for other in _other_slices(part):
                    changed = [*map(ast.unparse, parts)]
                    changed[number] = other
                    yield f"({ast.unparse(value)})[{', '.join(changed)}]"


def _other_slices(part: ast.expr) -> Iterator[str]:
    match part:
        case ast.Slice(lower=None, upper=ast.expr() as bound):
            yield from (":", f"{ast.unparse(bound)}:")
        case ast.Slice(lower=ast.expr() as bound, upper=None):
            yield from (":", f":{ast.unparse(bound)}")


def loops(place: Place) -> Iterator[str]:
    """A loop that starts one later, ends one sooner or later, or runs backwards."""
    if place.field != "iter":
        return
    match place.node:
        case ast.Call(func=ast.Name(id="range"), args=[end]):
            stop = f"({ast.unparse(end)})"
            yield from (f"range({stop} - 1)", f"range({stop} + 1)", f"range(1, {stop})")
        case ast.Name() | ast.Attribute():
            text = place.text
            yield from (f"{text}[1:]", f"{text}[:-1]", f"reversed({text})")


# --- operators: statements -----------------------------------------------------------------------


def deletions(place: Place) -> Iterator[str]:
    """A statement less, where what follows still has all its names; a guard less."""
    match place.node:
        case ast.Assign(targets=[ast.Name(id=name)]) if place.scope.is_bound(name, place.line):
            yield ""
        case ast.AugAssign():
            yield ""
        case ast.Expr(value=ast.Call(func=function)):
            if not ast.unparse(function).startswith(("super()", "self.")):
                yield ""
        case ast.If(body=body, orelse=orelse):
            yield "\n".join(map(ast.unparse, orelse))
            if not isinstance(body[0], ast.Raise):
                yield "\n".join(map(ast.unparse, body))


def returns(place: Place) -> Iterator[str]:
    """A return too early: of what was just made, or from within the loop above."""
    if not isinstance(place.parent, ast.FunctionDef):
        return
    match place.node:
        case ast.Assign(targets=[ast.Name(id=name)]) if place.followers:
            if _reads(place.followers[-1], name) or place.scope.is_bound(name, place.line):
                yield f"{place.text}\nreturn {name}"
        case ast.For() as loop if place.followers and isinstance(place.followers[0], ast.Return):
            body = [*loop.body, place.followers[0]]
            yield ast.unparse(ast.For(loop.target, loop.iter, body, [], lineno=loop.lineno))


def _reads(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Return) and any(
        isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)
    )


Operator = Callable[[Place], Iterator[str]]
OPERATORS: tuple[Operator, ...] = (
    numbers, flags, comparisons, logic, arithmetic, links, siblings, arguments, masks, names,
    tuples, slices, loops, deletions, returns,
)  # fmt: skip
