"""Lines of a file that are worth quoting: an answer as it was handed in, or a test.

Works on text alone: parsing what a student wrote is no work for the trusted side.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.wire import Place, SourceText

MAX_LINES = 80  # of a definition
AROUND = 3  # lines before and after one that is pointed at


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file; of a notebook, lines of a cell."""

    file: str
    first: int  # the number of the first of them
    lines: tuple[str, ...]
    marked: int | None = None  # the number of the line that it is about

    def holds(self, place: Place) -> bool:
        """Whether a line is among these."""
        return place.file == self.file and 0 <= place.line - self.first < len(self.lines)


def answer(
    sources: Sequence[SourceText], definition: Place | None, at: Place | None
) -> tuple[Excerpt, ...]:  # fmt: skip
    """A definition, with one line marked; a second excerpt if that line is elsewhere."""
    found = _definition(sources, definition) if definition else None
    if found is not None and at is not None and found.holds(at):
        return (replace(found, marked=at.line),)
    return tuple(part for part in (found, _around(sources, at) if at else None) if part)


def _definition(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    """The lines from a place on, down to the first that is indented no deeper."""
    lines = _lines(sources, place)
    if not lines:
        return None
    start = place.line - 1
    depth = _indentation(lines[start])
    end = start + 1
    for number, line in enumerate(lines[end : start + MAX_LINES], start=end):
        bare = line.strip()
        if _indentation(line) > depth or bare.startswith((")", "]")):
            end = number + 1
        elif bare and not bare.startswith("#"):
            break
    return Excerpt(place.file, place.line, tuple(lines[start:end]))


def _around(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    lines = _lines(sources, place)
    first = max(1, place.line - AROUND)
    some = tuple(lines[first - 1 : place.line + AROUND])
    return Excerpt(place.file, first, some, place.line) if some else None


def _lines(sources: Sequence[SourceText], place: Place) -> list[str]:
    """The lines of the file or the cell in which a place is; none if it is in none of them."""
    for source in sources:
        for number, cell in enumerate(source.cells, start=1):
            notebook = source.name.endswith(".ipynb")
            if place.file == (f"{source.name} cell {number}" if notebook else source.name):
                lines = re.sub(r"\r\n?", "\n", cell).split("\n")
                return lines if 0 < place.line <= len(lines) else []
    return []


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def statement(test: Callable[..., Any], folder: Path) -> Excerpt:
    """A test as its author wrote it, decorators included; its file is told from `folder`."""
    lines, first = inspect.getsourcelines(test)
    path = Path(inspect.getfile(test))
    name = path.relative_to(folder) if path.is_relative_to(folder) else path
    return Excerpt(name.as_posix(), first, tuple(line.rstrip("\n") for line in lines))
