"""Makes mutants: copies of a definition, each with a single change that a rule makes.

This module knows Python's syntax tree and torch's names, but not the course or the grading.

The rules are called operators. An operator looks at a spot, which is a node of the syntax tree, and
yields replacements for that node as source text. A mutant's id has the number of the line within
the bare definition, which has no docstrings and one line per statement. Therefore an id stays the
same if comments, line breaks or other definitions of the file change.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from grader.author.spots import Spot, form_of, number_of, spots_in
from grader.wire.changes import LINKS, NEIGHBOURS, OPPOSITES, SIBLINGS, TRANSPOSES


@dataclass(frozen=True)
class Mutant:
    """A definition that differs from the original in one place."""

    id: str  # such as causal_mask/L3:diagonal=1->diagonal=0
    line: int  # the first line of the changed statement in the module's source
    description: str  # one line: the old text and the new text
    definition: str  # Python text, without docstrings and comments


def mutants_of(text: str, name: str) -> list[Mutant]:
    """All mutants of the definition `name` in a module's source, in the order of their spots.

    Raises `ValueError` if the source does not define `name`.
    """
    tree, lines = _bare(text, name)
    original = ast.unparse(tree)
    seen = {original}
    times: Counter[str] = Counter()
    mutants = []
    for place in sorted(spots_in(tree), key=lambda place: place.position):
        for operator in OPERATORS:
            for new in operator(place):
                definition = place.with_instead(new, tree)
                if definition in seen or not _compiles(definition):
                    continue
                seen.add(definition)
                id = f"{name}/L{place.line}:{place.change(new)}"
                times[id] += 1
                if times[id] > 1:  # the same change at another place in the line
                    id = f"{id}#{times[id]}"
                described = _described(original, definition)
                mutants.append(Mutant(id, lines.get(place.line, lines[1]), described, definition))
    return mutants


def _bare(text: str, name: str) -> tuple[ast.stmt, Mapping[int, int]]:
    """The definition's syntax tree without docstrings; line numbers begin at the definition.

    Also, for each line of the tree, the line in `text`.
    """
    found = None
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            found = node  # the last definition counts
    if found is None:
        raise ValueError(f"{name} is not defined")
    for part in ast.walk(found):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:] or [ast.copy_location(ast.Pass(), part.body[0])]
    bare = ast.parse(ast.unparse(found)).body[0]
    lines: dict[int, int] = {}
    for new, old in zip(ast.walk(bare), ast.walk(found), strict=False):
        if isinstance(new, ast.stmt | ast.expr) and isinstance(old, ast.stmt | ast.expr):
            lines.setdefault(new.lineno, old.lineno)  # `walk` yields statements before their parts
    return bare, lines


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


# --- operators: values ---------------------------------------------------------------------------

INFINITY = "torch.inf"


def numbers(place: Spot) -> Iterator[str]:
    """Replace a number: an integer by the next or previous integer, a float by its double or half.

    Either may be replaced by its negative, and infinity by 0.
    """
    match number_of(place.node):
        case int(n):
            yield from map(str, (0 if n == 1 else n - 1, n + 1, -n))
        case float(n) if math.isinf(n):
            yield from (INFINITY if n < 0 else f"-{INFINITY}", "0.0")
        case float(n):
            yield from map(repr, (n * 2, n / 2, -n) if n else (1.0,))


def flags(place: Spot) -> Iterator[str]:
    """Negate True or False, or a variable that is passed as ``bias``."""
    match place.node, place.parent:
        case ast.Constant(value=bool(flag)), _:
            yield str(not flag)
        case ast.Name() | ast.Attribute(), ast.keyword(arg="bias"):
            yield f"not ({place.text})"


# --- operators: arithmetic and logic -------------------------------------------------------------


def comparisons(place: Spot) -> Iterator[str]:
    """Replace a comparison by a similar comparison: ``<`` by ``<=`` or ``>``, ``==`` by ``!=``."""
    match place.node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            for other in NEIGHBOURS[type(op)]:
                yield ast.unparse(ast.Compare(left, [other()], comparators))


def logic(place: Spot) -> Iterator[str]:
    """Swap ``and`` and ``or``, remove a ``not``, or negate a condition without a comparison."""
    match place.node, place.parent:
        case ast.BoolOp(op=op, values=values), _:
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand), _:
            yield ast.unparse(operand)
        case ast.Name() | ast.Attribute() | ast.Call(), ast.If() | ast.While() | ast.IfExp():
            if place.field == "test":
                yield f"not ({place.text})"


def arithmetic(place: Spot) -> Iterator[str]:
    """Replace an operation by its opposite, swap its operands, or remove the right operand."""
    match place.node:
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) in OPPOSITES:
                yield ast.unparse(ast.BinOp(left, OPPOSITES[type(op)](), right))
            if not isinstance(op, ast.Add | ast.Mult):
                yield ast.unparse(ast.BinOp(right, op, left))
            # Do not remove a number: `numbers` changes numbers. Do not remove a factor of a matrix
            # product: the result would have a wrong shape.
            number = isinstance(right, ast.Constant) and not isinstance(op, ast.Pow)
            if not number and not isinstance(op, ast.MatMult):
                yield ast.unparse(left)


# --- operators: calls ----------------------------------------------------------------------------

SYMMETRIC = frozenset({"add", "dot", "maximum", "minimum", "mul", "swapaxes", "transpose"})


def links(place: Spot) -> Iterator[str]:
    """Replace a call by its input: ``x.contiguous()``, ``torch.exp(x)``, ``self.dropout(x)``."""
    x = _without_link(place)
    if x is not None and not _rebinds(place, x):
        yield x


def _without_link(place: Spot) -> str | None:
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


def _rebinds(place: Spot, x: str) -> bool:
    """Whether ``x = f(x)`` would become ``x = x``, which equals a mutant without the statement."""
    match place.parent:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == x
    return False


def siblings(place: Spot) -> Iterator[str]:
    """Replace a function of torch by a related function, such as ``sum`` by ``mean``."""
    match place.node, place.parent:
        case ast.Attribute(value=value, attr=name), ast.Call(func=function):
            if function is place.node:
                for other in SIBLINGS.get(name, ()):
                    yield f"({ast.unparse(value)}).{other}"


def arguments(place: Spot) -> Iterator[str]:
    """Swap neighbouring arguments, or remove a keyword argument or the last argument."""
    match place.node:
        case ast.Call(func=function, args=args, keywords=keywords):
            name = ast.unparse(function).rpartition(".")[2]
            for number, (one, other) in enumerate(pairwise(args)):
                # Swap only similar arguments: a tensor in place of a number is just a TypeError.
                if name not in SYMMETRIC and form_of(one) == form_of(other):
                    swapped = [*args[:number], other, one, *args[number + 2 :]]
                    yield ast.unparse(ast.Call(function, swapped, keywords))
            for keyword in keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if not isinstance(value, bool):  # `flags` changes True and False
                    fewer = [other for other in keywords if other is not keyword]
                    yield ast.unparse(ast.Call(function, args, fewer))
            if len(args) > 3 and name[:1].isupper():
                yield ast.unparse(ast.Call(function, args[:-1], keywords))


def masks(place: Spot) -> Iterator[str]:
    """Invert a mask, or replace ``register_buffer`` by a plain attribute."""
    match place.node, place.parent:
        case node, ast.Call(func=ast.Attribute(attr="masked_fill"), args=[mask, *_]):
            if node is mask:
                yield f"~({place.text})"
        case ast.Expr(value=ast.Call(func=function, args=[ast.Constant(value=str(name)), x])), _:
            if ast.unparse(function) == "self.register_buffer":
                yield f"self.{name} = {ast.unparse(x)}"


# --- operators: names and places -----------------------------------------------------------------


def names(place: Spot) -> Iterator[str]:
    """Replace a name by a similar name: ``W_query`` by ``W_key``, ``d_in`` by ``d_out``."""
    match place.node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            yield from place.scope.confused(place.node)


def tuples(place: Spot) -> Iterator[str]:
    """Swap neighbours among several values that are returned or assigned together."""
    match place.node, place.parent:
        case ast.Tuple(elts=parts), ast.Assign() | ast.Return():
            for number in range(len(parts) - 1):
                swapped = [*parts[:number], parts[number + 1], parts[number], *parts[number + 2 :]]
                yield f"({', '.join(map(ast.unparse, swapped))})"


def slices(place: Spot) -> Iterator[str]:
    """Move a bound by 1, take the part on the other side of a bound, or remove a slice."""
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


def loops(place: Spot) -> Iterator[str]:
    """Make a loop start one step later, end one step sooner or later, or run backwards."""
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


def deletions(place: Spot) -> Iterator[str]:
    """Remove a statement, unless a name would have no value; or remove a condition."""
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


def returns(place: Spot) -> Iterator[str]:
    """Add an early return: of the value just assigned, or at the end of a loop's first step."""
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


Operator = Callable[[Spot], Iterator[str]]
OPERATORS: tuple[Operator, ...] = (
    numbers, flags, comparisons, logic, arithmetic, links, siblings, arguments, masks, names,
    tuples, slices, loops, deletions, returns,
)  # fmt: skip
