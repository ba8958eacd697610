"""Which definition counts as the answer, what it takes, would hide, and throws away.

Works on syntax only, before any line of the submission has run: what is found here cannot have
been forged by student code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grader.wire import MAX_ITEMS, MAX_NAME, MAX_TEXT, Argument, Found, Use, Wanted
from grader.wire.source import DEFINITIONS, STAR, SourceFile, TopStatement

# Where a statement holds others; an exception's handler and a case are kinds of their own.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

# Ways to hide operations from those who count them. What an exercise forbids needs no such list:
# see `grader.guest.operations`.
EVASIONS = frozenset(
    {
        "DisableTorchFunction", "DisableTorchFunctionSubclass", "no_dispatch",
        "_DisableFuncTorch", "_DisableTorchDispatch", "_ExcludeDispatchKeyGuard",
        "_ForceDispatchKeyGuard", "_disable_current_modes", "_pop_mode", "_pop_mode_temporarily",
        "_pop_torch_dispatch_stack", "_pop_torch_function_stack", "_python_dispatch",
        "_torch_function_mode_enabled", "_unset_dispatch_mode", "start_new_thread",
        "start_joinable_thread", "_bootstrap_inner", "_getframe",
    }
)  # fmt: skip
TELLING = frozenset({ast.Attribute, ast.Name, ast.Constant, ast.Import, ast.ImportFrom})
OWN = "grader.mine"  # a student's own answers by name: see there, and `grader.guest.loader`
HIDING_MODULES = (
    "grader",
    "torch.library",
    "torch.utils._python_dispatch",
    "ctypes",
    "_thread",
)

# Tensor methods that give a new tensor and leave the old one as it was. Names that lists, sets or
# modules share (``add``, ``sort``, ``to``) are not here: the text alone does not tell them apart.
GIVES_NEW = frozenset(
    {
        "masked_fill", "masked_scatter", "tril", "triu", "transpose", "permute", "swapaxes", "view",
        "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "expand", "contiguous",
        "repeat_interleave", "softmax", "log_softmax", "exp", "sqrt", "rsqrt", "div", "mul", "sub",
        "neg", "matmul", "bmm", "clamp", "cumsum", "logical_not", "logical_and", "logical_or",
        "nan_to_num", "where",
    }
)  # fmt: skip
IN_PLACE = frozenset({"out", "inplace"})  # arguments with which they do change a tensor
TORCH = frozenset({"torch", "F", "nn.functional", "torch.nn.functional"})


def find_definitions(
    wanted: Wanted, files: Sequence[SourceFile]
) -> tuple[Found, TopStatement | None]:
    """What stands under an exercise's name, and the statement that counts.

    A stub never counts. A notebook's answer counts before a file's; among notebooks, and among
    files, that of the one named like the unit, else of the last in order; in it, the last one.
    In a kernel the last cell that makes the name decides, by a definition, a stub or an import.
    """
    try:
        return _find(wanted, files)
    except RecursionError:
        message = "it is nested too deeply to be read"
        return Found(wanted.name, "broken", message=message), None


def _find(wanted: Wanted, files: Sequence[SourceFile]) -> tuple[Found, TopStatement | None]:
    name = wanted.name
    kernel = next((file for file in files if file.is_kernel), None)
    if kernel is not None:
        files = [f for f in files if f is not kernel] if _imports(kernel, name) else [kernel]
    files = [file for file in files if file.mentions(name)]  # others need not even be parsed
    candidates = [
        statement
        for file in files
        for statement in file.statements
        if name in statement.makes and not statement.is_import
    ]
    if kernel in files:
        candidates = candidates[-1:]
    written = [
        candidate
        for candidate in candidates
        if not is_untouched(candidate.node) and not _is_stub(candidate, wanted.stub)
    ]
    if not written:
        for file in files:
            for broken, place, message in file.broken:
                if broken == name:
                    told = message[:MAX_TEXT]
                    return Found(name, "broken", place=place, message=told), None
        if candidates:
            return Found(name, "stub", place=candidates[-1].place), None
        return Found(name, "missing"), None
    first = [statement for statement in written if statement.file.is_notebook] or written
    at_home = [statement for statement in first if statement.file.stem == wanted.unit]
    winner = (at_home or first)[-1]
    return _describe(name, winner, _told(wanted, winner, candidates, written, files)), winner


def _imports(kernel: SourceFile, name: str) -> bool:
    """Whether the cells that ran import a name, and do not define it afterwards."""
    makers = [statement for statement in kernel.statements if name in statement.makes]
    return makers[-1].is_import if makers else any(STAR in s.makes for s in kernel.statements)


def _told(
    wanted: Wanted,
    winner: TopStatement,
    candidates: Sequence[TopStatement],
    written: Sequence[TopStatement],
    files: Sequence[SourceFile],
) -> Iterator[str]:
    """That other files have another answer, a stub or what cannot be read, and which one counts.

    Earlier versions in the same file are ordinary work, and so is a notebook instead of a file.
    """
    name, counts = wanted.name, f"the one in {winner.file.name} counts"
    if not winner.file.is_notebook and winner.file.stem != wanted.unit:
        for file_name in sorted({c.file.name for c in candidates if c.file.stem == wanted.unit}):
            yield f"{name} is a stub in {file_name}; {counts}"
    last = {id(statement.file): statement for statement in written}  # of each file
    others = [
        statement.file.name
        for statement in last.values()
        if statement.file is not winner.file and skeleton(statement.node) != skeleton(winner.node)
    ]
    if others:
        listed = ", ".join(sorted(others))[:MAX_NAME]
        yield f"{name} is defined in {listed} and in {winner.file.name}; {counts}"
    for file in files:
        broken = next((place for broken, place, _ in file.broken if broken == name), None)
        if broken is not None:
            yield (
                f"{name} cannot be read in {broken.within} (line {broken.line} is not valid "
                f"Python); the one in {winner.place.within} counts"
            )


def _is_stub(candidate: TopStatement, stub: str) -> bool:
    """Whether a definition is still the stub; one that leaves nothing to do cannot be."""
    node = candidate.node
    return candidate.is_definition and _leaves_work(node) and skeleton(node) == stub


def _describe(name: str, winner: TopStatement, told: Iterable[str]) -> Found:
    notes = [*told]
    match winner.node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = _arguments(winner.node, method=False)
            return Found(name, "found", "function", winner.place, arguments, notes=notes)
        case ast.ClassDef():
            methods = {
                part.name: part
                for part in winner.node.body
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
            }
            made, called = methods.get("__init__"), methods.get("forward")
            return Found(
                name,
                "found",
                "class",
                winner.place,
                _arguments(made, method=True) if made else None,
                _arguments(called, method=True) if called else None,
                notes=notes,
            )
    return Found(name, "found", "other", winner.place, notes=notes)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


# --- stubs ---------------------------------------------------------------------------------------


def skeletons(text: str) -> dict[str, str]:
    """The skeleton of each definition in a file of stubs. Only for text that is trusted.

    One that raises no NotImplementedError any more is no stub: someone has solved it in place.
    """
    nodes = [node for node in ast.parse(text).body if isinstance(node, DEFINITIONS)]
    return {node.name: skeleton(node) for node in nodes if _leaves_work(node)}


def _leaves_work(node: ast.stmt) -> bool:
    """Whether a statement, or one inside it, raises NotImplementedError."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Raise) and _says_nothing(part):
            return True
        for kind in BLOCKS:
            pending += getattr(part, kind, ())
    return False


class _Skeleton(ast.NodeTransformer):
    """Reduce a definition to what makes two of them the same answer."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        match node.body[:1]:
            case [ast.Expr(ast.Constant(str()))]:
                node.body = node.body[1:]
        node.decorator_list = []
        if hasattr(node, "returns"):
            node.returns = None
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _strip  # noqa: N815

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Annotations say nothing about the answer."""
        node.annotation = None
        return node


def skeleton(node: ast.stmt) -> str:
    """A definition without docstrings, annotations and decorators, as text to compare."""
    return ast.dump(_Skeleton().visit(ast.parse(ast.unparse(node)).body[0]))


def is_untouched(node: ast.stmt) -> bool:
    """Whether nothing has been written: every body only raises NotImplementedError or passes."""
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if _is_function(part)]
        return bool(methods) and all(map(is_untouched, methods))
    return _is_function(node) and all(map(_says_nothing, node.body))  # type: ignore[attr-defined]


def _says_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(ast.Constant()):
            return True
        case ast.Raise(ast.Name("NotImplementedError")):
            return True
        case ast.Raise(ast.Call(ast.Name("NotImplementedError"))):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"), args=[])):
            return True
    return False


# --- signatures ----------------------------------------------------------------------------------


def _arguments(node: FunctionNode, method: bool) -> list[Argument]:
    """A function's parameters as its text gives them, without ``self``."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    first_default = len(positional) - len(given.defaults)
    found = [
        Argument(arg.arg[:MAX_NAME], "positional", index >= first_default)
        for index, arg in enumerate(positional)
    ]
    if method:
        found = found[1:]
    if given.vararg:
        found.append(Argument(given.vararg.arg[:MAX_NAME], "star", True))
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Argument(arg.arg[:MAX_NAME], "keyword", default is not None))
    if given.kwarg:
        found.append(Argument(given.kwarg.arg[:MAX_NAME], "double_star", True))
    return found[:MAX_ITEMS]


# --- evasions ------------------------------------------------------------------------------------


def evasions(statement: TopStatement) -> list[Use]:
    """Lines that would switch the trace of operations off, or hide operations from it."""
    return [
        Use(word, statement.file.place(getattr(part, "lineno", statement.node.lineno)))
        for part in statement.nodes
        if type(part) in TELLING and (word := _evasive_word(part))
    ]


def _evasive_word(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word) | ast.Constant(value=str(word)) if (
            word in EVASIONS
        ):
            return word
        case ast.Attribute():
            return _hiding(_dotted(node))
        case ast.Import(names):
            return next(filter(None, (_hiding(alias.name) for alias in names)), None)
        case ast.ImportFrom(module=str(module), names=names):
            own = module == OWN  # it brings answers of the same submission
            full = [] if own else [f"{module}.{alias.name}" for alias in names]
            named = [alias.name for alias in names if alias.name in EVASIONS]
            return next(filter(None, [*map(_hiding, full), *named]), None)
    return None


def _dotted(node: ast.expr) -> str:
    """``torch.jit.script`` of an attribute of attributes of a name; empty for others."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join(reversed([*words, node.id])) if isinstance(node, ast.Name) else ""


def _hiding(dotted: str) -> str | None:
    return next((m for m in HIDING_MODULES if f"{dotted}.".startswith(f"{m}.")), None)


# --- thrown away ---------------------------------------------------------------------------------


def thrown_away(statement: TopStatement) -> list[Use]:
    """Lines that make a new tensor and do nothing with it: ``scores.masked_fill(…)`` alone.

    Only of what the answer itself names, or a function of torch: whatever an attribute or another
    module holds may do something else. What stands in a ``try`` may be there to raise.
    """
    parts = statement.nodes
    alone: list[tuple[ast.Expr, str, ast.expr]] = []
    for part in parts:
        match part:
            case ast.Expr(ast.Call(ast.Attribute(of, word), keywords=keywords)) if (
                word in GIVES_NEW and not any(keyword.arg in IN_PLACE for keyword in keywords)
            ):
                alone.append((part, word, of))
    if not alone:
        return []  # nearly everyone
    own = {part.arg for part in parts if isinstance(part, ast.arg)} - {"self"}
    own |= {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
    tried = {id(inside) for part in parts if isinstance(part, ast.Try) for inside in part.body}
    return [
        Use(word, statement.file.place(line.lineno))
        for line, word, of in alone
        if _dotted(of) in own | TORCH and id(line) not in tried
    ]
