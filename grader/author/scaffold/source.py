"""Reads a reference from a Python file: its text, and the imports and definitions that it needs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from grader.course.course import parsed
from grader.records.faults import CallError

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Source:
    """A reference's text, with what the text needs of its file."""

    name: str
    path: Path
    text: str
    imports: tuple[str, ...]
    support: tuple[str, ...]  # helpers and constants of the file, in its order

    @property
    def node(self) -> Definition:
        """The definition's syntax tree."""
        found = ast.parse(self.text).body[0]
        assert isinstance(found, Definition)
        return found

    @property
    def docstring(self) -> str:
        """The definition's docstring, or that of its ``forward``."""
        nodes = [self.node, function_of(self.node, "forward")]
        texts = (ast.get_docstring(node) for node in nodes if node is not None)
        return next(filter(None, texts), "")

    def namespace(self, package: str = "") -> dict[str, Any]:
        """Run the text with all that it needs; return the names that it defines.

        `package` is the package for relative imports. Raises `CallError` if the text cannot be run.
        """
        names: dict[str, Any] = {"__name__": f"{package}.{self.path.stem}", "__package__": package}
        text = "\n".join((*self.imports, *self.support, self.text))
        try:
            exec(compile(text, str(self.path), "exec", dont_inherit=True), names)
        except Exception as error:
            raise CallError(
                f"{self.path}: {self.name} cannot be imported: {type(error).__name__}: {error}"
            ) from None
        return names


def read_source(path: Path, name: str) -> Source:
    """Read the definition `name` from a file; raise `CallError` if there is none."""
    if not path.is_file():
        raise CallError(f"{path} is missing: name the file of your reference with --from FILE")
    body, text = parsed(path).body, path.read_text("utf-8")
    definitions = {node.name: node for node in body if isinstance(node, Definition)}
    if name not in definitions:
        known = ", ".join(definitions) or "nothing"
        raise CallError(f"{path} does not define {name}; it defines {known}")
    node = definitions[name]
    needed = {*_names_in(node)}
    support: list[ast.stmt] = []
    others = [part for part in body if part is not node and not _is_import(part)]
    for _ in others:  # a helper may need a helper that comes earlier in this list
        for part in others:
            if part not in support and needed & {*_defines(part)}:
                support.append(part)
                needed |= {*_names_in(part)}
    return Source(
        name,
        path,
        _text_of(node, text),
        tuple(_imports(body, needed)),
        tuple(_text_of(part, text) for part in others if part in support),
    )


def methods(definition: Any) -> Sequence[tuple[str, Any]]:
    """The functions of a reference whose signatures count, each with its name.

    Raises `CallError` if the reference is neither a function nor a module.
    """
    if inspect.isclass(definition) and issubclass(definition, nn.Module):
        return (("__init__", definition.__init__), ("forward", definition.forward))
    if inspect.isfunction(definition):
        return ((definition.__name__, definition),)
    raise CallError("a reference is a function, or a class that inherits from nn.Module")


def function_of(node: Definition, name: str) -> ast.FunctionDef | None:
    """The syntax tree of a function, or of a module's method; None if the module inherits it."""
    if isinstance(node, ast.FunctionDef):
        return node
    functions = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return next((part for part in functions if part.name == name), None)


def _text_of(node: ast.stmt, text: str) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    assert node.end_lineno is not None
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]))


def _names_in(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from _names_in_string(part.value)


def _names_in_string(text: str) -> Iterator[str]:
    """The names in an annotation that is written as a string."""
    if len(text) < 100 and text.isprintable():
        try:
            yield from _names_in(ast.parse(text.strip(), mode="eval"))
        except (SyntaxError, ValueError, RecursionError):
            return


def _defines(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imports(body: Sequence[ast.stmt], needed: set[str]) -> Iterator[str]:
    """The imports of a file that bind a needed name, one a line; also those for type checkers."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _imports(node.body, needed)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if getattr(node, "module", "") == "__future__":
                continue
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                if bound in needed:
                    one = (
                        ast.Import([alias])
                        if isinstance(node, ast.Import)
                        else ast.ImportFrom(node.module, [alias], node.level)
                    )
                    yield ast.unparse(one)


def defaults_of(function: Any) -> Mapping[str, Any]:
    """The default values of a function's parameters, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
