"""Writes all messages of the commands into one file: ``python -m tests.tools.messages``.

``tests/messages.txt`` holds the help of each command, and the texts of `CallError`, `HostFault` and
their subclasses as ``grader/`` has them, with ``{…}`` for parts that are known only at run time. A
text that a function composes elsewhere is missing. The file is sorted and has no line numbers, so
that a diff shows changes of words only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from grader.cli import app, commands
from tests.support.places import ROOT

MESSAGES = ROOT / "tests" / "messages.txt"
LATER = "{…}"
KINDS = {"CallError": "call", "HostFault": "fault"}  # exit codes 2 and 3


def messages() -> str:
    """All messages, one a line."""
    commands.load(commands.offered())
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "grader").rglob("*.py")]
    kinds = _kinds(trees)
    constants: dict[str, list[str]] = {}  # a module may import them from any other
    for tree in trees:
        for name, texts in _constants(tree).items():
            constants.setdefault(name, []).extend(texts)
    lines = {*_helps("grader", typer.main.get_group(app))}
    for tree in trees:
        lines.update(_raised(tree, kinds, constants))
    return "".join(f"{line}\n" for line in sorted(lines))


def _helps(path: str, command: Any) -> Iterator[str]:
    """The help of a command, of its parameters, and of the commands below it."""
    yield f"help: {path}: {_line(command.help)}"
    if command.epilog:
        yield f"help: {path}: {_line(command.epilog)}"
    for parameter in command.params:
        if text := getattr(parameter, "help", None):
            name = parameter.opts[-1] if parameter.param_type_name == "option" else parameter.name
            yield f"help: {path} {name}: {_line(text)}"
    for name, one in getattr(command, "commands", {}).items():
        yield from _helps(f"{path} {name}", one)


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _kinds(trees: list[ast.Module]) -> Mapping[str, str]:
    """``call`` or ``fault`` for each class of exceptions that sets an exit code."""
    kinds, before = dict(KINDS), 0
    while len(kinds) > before:  # a subclass may be read before its base
        before = len(kinds)
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in kinds:
                        kinds[node.name] = kinds[base.id]
    return kinds


def _raised(
    tree: ast.Module, kinds: Mapping[str, str], constants: Mapping[str, list[str]]
) -> Iterator[str]:
    """The texts with which a module makes these exceptions."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    own = _constants(tree)
    for scope in (tree, *functions):
        local = {} if scope is tree else _texts_of_names(scope)
        names = {**constants, **own, **local}
        for node in ast.walk(scope):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[said, *_]) if name in kinds:
                    for text in _texts(said, names):
                        if text.replace(LATER, "").strip(" :;,."):
                            yield f"{kinds[name]}: {_line(text)}"


def _constants(tree: ast.Module) -> dict[str, list[str]]:
    return {name: texts for name, texts in _texts_of_names(tree).items() if name.isupper()}


def _texts_of_names(scope: ast.AST) -> dict[str, list[str]]:
    """The strings that the assignments in a scope give to names."""
    names: dict[str, list[str]] = {}
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found = [text for text in _texts(value, {}) if text != LATER]
                names.setdefault(name, []).extend(found)
    return names


def _texts(node: ast.expr, names: Mapping[str, list[str]]) -> list[str]:
    """What an expression may say: one text, or one for each alternative."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            parts = [v.value if isinstance(v, ast.Constant) else LATER for v in values]
            return ["".join(map(str, parts))]
        case ast.IfExp(body=one, orelse=other):
            return [*_texts(one, names), *_texts(other, names)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in _texts(left, names) for b in _texts(right, names)]
        case ast.Call(func=ast.Attribute(value=text, attr="format" | "format_map")):
            return _texts(text, names)
        case ast.Name(id=name) | ast.Attribute(attr=name) if names.get(name):
            return names[name]
    return [LATER]


if __name__ == "__main__":
    MESSAGES.write_text(messages(), "utf-8")
