"""Writes another definition as a change of the reference's text, as `grader.mistakes` reads it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence

from grader.author.spots import is_signed_number

MOST_LINES = 6  # a change that replaces more lines is no small change
Parts = Sequence[ast.AST]


def change_to(text: str, definition: str) -> dict[str, str] | None:
    """The smallest replacement in a definition's text that makes it compute another definition.

    The old text occurs once in `text`. Comments, docstrings and line breaks are not compared. None
    if the two are equal, or differ in more than `MOST_LINES` lines.
    """
    old, new = _tree(text), _tree(definition)
    wanted = ast.dump(new)
    smallest_first = [*_narrowed(old, new)][::-1]
    # A word such as `1` or `x` says little to a reader, so it comes last.
    for theirs, ours in sorted(smallest_first, key=lambda both: _is_word(both[0][0])):
        before, after = _source(text, theirs), _unparsed(ours, theirs[0])
        if not before or text.count(before) != 1 or before.count("\n") >= MOST_LINES:
            continue
        try:
            if ast.dump(_tree(text.replace(before, after))) == wanted:
                return {before: after}
        except (SyntaxError, IndexError):  # the replacement needs more text around it
            continue
    return None


def written(change: Mapping[str, str]) -> str:
    """A change as Python text: ``{"diagonal=1": "diagonal=0"}``."""
    parts = (f"{quoted(old)}: {quoted(new)}" for old, new in change.items())
    return f"{{{', '.join(parts)}}}"


def quoted(text: str) -> str:
    """A text as Python and TOML write it."""
    return json.dumps(text, ensure_ascii=False)


def _tree(text: str) -> ast.stmt:
    """The text's last statement, without docstrings."""
    tree = ast.parse(text).body[-1]
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:] or [ast.Pass()]
    return tree


def _narrowed(old: ast.AST, new: ast.AST) -> Iterator[tuple[Parts, Parts]]:
    """Parts of two trees that contain all differences, from the whole to the smallest part."""
    while ast.dump(old) != ast.dump(new):
        yield [old], [new]
        fields = [name for name in old._fields if _differ(old, new, name)]
        if type(old) is not type(new) or len(fields) != 1:
            return
        one, other = getattr(old, fields[0]), getattr(new, fields[0])
        if isinstance(one, list):
            one, other = _trimmed(one, other)
            if one and isinstance(one[0], ast.stmt):
                yield one, other
            if len(one) != 1 or len(other) != 1:
                return
            one, other = one[0], other[0]
        if not isinstance(one, ast.AST) or not isinstance(other, ast.AST):
            return
        old, new = one, other


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Constant) or is_signed_number(node)


def _differ(old: ast.AST, new: ast.AST, name: str) -> bool:
    values = [getattr(node, name, None) for node in (old, new)]
    one, other = [value if isinstance(value, list) else [value] for value in values]
    return [*map(_dumped, one)] != [*map(_dumped, other)]


def _dumped(value: object) -> object:
    return ast.dump(value) if isinstance(value, ast.AST) else value


def _trimmed(old: Parts, new: Parts) -> tuple[Parts, Parts]:
    """Two lists without their equal beginnings and ends, but with at least one part of `old`."""
    ones, others = [*map(_dumped, old)], [*map(_dumped, new)]
    least = min(len(old), len(new))
    start = next((n for n in range(least) if ones[n] != others[n]), least)
    end = next((n for n in range(least - start) if ones[-1 - n] != others[-1 - n]), least - start)
    if start == len(old) - end:  # only added: keep the neighbour, whose place the text can name
        start, end = (start - 1, end) if start else (start, end - 1)
    return old[start : len(old) - end], new[start : len(new) - end]


def _source(text: str, parts: Parts) -> str:
    first, last = parts[0], parts[-1]
    if not hasattr(first, "lineno"):  # an operator, such as `+`, has no place of its own
        return ""
    between = ast.Pass(
        lineno=first.lineno,
        col_offset=first.col_offset,  # type: ignore[attr-defined]
        end_lineno=last.end_lineno,  # type: ignore[attr-defined]
        end_col_offset=last.end_col_offset,  # type: ignore[attr-defined]
    )
    return ast.get_source_segment(text, between) or ""


def _unparsed(parts: Parts, beside: ast.AST) -> str:
    """The text of some nodes; statements are indented like the node `beside`, after line 1."""
    indent = getattr(beside, "col_offset", 0) * " " if isinstance(beside, ast.stmt) else ""
    return "\n".join(map(ast.unparse, parts)).replace("\n", f"\n{indent}")
