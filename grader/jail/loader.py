"""From a submission's text to its definitions, without running it from top to bottom.

Runs in the student's process. A notebook may train for minutes, plot, or read a file that is not
there; so only those top-level statements run that an exercise needs: its definition, and the
imports, definitions and assignments whose names that definition uses, transitively, in the order
in which they stand. They run when the exercise is first called, so that a statement which raises
or never ends costs the exercises that need it and no others.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib.machinery
import importlib.util
import linecache
import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from grader.jail.wire import Argument, Found, Listing, Place, SourceText, Use, Wanted

FUTURE_ANNOTATIONS = 0x1000000  # __future__.annotations.compiler_flag
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
COMPOUND = (ast.If, ast.Try, ast.With, ast.For, ast.While)

# Ways to hide operations from the trace. They are looked for in the text, before any of it runs.
EVASIONS = frozenset(
    {
        "DisableTorchFunction", "DisableTorchFunctionSubclass", "no_dispatch",
        "_DisableFuncTorch", "_DisableTorchDispatch", "_ExcludeDispatchKeyGuard",
        "_ForceDispatchKeyGuard", "_disable_current_modes", "_pop_mode", "_pop_mode_temporarily",
        "_pop_torch_dispatch_stack", "_pop_torch_function_stack", "_python_dispatch",
        "_torch_function_mode_enabled", "_unset_dispatch_mode",
    }
)  # fmt: skip
HIDING_MODULES = ("torch.jit", "torch.overrides", "torch.utils._python_dispatch", "ctypes")


# --- text into statements ------------------------------------------------------------------------


@dataclass
class Statement:
    """One top-level statement: what it binds, what it reads, and whether it has run."""

    node: ast.stmt
    file: SourceFile
    binds: frozenset[str]
    reads: frozenset[str]
    ran: bool = False
    error: BaseException | None = None

    @property
    def place(self) -> Place:
        """Where the statement begins."""
        return self.file.place(self.node.lineno)


@dataclass
class SourceFile:
    """One file of the submission and the namespace its statements run in."""

    name: str
    stem: str
    statements: list[Statement] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    cells: list[tuple[int, int]] = field(default_factory=list)  # (first line, number) per cell
    broken: list[tuple[str, Place, str]] = field(default_factory=list)  # (name, place, message)
    namespace: dict[str, Any] = field(default_factory=dict)

    @property
    def code_name(self) -> str:
        """The file name that tracebacks show; it is no path."""
        return f"<submission>/{self.name}"

    def place(self, line: int) -> Place:
        """A line of this file, told by cell where the file is a notebook."""
        text = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
        if len(self.cells) > 1 or self.name.endswith(".ipynb"):
            first, number = next(((f, n) for f, n in reversed(self.cells) if f <= line), (1, 1))
            return Place(f"{self.name} cell {number}", line - first + 1, text)
        return Place(self.name, line, text)


def read_file(source: SourceText) -> SourceFile:
    """Parse each cell by itself, so that one that does not parse hides no other."""
    stem = re.sub(r"\W", "_", PurePosixPath(source.name).stem)
    file = SourceFile(source.name, stem)
    for number, cell in enumerate(source.cells, start=1):
        offset = len(file.lines)
        text = without_magics(cell) if source.name.endswith(".ipynb") else cell
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
        file.cells.append((offset + 1, number))
        file.lines.extend(text.split("\n"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            message = getattr(error, "msg", None) or str(error) or type(error).__name__
            place = file.place(offset + line)
            file.broken += [(name, place, message) for name in names_in_broken(text)]
            continue
        ast.increment_lineno(tree, offset)
        for node in flatten(tree.body):
            file.statements.append(Statement(node, file, binds(node), reads(node)))
    return file


def without_magics(cell: str) -> str:
    """Blank out what IPython understands and Python does not; line numbers stay."""
    if cell.lstrip().startswith("%%"):
        first = cell.lstrip().split(None, 1)[0]
        if first not in ("%%time", "%%timeit", "%%capture"):
            return "\n" * cell.count("\n")
    lines = []
    for line in cell.split("\n"):
        bare = line.strip()
        magic = bare.startswith(("%", "!", "?")) or (
            bare.endswith("?") and re.fullmatch(r"[\w.]+\?{1,2}", bare) is not None
        )
        # `pass` and not nothing: the magic may be the only line of a block.
        lines.append(line[: len(line) - len(line.lstrip())] + "pass" if magic else line)
        assigned = re.match(r"^(\s*[\w, ]+=\s*)[!%]\S", line)
        if assigned:
            lines[-1] = assigned.group(1) + "None"
    return "\n".join(lines)


def flatten(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those under a plain ``if`` or ``with`` too, main blocks left out."""
    for node in body:
        if isinstance(node, ast.If):
            if is_main_guard(node.test):
                continue
            if not holds_definitions(node):
                yield node
            else:
                yield from flatten(node.body)
                yield from flatten(node.orelse)
        elif isinstance(node, ast.With) and holds_definitions(node):
            yield from flatten(node.body)
        else:
            yield node


def is_main_guard(test: ast.expr) -> bool:
    """Whether this is the test of ``if __name__ == "__main__"``."""
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(test))


def holds_definitions(node: ast.AST) -> bool:
    """Whether a function or a class is defined somewhere inside."""
    return any(isinstance(part, (*FunctionNode.__args__, ast.ClassDef)) for part in ast.walk(node))


def names_in_broken(text: str) -> list[str]:
    """Names that a text defines, as far as can be told without parsing it."""
    return re.findall(r"^\s*(?:async\s+def|def|class)\s+([^\W\d]\w*)", text, re.MULTILINE)


def binds(node: ast.stmt) -> frozenset[str]:
    """The module-level names that a statement makes or changes."""
    if isinstance(node, (*FunctionNode.__args__, ast.ClassDef)):
        return frozenset([node.name])
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return frozenset((alias.asname or alias.name.split(".")[0]) for alias in node.names)
    names: set[str] = set()
    if isinstance(node, ast.Expr):
        return frozenset()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            root: ast.expr = part
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                names.add(root.id)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            names |= binds(part)
        elif isinstance(part, (*FunctionNode.__args__, ast.ClassDef)):
            names.add(part.name)
    return frozenset(names)


def reads(node: ast.stmt) -> frozenset[str]:
    """The module-level names that a statement, or code inside it, looks up when it runs."""
    try:
        module = ast.Module(body=[node], type_ignores=[])
        code = compile(module, "<reads>", "exec", flags=FUTURE_ANNOTATIONS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names: set[str] = set()
    pending = [code]
    while pending:
        current = pending.pop()
        pending += [const for const in current.co_consts if isinstance(const, types.CodeType)]
        for instruction in dis.get_instructions(current):
            if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
                names.add(str(instruction.argval))
    return frozenset(names)


# --- stubs ---------------------------------------------------------------------------------------


class _Skeleton(ast.NodeTransformer):
    """Reduce a definition to what makes two of them the same answer."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.body and isinstance(node.body[0], ast.Expr):
            first = node.body[0].value
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                node.body = node.body[1:]
        node.decorator_list = []
        node.type_comment = None
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
    copy = ast.parse(ast.unparse(node)).body[0]
    return ast.dump(_Skeleton().visit(copy))


def is_untouched(node: ast.stmt) -> bool:
    """Whether nothing has been written: every body only raises NotImplementedError or passes."""
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if isinstance(part, FunctionNode.__args__)]
        return bool(methods) and all(is_untouched(method) for method in methods)
    return isinstance(node, FunctionNode.__args__) and all(map(_says_nothing, node.body))


def _says_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name("NotImplementedError") | ast.Call(ast.Name(
            "NotImplementedError"))):  # fmt: skip
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"))):
            return True
        case _:
            return False


# --- signatures ----------------------------------------------------------------------------------


def arguments_of(node: FunctionNode, method: bool) -> list[Argument]:
    """A function's parameters as its text gives them, without ``self``."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    first_default = len(positional) - len(given.defaults)
    found = [
        Argument(arg.arg, "positional", index >= first_default)
        for index, arg in enumerate(positional)
    ]
    is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    if method and found and not is_static:
        found = found[1:]
    if given.vararg:
        found.append(Argument(given.vararg.arg, "star", True))
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Argument(arg.arg, "keyword", default is not None))
    if given.kwarg:
        found.append(Argument(given.kwarg.arg, "double_star", True))
    return found


# --- the submission ------------------------------------------------------------------------------


class NotBound(Exception):
    """An exercise's definition could not be made; the text says why."""


class Submission:
    """The definitions of one submission, made on demand."""

    def __init__(self, sources: Sequence[SourceText], wanted: Sequence[Wanted]) -> None:
        self.files = [read_file(source) for source in sources]
        self.wanted = wanted
        self.winners: dict[str, Statement] = {}
        self.notes: list[str] = []
        self._modules: dict[str, types.ModuleType] = {}
        self._prefixes = own_prefixes(self.files)
        for file in self.files:
            # tracebacks and inspect.getsource find the text here
            text = "\n".join(file.lines)
            linecache.cache[file.code_name] = (
                len(text), None, text.splitlines(keepends=True), file.code_name,
            )  # fmt: skip
            file.namespace.update(
                __name__=file.stem, __builtins__=builtins, __file__=file.code_name,
                __package__="",
            )  # fmt: skip

    def listing(self) -> Listing:
        """What stands under each exercise's name. No line of the submission runs here."""
        stubs = {w.name: _definition(w.stub, w.name) for w in self.wanted}
        return Listing([self._find(w, stubs[w.name]) for w in self.wanted], self.notes)

    def _find(self, wanted: Wanted, stub: ast.stmt | None) -> Found:
        name = wanted.name
        candidates = [
            statement for file in self.files for statement in file.statements
            if name in statement.binds
            and not (isinstance(statement.node, (ast.Import, ast.ImportFrom)))
            and not _only_changes(statement.node, name)
        ]  # fmt: skip
        empty = skeleton(stub) if stub is not None else None
        written = [
            candidate for candidate in candidates
            if not is_untouched(candidate.node)
            and not (_is_definition(candidate.node) and skeleton(candidate.node) == empty)
        ]  # fmt: skip
        if not written:
            for file in self.files:
                for broken, place, message in file.broken:
                    if broken == name:
                        return Found(name, "broken", place=place, message=message)
            if candidates:
                return Found(name, "stub", place=candidates[-1].place)
            return Found(name, "missing")
        home = [statement for statement in written if statement.file.stem == wanted.unit]
        winner = (home or written)[-1]
        self.winners[name] = winner
        notes = []
        # Earlier versions in one file are ordinary work; two files that disagree are worth a word.
        rivals = {s.file.name for s in home or written} - {winner.file.name}
        if rivals:
            others = ", ".join(sorted(rivals))
            notes.append(f"{name} is defined in {winner.file.name} and in {others}; "
                         f"the one in {winner.file.name} counts")  # fmt: skip
        node = winner.node
        kind = "other"
        arguments = forward = None
        if isinstance(node, FunctionNode.__args__):
            kind, arguments = "function", arguments_of(node, method=False)
        elif isinstance(node, ast.ClassDef):
            kind = "class"
            methods = {p.name: p for p in node.body if isinstance(p, FunctionNode.__args__)}
            if "__init__" in methods:
                arguments = arguments_of(methods["__init__"], method=True)
            if "forward" in methods:
                forward = arguments_of(methods["forward"], method=True)
        return Found(
            name, "found", kind, winner.place, arguments, forward, notes=notes,  # type: ignore[arg-type]
            evasions=self._evasions(winner),
        )  # fmt: skip

    def _evasions(self, winner: Statement) -> list[Use]:
        """Lines of a definition, and of what it uses, that would switch the trace off."""
        found = []
        for statement in self._needed(winner):
            for part in ast.walk(statement.node):
                word = _evasive_word(part)
                if word:
                    line = getattr(part, "lineno", statement.node.lineno)
                    found.append(Use(word, statement.file.place(line)))
        return found

    # --- running only what is needed -------------------------------------------------------------

    def _needed(self, winner: Statement) -> list[Statement]:
        """A statement and all that it uses, transitively, in the order of its file."""
        file = winner.file
        chosen: dict[int, Statement] = {id(winner): winner}
        pending = [winner]
        while pending:
            names = pending.pop().reads
            for statement in file.statements:
                if id(statement) in chosen:
                    continue
                # Another definition of the same exercise is not what this one uses: it lost.
                lost = statement.binds & winner.binds and not _only_changes(
                    statement.node, next(iter(statement.binds & winner.binds))
                )
                star = isinstance(statement.node, ast.ImportFrom) and "*" in statement.binds
                if (
                    star
                    or (statement.binds & names and not lost)
                    or (_only_changes_any(statement.node, winner.binds))
                ):
                    chosen[id(statement)] = statement
                    pending.append(statement)
        return [statement for statement in file.statements if id(statement) in chosen]

    def definition(self, name: str) -> Any:
        """The object under an exercise's name, made by running only what it needs."""
        winner = self.winners.get(name)
        if winner is None:
            raise NotBound(f"there is no definition of {name}")
        self._run(self._needed(winner))
        if winner.error is not None:
            raise winner.error
        if name not in winner.file.namespace:
            raise NotBound(f"{name} was not defined when its line had run")
        return winner.file.namespace[name]

    def _run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if statement.ran:
                continue
            statement.ran = True
            self._borrow(statement)
            module = ast.Module(body=[statement.node], type_ignores=[])
            try:
                code = compile(
                    module, statement.file.code_name, "exec",
                    flags=FUTURE_ANNOTATIONS, dont_inherit=True,
                )  # fmt: skip
                exec(code, statement.file.namespace)
            except BaseException as error:
                # Told when something misses the name: a plot that failed is nobody's concern.
                statement.error = error

    def _borrow(self, statement: Statement) -> None:
        """Fetch names that live in another file of the submission and were not imported."""
        own = frozenset().union(*(s.binds for s in statement.file.statements))
        for name in statement.reads - own - statement.file.namespace.keys() - vars(builtins).keys():
            winner = self.winners.get(name)
            if winner is not None and winner.file is not statement.file:
                try:
                    statement.file.namespace[name] = self.definition(name)
                except BaseException as error:
                    statement.error = error

    def why_missing(self, name: str) -> str:
        """Why a global name is not there: the sentence that a student can act on."""
        for file in self.files:
            for statement in file.statements:
                if name in statement.binds and statement.error is not None:
                    where = statement.place
                    return (
                        f"{name} was not made: {where.file} line {where.line} "
                        f"raised {type(statement.error).__name__}"
                    )
        return (
            f"{name} is not defined in the files that were handed in: "
            "did it exist only in your session?"
        )

    # --- imports among a submission's own files --------------------------------------------------

    def find_spec(self, fullname: str, *_: Any) -> Any:
        """Meta path hook, last in line: an installed package always wins."""
        stem = fullname.rpartition(".")[2]
        own = any(file.stem == stem for file in self.files)
        if own or fullname in self._prefixes:
            spec = importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]
            spec.submodule_search_locations = []
            return spec
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """A module whose attributes are made when they are asked for."""
        return _OwnModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Attach the file, if the module is one and not only a prefix."""
        stem = module.__name__.rpartition(".")[2]
        matches = [file for file in self.files if file.stem == stem]
        if matches:
            module.__dict__["_own"] = (self, matches[-1])
            names = {n for s in matches[-1].statements for n in s.binds if not n.startswith("_")}
            module.__dict__["__all__"] = sorted(names - {"*"})

    def attribute(self, file: SourceFile, name: str) -> Any:
        """A name of a file, running only what it needs."""
        if name not in file.namespace:
            makers = [s for s in file.statements if name in s.binds]
            winner = self.winners.get(name)
            if winner is not None and winner.file is file:
                makers = [winner]
            if not makers:
                raise AttributeError(name)
            self._run(self._needed(makers[-1]))
            if name not in file.namespace:
                raise makers[-1].error or AttributeError(name)
        return file.namespace[name]


class _OwnModule(types.ModuleType):
    """One of the submission's files, imported by another."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_own" not in self.__dict__:
            raise AttributeError(name)
        submission, file = self.__dict__["_own"]
        return submission.attribute(file, name)


def own_prefixes(files: Sequence[SourceFile]) -> frozenset[str]:
    """Package names under which the submission's files import each other."""
    stems = {file.stem for file in files}
    prefixes: set[str] = set()
    for file in files:
        for statement in file.statements:
            for node in ast.walk(statement.node):
                modules: list[str] = []
                if isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module:
                    modules = [node.module]
                    modules += [f"{node.module}.{alias.name}" for alias in node.names]
                for module in modules:
                    parts = module.split(".")
                    for index, part in enumerate(parts):
                        if part in stems:
                            prefixes |= {".".join(parts[:cut]) for cut in range(1, index + 1)}
    return frozenset(prefixes)


class _Relative(ast.NodeTransformer):
    """``from .softmax import x`` means the submission's own file."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level and node.module:
            node.level = 0
        return node


def install(submission: Submission) -> None:
    """Let imports find the submission's own files, after everything that is installed."""
    for file in submission.files:
        for statement in file.statements:
            _Relative().visit(statement.node)
    sys.meta_path.append(submission)  # type: ignore[arg-type]


# --- small questions about syntax ----------------------------------------------------------------


def _definition(text: str, name: str) -> ast.stmt | None:
    for node in ast.parse(text).body:
        if isinstance(node, (*FunctionNode.__args__, ast.ClassDef)) and node.name == name:
            return node
    return None


def _is_definition(node: ast.stmt) -> bool:
    return isinstance(node, (*FunctionNode.__args__, ast.ClassDef))


def _only_changes(node: ast.stmt, name: str) -> bool:
    """Whether a statement changes ``name`` (``name.x = …``, ``name += …``) without making it."""
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return not any(
            isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
            for target in targets for part in ast.walk(target)
        )  # fmt: skip
    return False


def _only_changes_any(node: ast.stmt, names: frozenset[str]) -> bool:
    return any(name in names and _only_changes(node, name) for name in binds(node) & names)


def _evasive_word(node: ast.AST) -> str | None:
    """The word by which a piece of syntax would hide operations from the trace, if it would."""
    if isinstance(node, ast.Attribute):
        if node.attr in EVASIONS:
            return node.attr
        dotted = ast.unparse(node) if isinstance(node.value, (ast.Name, ast.Attribute)) else ""
        return dotted if dotted.startswith(HIDING_MODULES) else None
    if isinstance(node, ast.Name):
        return node.id if node.id in EVASIONS else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value in EVASIONS else None
    if isinstance(node, ast.Import):
        return next((a.name for a in node.names if a.name.startswith(HIDING_MODULES)), None)
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if module.startswith(HIDING_MODULES):
            return module
        dotted = [f"{module}.{a.name}" for a in node.names]
        hidden = [a.name for a in node.names if a.name in EVASIONS]
        return next((d for d in dotted if d.startswith(HIDING_MODULES)), None) or next(
            iter(hidden), None
        )
    return None
