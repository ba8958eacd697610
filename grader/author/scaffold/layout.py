"""Breaks long lines of generated Python as a formatter does."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

WIDTH = 100  # of a line of Python


def signature_of(node: ast.FunctionDef, indent: str = "") -> list[str]:
    """The lines of a function's signature: one, or one for each parameter if it is too long."""
    parts = [*_parameters(node.args)]
    returns = f" -> {_text(node.returns)}" if node.returns is not None else ""
    line = f"{indent}def {node.name}({', '.join(parts)}){returns}:"
    if len(line) <= WIDTH:
        return [line]
    within = (f"{indent}    {part}," for part in parts)
    return [f"{indent}def {node.name}(", *within, f"{indent}){returns}:"]


def _parameters(given: ast.arguments) -> Iterator[str]:
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + [*given.defaults]
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        yield _parameter(argument, default)
        if number == len(given.posonlyargs):
            yield "/"
    if given.vararg is not None or given.kwonlyargs:
        yield f"*{_parameter(given.vararg, None) if given.vararg is not None else ''}"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if given.kwarg is not None:
        yield f"**{_parameter(given.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotated = argument.annotation is not None
    text = f"{argument.arg}: {_text(argument.annotation)}" if annotated else argument.arg
    if default is None:
        return text
    return f"{text} = {_text(default)}" if annotated else f"{text}={_text(default)}"


def _text(node: ast.expr | None) -> str:
    """An expression as text, with double quotes if it has no string with such quotes."""
    text = ast.unparse(node) if node is not None else ""
    return text if '"' in text else text.replace("'", '"')


def fitted(text: str) -> str:
    """The text with each long line broken after the brackets and commas of its outermost call."""
    lines = (part for line in text.split("\n") for part in _broken(line))
    return "\n".join(lines)


def _broken(line: str) -> Iterator[str]:
    opened = min((line.find(letter) for letter in "([" if letter in line), default=-1)
    bare = line.removesuffix(",")
    if len(line) <= WIDTH or opened < 0 or not bare.endswith((")", "]")):
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    closed = _closed(line, opened)
    yield line[: opened + 1]
    inner = f"{indent}    {line[opened + 1 : closed]}"
    if len(inner) <= WIDTH:
        yield inner
    else:
        for part in split(line[opened + 1 : closed]):
            yield from _broken(f"{indent}    {part},")
    yield indent + line[closed:]


def _closed(line: str, opened: int) -> int:
    """The place of the bracket that closes another."""
    depth = 0
    for place in range(opened, len(line)):
        depth += (line[place] in "([{") - (line[place] in ")]}")
        if depth == 0:
            return place
    return len(line) - 1


def split(text: str) -> Sequence[str]:
    """Split a list at its commas, but not within brackets or strings."""
    parts, depth, quoted = [""], 0, ""
    for letter in text:
        if letter in "\"'" and not quoted:
            quoted = letter
        elif letter == quoted:
            quoted = ""
        if not quoted:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
