"""A submission's text as statements, with the names that each statement makes, changes and reads.

The module reads only syntax, and runs no statement. A submission is parsed in the student's process
only, since the trusted process does not parse hostile text. Files are parsed, and statements
compiled, only on demand.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import re
import sys
import types
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from grader.wire import KERNEL, MAX_NAME, Place, SourceText
from grader.wire.checks import without_checks
from grader.wire.ipython import as_python, has_prompts, magic_of, without_commands

# The flag __future__.annotations.compiler_flag, with which Python evaluates no type hint.
FUTURE_ANNOTATIONS = 0x1000000
# The start of a submission's file names in tracebacks, which are not paths of real files.
CODE_PREFIX = "<submission>/"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Statements that may run, or not run, the statements inside.
BRANCHING = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(ast.Try, ast.TryStar, ast.Match),
)
MAIN = "__main__"  # the name of the module that Python runs, as every notebook's cells see it
STAR = "*"
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

OTHER_CELL = "makes this a {} cell: its code does not run in the notebook, and defines nothing"

# Bytecode instructions that look up a name outside of a function; each Python version has some.
LOOKUPS = frozenset(
    dis.opmap[name]
    for name in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    if name in dis.opmap
)
LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]


@dataclass
class TopStatement:
    """A top-level statement: its names, whether it has run, and its exception if it raised."""

    node: ast.stmt
    file: SourceFile
    makes: frozenset[str]  # module-level names that the statement binds
    changes: frozenset[str]  # names whose objects it changes: name.x = 1, name[0] = 1, name += 1
    guards: tuple[Guard, ...] = ()  # the conditions under which Python runs the statement
    ran: bool = False
    error: BaseException | None = None
    bound: frozenset[str] = frozenset()  # the names that it has bound when it ran

    @property
    def may_run(self) -> bool:
        """Whether the text leaves open that Python runs the statement; ``if False:`` does not."""
        return all(condition.constant in (None, holds) for condition, holds in self.guards)

    @property
    def binds_for_sure(self) -> bool:
        """Whether the statement binds its names whenever its file runs."""
        sure = all(condition.constant is holds for condition, holds in self.guards)
        return sure and not isinstance(self.node, BRANCHING)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All syntax nodes of the statement, cached because several functions walk over them."""
        return nodes(self.node)

    @cached_property
    def code(self) -> types.CodeType:
        """The compiled code; raises one of `UNPARSABLE` if the statement does not compile."""
        node = self.node if self.file.checks else without_checks(self.node)
        if self.file.own_modules:
            node = _OwnImports(self.file.own_modules).visit(copy.deepcopy(node))
        module = ast.Module(body=[node], type_ignores=[])
        code: types.CodeType = compile(
            module, self.file.code_name, "exec", flags=FUTURE_ANNOTATIONS, dont_inherit=True
        )
        return code

    @property
    def looks_up(self) -> frozenset[str]:
        """Module-level names that the statement looks up while it runs."""
        return self._lookups[0]

    @property
    def reads(self) -> frozenset[str]:
        """Names whose statements must run before this statement."""
        return self.looks_up

    @property
    def calls_on(self) -> frozenset[str]:
        """Module-level names that the statement's functions look up later, when they are called."""
        return self._lookups[1]

    @cached_property
    def _lookups(self) -> tuple[frozenset[str], frozenset[str]]:
        try:
            return lookups(self.code)
        except UNPARSABLE:
            return frozenset(), frozenset()

    @property
    def place(self) -> Place:
        """The line where the statement begins."""
        return self.file.place(self.node.lineno)

    @property
    def is_definition(self) -> bool:
        """Whether the statement is a ``def`` or a ``class``."""
        return isinstance(self.node, DEFINITIONS)

    @property
    def is_import(self) -> bool:
        """Whether the statement is an import."""
        return isinstance(self.node, (ast.Import, ast.ImportFrom))


@dataclass
class Condition(TopStatement):
    """The condition of an ``if`` that contains definitions; running it gives its `value`."""

    constant: bool | None = None  # the value, if the text alone shows it
    value: bool | None = None

    @property
    def reads(self) -> frozenset[str]:
        """See `TopStatement.reads`; texts count too: ``if "helper" in globals():``."""
        texts = (part.value for part in self.nodes if isinstance(part, ast.Constant))
        return self.looks_up | {text for text in texts if isinstance(text, str)}

    @cached_property
    def code(self) -> types.CodeType:
        """The compiled code, to be evaluated; see `TopStatement.code`."""
        assert isinstance(self.node, ast.Expr)
        code: types.CodeType = compile(
            ast.Expression(self.node.value), self.file.code_name, "eval", FUTURE_ANNOTATIONS, True
        )
        return code


class _OwnImports(ast.NodeTransformer):
    """Lets imports find the student's ``code.py``, as in Python, and not Python's own module."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own

    def visit_Import(self, node: ast.Import) -> ast.Import:
        """Rename ``import code``."""
        for alias in node.names:
            if alias.name in self._own:
                alias.asname = alias.asname or alias.name
                alias.name = self._own[alias.name]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        """Rename ``from code import helper``."""
        if not node.level:
            node.module = self._own.get(node.module or "", node.module)
        return node


Guard = tuple[Condition, bool]  # a condition, and its value with which Python runs a statement

# A name that is defined in a cell that does not run; a place; what is wrong there, as a predicate.
Broken = tuple[str, Place, str]


@dataclass
class SourceFile:
    """A file of the submission, and the namespace of its statements."""

    name: str
    stem: str
    texts: list[str] = field(default_factory=list)  # the text of each cell
    lines: list[str] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)  # the first line of each cell
    namespace: dict[str, Any] = field(default_factory=dict)
    # The submission's files that are named like a module of the standard library: their names in
    # imports, and the full names under which they are modules.
    own_modules: Mapping[str, str] = field(default_factory=dict)
    checks: bool = True  # whether statements that only check or print are compiled

    @property
    def statements(self) -> list[TopStatement]:
        """The top-level statements of the cells that parse."""
        return self._parsed[0]

    @property
    def broken(self) -> list[Broken]:
        """The definitions in the cells that do not parse, or that IPython does not run."""
        return self._parsed[1]

    @cached_property
    def taken_names(self) -> frozenset[str]:
        """The names that the file takes from other files: its attributes and imported names."""
        found = [node for statement in self.statements for node in statement.nodes]
        attributes = {node.attr for node in found if isinstance(node, ast.Attribute)}
        return frozenset(
            attributes.union(node.name for node in found if isinstance(node, ast.alias))
        )

    @cached_property
    def _parsed(self) -> tuple[list[TopStatement], list[Broken]]:
        """Parse each cell by itself: after a syntax error, the other cells are still usable."""
        statements: list[TopStatement] = []
        broken: list[Broken] = []
        for first, text in zip(self.cells, self.texts, strict=True):
            if self.is_notebook and (magic := magic_of(text)):
                place = self.place(first + len(text[: text.find("%%")].split("\n")) - 1)
                broken += [
                    (name, place, OTHER_CELL.format(magic)) for name in names_in_broken(text)
                ]
            try:
                tree = parse(text, magics=self.is_notebook, first=first)
                statements += [*self._flat(tree.body, ())]
            except UNPARSABLE:
                broken += self._broken(first, text)
        return statements, broken

    def _flat(self, body: Iterable[ast.stmt], guards: tuple[Guard, ...]) -> Iterator[TopStatement]:
        """The statements of a block; an ``if`` with definitions is taken apart.

        The statements inside an ``if`` have its condition among their `guards`.
        """
        for node in body:
            if isinstance(node, ast.If | ast.While) and self._is_taken_apart(node):
                test = ast.copy_location(ast.Expr(node.test), node.test)
                constant = _constant(node.test, self.is_notebook)
                condition = Condition(test, self, *_binds(test), guards, constant=constant)
                yield condition
                yield from self._flat(node.body, (*guards, (condition, True)))
                yield from self._flat(node.orelse, (*guards, (condition, False)))
            else:
                yield TopStatement(node, self, *_binds(node), guards)

    def _is_taken_apart(self, node: ast.If | ast.While) -> bool:
        if isinstance(node, ast.While):  # a loop that never begins
            return _constant(node.test, self.is_notebook) is False
        return _holds_definitions(node) or "__name__" in _names(node.test)

    def _broken(self, first: int, text: str) -> Iterator[Broken]:
        """The names defined in a cell that does not parse, each with the place and the error.

        The cell is parsed again without blank lines in front, because Python's message may contain
        a line number.
        """
        try:
            parse(text, magics=self.is_notebook)
        except UNPARSABLE as error:
            place = self.place(first - 1 + (getattr(error, "lineno", None) or 1))
            message = f"is not valid Python{_newer(error, place.text)}: {_shown(error, text)}"
            for name in names_in_broken(text):
                yield name, place, message

    @cached_property
    def _searchable(self) -> str:
        """The text in which to search for names.

        Python normalises names to NFKC. Therefore the text also contains its own NFKC form, unless
        the file is ASCII.
        """
        text = "\n".join(self.lines)
        return text if text.isascii() else text + unicodedata.normalize("NFKC", text)

    def mentions(self, name: str) -> bool:
        """Whether a name occurs anywhere in the file's text, which need not be parsed for this."""
        return name in self._searchable

    @property
    def code_name(self) -> str:
        """The name of the file in tracebacks."""
        return CODE_PREFIX + self.name

    @property
    def is_notebook(self) -> bool:
        """Whether lines are counted from the top of their cell, not of the file."""
        return self.is_kernel or self.name.endswith(".ipynb")

    @property
    def is_kernel(self) -> bool:
        """Whether the cells are those that ran in a kernel, not those of a saved notebook."""
        return self.name == KERNEL

    def place(self, line: int) -> Place:
        """The `Place` of a line of this file; in a notebook, lines are counted within a cell."""
        text = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
        if not self.is_notebook:
            return Place(self.name, line, text)
        cell = max((n for n, first in enumerate(self.cells, 1) if first <= line), default=1)
        return Place(self.name, line - self.cells[cell - 1] + 1, text, cell)


def _shown(error: BaseException, text: str) -> str:
    """Python's message about a syntax error, followed by the line and a mark below the column."""
    message = str(getattr(error, "msg", None) or error) or type(error).__name__
    line, column = getattr(error, "lineno", None) or 0, getattr(error, "offset", None) or 0
    lines = text.splitlines()
    if not (0 < line <= len(lines) and 0 < column <= len(lines[line - 1]) + 1 <= MAX_NAME):
        return message
    code = lines[line - 1].lstrip()
    before = column - 1 - (len(lines[line - 1]) - len(code))
    return f"{message}\n  {code}\n  {' ' * before}^" if before >= 0 else message


# Syntax of later versions of Python: the version, a pattern of the line, or of Python's message.
NEWER = (
    ((3, 12), r"^(type \w+|(async )?(def|class) \w+ ?\[)", r"^f-string"),
    ((3, 14), r"^except [\w.]+ ?,[^(]*:|\bt[\"']", "$^"),
)


def _newer(error: BaseException, line: str) -> str:
    """The versions of Python, if the line is probably valid in a later version than this."""
    message = str(getattr(error, "msg", None) or "")
    for version, in_line, in_message in NEWER:
        found = re.search(in_line, line.strip()) or re.search(in_message, message)
        if found and sys.version_info < version:
            here = f"{sys.version_info.major}.{sys.version_info.minor}"
            later = ".".join(map(str, version))
            return f" {here}, which the grader runs (Python {later} may accept it)"
    return ""


# The marks of a copy in a file's name: of browsers, Canvas, Windows, macOS and Jupyter.
COPIES = re.compile(r"(?:Copy of )?(.+?)(?:[ _-]?\(\d+\)|-\d+|(?: -)?[ _-][Cc]opy(?:[ _-]?\d+)?)?")


def modules_of(files: Sequence[SourceFile]) -> dict[str, SourceFile]:
    """The files by the names under which they can be imported.

    A file that a download renamed, such as ``inference (1).py``, is also found as ``inference``,
    unless there is a file of that name, or a module of a library: ``torch-2.py`` is not torch. Of
    several copies, the last is found. A notebook is found only if no ``.py`` file has its name,
    since Python itself cannot import a notebook.
    """
    files = sorted(files, key=lambda file: not file.is_notebook)  # the last of a name is found
    originals = [(original_stem(file.name), file) for file in files]
    libraries = sys.stdlib_module_names | sys.modules.keys()
    copies = {stem: file for stem, file in originals if stem not in libraries}
    return copies | {file.stem: file for file in files}


def original_stem(name: str) -> str:
    """The stem of a file's name without the marks of a copy: ``inference``."""
    stem = PurePosixPath(name).stem
    found = COPIES.fullmatch(stem)
    return re.sub(r"\W", "_", found[1] if found else stem)


def read_file(source: SourceText, *, checks: bool = True) -> SourceFile:
    """Split a file's text into cells and lines, without parsing it."""
    path = PurePosixPath(source.name)
    file = SourceFile(source.name, re.sub(r"\W", "_", path.stem), checks=checks)
    for cell in source.cells:
        file.cells.append(len(file.lines) + 1)
        file.texts.append(re.sub(r"\r\n?", "\n", cell))
        file.lines.extend(file.texts[-1].split("\n"))
    return file


def parse(text: str, magics: bool, first: int = 1) -> ast.Module:
    """Parse a file or, with `magics`, a cell; IPython's syntax is rewritten if Python refuses it.

    In a file, only commands such as ``!pip`` are rewritten: Colab leaves them in exported files.
    Line numbers in the tree begin with `first`.
    """
    padding = "\n" * (first - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as about invalid escapes in a plot's title
        if magics and has_prompts(text):  # ``In [3]: x = 1`` is valid Python
            return ast.parse(padding + as_python(text))
        try:
            return ast.parse(padding + text)
        except UNPARSABLE:
            rewritten = as_python(text) if magics else without_commands(text)
            if rewritten == text:
                raise
        return ast.parse(padding + rewritten)


def _constant(test: ast.expr, in_notebook: bool) -> bool | None:
    """The value of a condition, if it does not depend on code that runs; otherwise None."""
    match test:
        case ast.Constant(value):
            return bool(value)
        case ast.Name("TYPE_CHECKING") | ast.Attribute(ast.Name("typing"), "TYPE_CHECKING"):
            return False
        case ast.UnaryOp(ast.Not(), operand):
            value = _constant(operand, in_notebook)
            return None if value is None else not value
        case ast.Compare(ast.Name("__name__"), [ast.Eq() as op], [ast.Constant(str(name))]) | (
            ast.Compare(ast.Name("__name__"), [ast.NotEq() as op], [ast.Constant(str(name))])
        ):
            is_main = in_notebook and name == MAIN
            return is_main if isinstance(op, ast.Eq) else not is_main
        case ast.BoolOp(op, values):
            known = [_constant(value, in_notebook) for value in values]
            decides = isinstance(op, ast.Or)  # the value that decides alone
            if decides in known:
                return decides
            return None if None in known else not decides
    return None


def names_in_broken(text: str) -> list[str]:
    """Names that a text probably defines, found without parsing it."""
    return re.findall(r"^[ \t]*(?:async\s+def|def|class)\s+([^\W\d]\w*)", text, re.MULTILINE)


def nodes(tree: ast.AST) -> list[ast.AST]:
    """A syntax tree's nodes in the order of `ast.walk`, which takes 1.5 times as long."""
    found = [tree]
    for node in found:
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, ast.AST):
                found.append(part)
            elif isinstance(part, list):
                found += [item for item in part if isinstance(item, ast.AST)]
    return found


def _holds_definitions(node: ast.AST) -> bool:
    return any(isinstance(part, DEFINITIONS) for part in nodes(node))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in nodes(node) if isinstance(part, ast.Name)}


def _binds(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a statement binds, and the names whose objects it only changes."""
    if isinstance(node, DEFINITIONS):
        return frozenset([node.name]), frozenset()
    if isinstance(node, ast.AnnAssign) and node.value is None:  # ``x: int`` binds no name
        return frozenset(), frozenset()
    makes: set[str] = set()
    changes: set[str] = set()
    for part in _at_module_level(node):
        match part:
            case ast.Name(name, ast.Store()):
                (changes if isinstance(node, ast.AugAssign) else makes).add(name)
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                makes |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                makes.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                makes.add(name)
            case ast.MatchMapping(rest=str(name)):
                makes.add(name)
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                root: ast.expr = part
                while isinstance(root, (ast.Attribute, ast.Subscript)):
                    root = root.value
                if isinstance(root, ast.Name):
                    changes.add(root.id)
    return frozenset(makes), frozenset(changes - makes)


def definition_in(statement: TopStatement, name: str) -> ast.stmt:
    """The last definition of a name in a statement such as ``try``, or the statement itself."""
    found = [
        node
        for node in _at_module_level(statement.node)
        if isinstance(node, DEFINITIONS) and node.name == name
    ]
    return max(found, key=lambda node: node.lineno, default=statement.node)


def _at_module_level(node: ast.AST) -> list[ast.AST]:
    """The nodes of a statement, without those in functions, classes and loops of comprehensions."""
    found = [node]
    for one in found:  # the loop extends the list that it walks
        if isinstance(one, (*DEFINITIONS, ast.Lambda)):
            continue
        for name, part in ast.iter_fields(one):
            if isinstance(one, ast.comprehension) and name == "target":
                continue
            inner = part if isinstance(part, list) else [part]
            found += [node for node in inner if isinstance(node, ast.AST)]
    return found


def lookups(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Module-level names that code looks up while it runs, and names its functions look up later.

    The names are read from compiled code, in which Python has already distinguished local names.
    """
    now: set[str] = set()
    later: set[str] = set()
    pending = [(code, now)]
    while pending:
        current, names = pending.pop()
        for inner in current.co_consts:
            if isinstance(inner, types.CodeType):
                # A class body and a comprehension run at once; a function's body runs later.
                is_function = inner.co_flags & inspect.CO_OPTIMIZED and inner.co_name[0] != "<"
                is_function = is_function or inner.co_name == "<lambda>"
                pending.append((inner, later if is_function else names))
        names.update(_looked_up(current))
    return frozenset(now), frozenset(later)


def _looked_up(code: types.CodeType) -> Iterator[str]:
    """The module-level names that a code object itself looks up.

    Python's `dis` would be slower, since it formats each instruction.
    """
    extended = 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        index = extended | argument
        extended = index << 8 if operation == dis.EXTENDED_ARG else 0
        if operation in LOOKUPS:
            # The lowest bit of LOAD_GLOBAL's argument says whether a call follows.
            yield code.co_names[index >> 1 if operation == LOAD_GLOBAL else index]
