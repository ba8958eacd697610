"""Adds definitions, imports and entries to the files of a unit, and leaves their text as it is."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.author.changes import quoted
from grader.author.scaffold.layout import WIDTH
from grader.author.texts import template
from grader.author.wording import TODO
from grader.records.faults import CallError


def defines(text: str, name: str) -> bool:
    """Whether a file defines a function or class of this name."""
    return any(getattr(node, "name", "") == name for node in ast.parse(text).body)


def tests(text: str, exercise: str) -> bool:
    """Whether a file has a test of an exercise: ``@rung.value("exercise")``."""
    return any(
        isinstance(node, ast.FunctionDef)
        and any(
            isinstance(mark, ast.Call)
            and ast.unparse(mark.func).startswith("rung.")
            and _first_argument(mark) == exercise
            for mark in node.decorator_list
        )
        for node in ast.parse(text).body
    )


def knows(text: str, exercise: str) -> bool:
    """Whether a file of known answers declares one of an exercise."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("mistake", "accepted", "common_mistakes")
        and exercise in _names(node)
        for node in ast.walk(ast.parse(text))
    )


def _first_argument(call: ast.Call) -> object:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) else None


def _names(call: ast.Call) -> Iterator[object]:
    for node in ast.walk(call.args[0]) if call.args else ():
        if isinstance(node, ast.Constant):
            yield node.value


# --- Python --------------------------------------------------------------------------------------


def with_definitions(text: str, definitions: Sequence[str], heading: str = "") -> str:
    """The text with definitions at its end, below a line with a heading, if there is one."""
    if not definitions:
        return text
    line = [f"# --- {heading} ".ljust(WIDTH, "-")] if heading else []
    body = "\n\n\n".join(definition.strip("\n") for definition in definitions)
    return "\n\n\n".join([text.rstrip(), *line, body]).lstrip() + "\n"


def with_replaced(text: str, name: str, definition: str) -> str:
    """The text with another definition in place of the one of this name."""
    lines = text.splitlines()
    node = next(node for node in ast.parse(text).body if getattr(node, "name", "") == name)
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join([*lines[: first - 1], definition, *lines[node.end_lineno or 0 :]]) + "\n"


def with_imports(text: str, imports: Sequence[str], *, typing_only: bool = False) -> str:
    """The text with those imports that it lacks; names of one module share a line.

    With `typing_only`, names are imported below ``if TYPE_CHECKING``.
    """
    for line in imports:
        text = _with_import(text, line, typing_only)
    return text


def _with_import(text: str, line: str, typing_only: bool) -> str:
    (wanted,) = ast.parse(line).body
    assert isinstance(wanted, ast.Import | ast.ImportFrom)
    tree = ast.parse(text)
    existing = [*_imports(tree.body)]
    (alias,) = wanted.names
    for node, _ in existing:
        if any(_bound(one) == _bound(alias) for one in node.names):
            return text
    lines = text.splitlines()
    if isinstance(wanted, ast.ImportFrom):
        for node, indent in existing:
            if isinstance(node, ast.ImportFrom) and (node.module, node.level) == (
                wanted.module,
                wanted.level,
            ):
                names = sorted([*node.names, alias], key=lambda one: _order(one.name))
                new = _import_lines(ast.ImportFrom(node.module, names, node.level), indent)
                return _spliced(lines, node.lineno, node.end_lineno, new)
    top = [node for node, indent in existing if not indent]
    if typing_only and isinstance(wanted, ast.ImportFrom):
        blocks = [node for node in tree.body if isinstance(node, ast.If)]
        if blocks and "TYPE_CHECKING" in ast.unparse(blocks[0].test):
            place = blocks[0].body[-1].end_lineno or 0
            return _spliced(lines, place + 1, place, [f"    {line}"])
        place = (top[-1].end_lineno or 0) if top else 0
        text = _spliced(lines, place + 1, place, ["", "if TYPE_CHECKING:", f"    {line}"])
        return _with_import(text, "from typing import TYPE_CHECKING", typing_only=False)
    place = _place(top, wanted, tree)
    gap = [] if top else [""]
    return _spliced(lines, place + 1, place, [*gap, line])


def _place(top: Sequence[ast.stmt], wanted: ast.stmt, tree: ast.Module) -> int:
    """The line after which a new import belongs: sorted by the module's name, as others are."""
    before = [node for node in top if _sorted_by(node) <= _sorted_by(wanted)]
    if before:
        return before[-1].end_lineno or 0
    if top:
        return top[0].lineno - 1
    docstring = bool(tree.body) and isinstance(tree.body[0], ast.Expr)
    return (tree.body[0].end_lineno or 0) if docstring else 0


def _sorted_by(node: ast.stmt) -> tuple[int, int, str]:
    if isinstance(node, ast.ImportFrom):
        module, plain = node.module or "", 1
        if module == "__future__":
            return (-1, 0, module)
    else:
        assert isinstance(node, ast.Import)
        module, plain = node.names[0].name, 0
    package = module.partition(".")[0]
    group = 0 if package in sys.stdlib_module_names else 2 if package == "grader" else 1
    return (group, plain, module)


def _imports(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, " " * node.col_offset
        elif isinstance(node, ast.If):
            yield from _imports(node.body)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name


def _order(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def _import_lines(node: ast.ImportFrom, indent: str) -> list[str]:
    line = indent + ast.unparse(node)
    if len(line) <= WIDTH:
        return [line]
    head, _, _ = line.partition(" import ")
    names = (f"{indent}    {ast.unparse(ast.Import([alias]))[7:]}," for alias in node.names)
    return [f"{head} import (", *names, f"{indent})"]


def _spliced(lines: list[str], first: int, last: int | None, new: Sequence[str]) -> str:
    """The text with new lines in place of the lines from `first` to `last`, counted from 1."""
    return "\n".join([*lines[: first - 1], *new, *lines[last or 0 :]]) + "\n"


# --- course.toml ---------------------------------------------------------------------------------

HEADER = re.compile(r"\s*\[\[?\s*([\w.]+)\s*\]\]?\s*(#.*)?$")


def with_exercise(
    path: Path, text: str, unit: str, name: str, title: str, *, new_unit: bool
) -> str:
    """The text of a ``course.toml`` with an entry for an exercise, at the end of its unit.

    All other lines stay as they are.
    """
    entry = template("exercise/entry.toml", name=name, title=quoted(title), todo=TODO)
    if new_unit:
        heading = f"# --- {unit} ".ljust(WIDTH, "-")
        title = quoted(f"{TODO}: a title")
        table = f'[[unit]]\nname = "{unit}"\ntitle = {title}\n'
        entry = f"{heading}\n\n{table}\n{entry}"
    lines = text.rstrip("\n").splitlines()
    place = _end_of_units(lines) if new_unit else _end_of_unit(path, lines, unit)
    rest = lines[place:]
    gap = [""] if rest and rest[0].strip() else []
    return "\n".join([*lines[:place], "", *entry.rstrip("\n").splitlines(), *gap, *rest]) + "\n"


def _end_of_unit(path: Path, lines: Sequence[str], unit: str) -> int:
    """The number of lines up to the end of a unit's last exercise."""
    inside, end = False, 0
    for number, line in enumerate(lines):
        header = HEADER.match(line)
        if header and header[1] != "unit.exercise":
            names = (one for one in lines[number + 1 : number + 6] if not HEADER.match(one))
            inside = header[1] == "unit" and any(
                re.match(rf"""\s*name\s*=\s*["']{re.escape(unit)}["']""", one) for one in names
            )
        if inside and line.strip() and not line.lstrip().startswith("#"):
            end = number + 1
    if not end:
        raise CallError(f"{path}: the unit {unit} is written in a form that cannot be continued")
    return end


def _end_of_units(lines: Sequence[str]) -> int:
    """The number of lines up to the end of the last unit; of all lines if there is none."""
    inside, end = False, 0
    for number, line in enumerate(lines):
        if header := HEADER.match(line):
            inside = header[1] in ("unit", "unit.exercise")
        if inside and line.strip() and not line.lstrip().startswith("#"):
            end = number + 1
    return end or len(lines)
