"""Find the definition that counts as an exercise's answer, its parameters, and suspicious lines.

The module reads only syntax, before any line of the submission has run. Therefore student code
cannot forge the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grader.wire import MAX_ITEMS, MAX_NAME, MAX_TEXT, Argument, Found, Use, Wanted
from grader.wire.source import DEFINITIONS, STAR, SourceFile, TopStatement, definition_in

# The attributes of syntax nodes that contain statements, exception handlers or cases.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

# Names with which code could hide operations from the counter. Forbidden operations need no list of
# names: `grader.guest.operations` removes them.
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
NAMING = frozenset({ast.Attribute, ast.Name, ast.Call, ast.Subscript, ast.Import, ast.ImportFrom})
# Functions that look up a name by a text; other texts may say what they like.
BY_TEXT = frozenset(
    {"getattr", "attrgetter", "methodcaller", "__getattribute__", "__getattr__", "get", "pop",
     "import_module", "__import__"}
)  # fmt: skip
OWN = "grader.mine"  # the module from which a student imports their own answers by name
HIDING_MODULES = (
    "grader",
    "torch.library",
    "torch.utils._python_dispatch",
    "ctypes",
    "_thread",
)

# Tensor methods that return a new tensor and do not change the old tensor. Methods that lists, sets
# or modules also have (``add``, ``sort``, ``to``) are left out: the text does not show the type.
GIVES_NEW = frozenset(
    {
        "masked_fill", "masked_scatter", "tril", "triu", "transpose", "permute", "swapaxes", "view",
        "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "expand", "contiguous",
        "repeat_interleave", "softmax", "log_softmax", "exp", "sqrt", "rsqrt", "div", "mul", "sub",
        "neg", "matmul", "bmm", "clamp", "cumsum", "logical_not", "logical_and", "logical_or",
        "nan_to_num", "where",
    }
)  # fmt: skip
IN_PLACE = frozenset({"out", "inplace"})  # arguments with which these methods change a tensor
TORCH = frozenset({"torch", "F", "nn.functional", "torch.nn.functional"})


def find_definitions(
    wanted: Wanted, files: Sequence[SourceFile]
) -> tuple[Found, Sequence[TopStatement]]:
    """The answer to an exercise, and the statements that may define it.

    The first statement that Python runs is the answer; `Found` describes the first statement. Only
    running its conditions shows whether Python runs a statement below an ``if``.

    A stub never counts as an answer. If there are several definitions, those in notebooks have
    priority. Among the remaining definitions, those in a file with the unit's name have priority.
    The last remaining definition counts.

    If the submission has the cells that ran in a kernel, the last cell that binds the name decides:
    its definition or stub counts. If this cell imports the name, the definition in a file counts.
    """
    try:
        return _find(wanted, files)
    except RecursionError:
        return Found(wanted.name, "broken", message="it is nested too deeply to be read"), ()


def _find(wanted: Wanted, files: Sequence[SourceFile]) -> tuple[Found, Sequence[TopStatement]]:
    name = wanted.name
    kernel = next((file for file in files if file.is_kernel), None)
    if kernel is not None:
        files = [f for f in files if f is not kernel] if _imports(kernel, name) else [kernel]
    files = [file for file in files if file.mentions(name)]  # saves parsing the other files
    candidates = [
        statement
        for file in files
        for statement in file.statements
        if name in statement.makes and not statement.is_import
    ]
    if kernel in files:
        candidates = [*last_makers(reversed(candidates))][::-1]
    written = [
        candidate
        for candidate in candidates
        if not is_untouched(candidate.node) and not _is_stub(candidate, wanted.stub)
    ]
    if not written:
        for file in files:
            for broken, place, message in file.broken:
                if broken == name:
                    return Found(name, "broken", place=place, message=message[:MAX_TEXT]), ()
        if candidates:
            return Found(name, "stub", place=candidates[-1].place), ()
        return Found(name, "missing"), ()
    order = {id(file): number for number, file in enumerate(files)}

    def rank(statement: TopStatement) -> tuple[bool, bool, bool, int]:
        file = statement.file
        at_home = file.stem == wanted.unit
        return statement.may_run, file.is_notebook, at_home, order[id(file)]

    # Sorting is stable, so that the last definition of a file comes first.
    ranked = sorted(written, key=rank)[::-1]
    winner = ranked[0]
    running = [statement for statement in ranked[::-1] if statement.may_run]
    notes = [*_notes(wanted, winner, candidates, running, files)]
    return _describe(name, winner, notes), ranked


def last_makers(latest: Iterable[TopStatement]) -> Iterator[TopStatement]:
    """The statements that may give a name its last value; `latest` has its makers, the last first.

    After each of them but the last, the name may still have the value of an earlier statement.
    """
    for statement in latest:
        if statement.may_run:
            yield statement
            if statement.binds_for_sure:
                return


def _imports(kernel: SourceFile, name: str) -> bool:
    """Whether the cells of a kernel import a name, and do not define it afterwards."""
    makers = [statement for statement in kernel.statements if name in statement.makes]
    return makers[-1].is_import if makers else any(STAR in s.makes for s in kernel.statements)


def _notes(
    wanted: Wanted,
    winner: TopStatement,
    candidates: Sequence[TopStatement],
    written: Sequence[TopStatement],
    files: Sequence[SourceFile],
) -> Iterator[str]:
    """Sentences for the student about other files that also define the exercise.

    Such a file may have a different answer, a stub or an unreadable definition. Each sentence says
    which definition counts. Earlier versions in the winner's own file are not mentioned, nor is a
    stub if a notebook has the answer.
    """
    name, counts = wanted.name, f"the one in {winner.file.name} counts"
    if not winner.file.is_notebook and winner.file.stem != wanted.unit:
        for file_name in sorted({c.file.name for c in candidates if c.file.stem == wanted.unit}):
            yield f"{name} is a stub in {file_name}; {counts}"
    last = {id(statement.file): statement for statement in written}  # each file's last definition
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
                f"{name} cannot be read in {broken.within} (see line {broken.line}); the one in "
                f"{winner.place.within} counts"
            )


def _is_stub(candidate: TopStatement, stub: str) -> bool:
    """Whether a definition equals the stub, and still raises NotImplementedError."""
    node = candidate.node
    return candidate.is_definition and _leaves_work(node) and skeleton(node) == stub


def _describe(name: str, winner: TopStatement, notes: list[str]) -> Found:
    match definition_in(winner, name):
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            arguments = _arguments(node, method=False)
            return Found(name, "found", "function", winner.place, arguments, notes=notes)
        case ast.ClassDef() as node:
            methods = {
                part.name: part
                for part in node.body
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
            }
            init, forward = methods.get("__init__"), methods.get("forward")
            return Found(
                name,
                "found",
                "class",
                winner.place,
                _arguments(init, method=True) if init else None,
                _arguments(forward, method=True) if forward else None,
                notes=notes,
            )
    return Found(name, "found", "other", winner.place, notes=notes)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


# --- stubs ---------------------------------------------------------------------------------------


def skeletons(text: str) -> dict[str, str]:
    """The `skeleton` of each stub in a file of the course, which must be trusted.

    A definition without NotImplementedError does not count as a stub: it has been solved.
    """
    nodes = [node for node in ast.parse(text).body if isinstance(node, DEFINITIONS)]
    return {node.name: skeleton(node) for node in nodes if _leaves_work(node)}


def _leaves_work(node: ast.stmt) -> bool:
    """Whether a statement, or one inside it, raises NotImplementedError."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Raise) and _is_placeholder(part):
            return True
        for kind in BLOCKS:
            pending += getattr(part, kind, ())
    return False


class _Skeleton(ast.NodeTransformer):
    """Removes docstrings, annotations and decorators from a definition."""

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
        """Remove the annotation."""
        node.annotation = None
        return node


def skeleton(node: ast.stmt) -> str:
    """A definition without docstrings, annotations and decorators, as text to compare."""
    return ast.dump(_Skeleton().visit(ast.parse(ast.unparse(node)).body[0]))


def is_untouched(node: ast.stmt) -> bool:
    """Whether a function, or each method of a class, only raises NotImplementedError or passes."""
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if _is_function(part)]
        return bool(methods) and all(map(is_untouched, methods))
    return _is_function(node) and all(map(_is_placeholder, node.body))  # type: ignore[attr-defined]


def _is_placeholder(node: ast.stmt) -> bool:
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
    """A function's parameters, read from its text; a method's first parameter is left out."""
    parameters = node.args
    positional = [*parameters.posonlyargs, *parameters.args]
    first_default = len(positional) - len(parameters.defaults)
    found = [
        Argument(arg.arg[:MAX_NAME], "positional", index >= first_default)
        for index, arg in enumerate(positional)
    ]
    if method:
        found = found[1:]
    if parameters.vararg:
        found.append(Argument(parameters.vararg.arg[:MAX_NAME], "star", True))
    for arg, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        found.append(Argument(arg.arg[:MAX_NAME], "keyword", default is not None))
    if parameters.kwarg:
        found.append(Argument(parameters.kwarg.arg[:MAX_NAME], "double_star", True))
    return found[:MAX_ITEMS]


# --- evasions: code that hides operations from the counter ---------------------------------------


def evasions(statement: TopStatement) -> list[Use]:
    """Lines that would stop the counting of operations, or hide operations from the counter."""
    return [
        Use(word, statement.file.place(getattr(part, "lineno", statement.node.lineno)))
        for part in statement.nodes
        if type(part) in NAMING and (word := _evasive_word(part))
    ]


def _evasive_word(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word) if word in EVASIONS:
            return word
        case ast.Subscript(slice=ast.Constant(value=str(word))) if word in EVASIONS:
            return word
        case ast.Call(ast.Name(function) | ast.Attribute(attr=function), texts, keywords) if (
            function in BY_TEXT
        ):
            given = [*texts, *(keyword.value for keyword in keywords)]
            told = [str(text.value) for text in given if isinstance(text, ast.Constant)]
            found = (word if word in EVASIONS else _hiding(word) for word in told)
            return next(filter(None, found), None)
        case ast.Attribute():
            return _hiding(_dotted(node))
        case ast.Import(names):
            return next(filter(None, (_hiding(alias.name) for alias in names)), None)
        case ast.ImportFrom(module=str(module), names=names):
            own = module == OWN  # the statement imports answers of the same submission
            full = [] if own else [f"{module}.{alias.name}" for alias in names]
            named = [alias.name for alias in names if alias.name in EVASIONS]
            return next(filter(None, [*map(_hiding, full), *named]), None)
    return None


def _dotted(node: ast.expr) -> str:
    """An expression as a dotted name, such as ``torch.jit.script``; "" for other expressions."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join(reversed([*words, node.id])) if isinstance(node, ast.Name) else ""


def _hiding(dotted: str) -> str | None:
    return next((m for m in HIDING_MODULES if f"{dotted}.".startswith(f"{m}.")), None)


# --- discarded results ---------------------------------------------------------------------------


def discarded(statement: TopStatement) -> list[Use]:
    """Lines that make a new tensor and discard it, such as ``scores.masked_fill(…)`` alone.

    Only methods of the statement's own variables and functions of torch are considered, because
    methods of other objects may have effects. Lines directly in a ``try`` are left out, because
    they may be meant to raise.
    """
    parts = statement.nodes
    alone: list[tuple[ast.Expr, str, ast.expr]] = []
    for part in parts:
        match part:
            case ast.Expr(ast.Call(ast.Attribute(owner, word), keywords=keywords)) if (
                word in GIVES_NEW and not any(keyword.arg in IN_PLACE for keyword in keywords)
            ):
                alone.append((part, word, owner))
    if not alone:
        return []  # the usual case: saves the walks over the syntax tree below
    own = {part.arg for part in parts if isinstance(part, ast.arg)} - {"self"}
    own |= {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
    tried = {id(inside) for part in parts if isinstance(part, ast.Try) for inside in part.body}
    return [
        Use(word, statement.file.place(line.lineno))
        for line, word, owner in alone
        if _dotted(owner) in own | TORCH and id(line) not in tried
    ]
