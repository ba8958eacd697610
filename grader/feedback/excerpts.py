"""Lines of a student's answer, to quote.

Indentation shows where a definition ends, since the trusted side does not parse a student's code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grader import wire
from grader.wire import Place, SourceText

MAX_LINES = 80  # the most lines of a definition that are quoted, if a screen asks for no fewer
PRINTED = "\nyour code printed:\n"  # a message goes on with the output of the student's code
DOCSTRING = re.compile(r"[rR]?('{3}|\"{3})")  # how a docstring begins
AROUND = 3  # lines before and after a marked line


# --- messages -------------------------------------------------------------------------------------


def without_prints(message: str) -> str:
    """A message without the output of the student's code: see `sentences.with_prints`."""
    return message.partition(PRINTED)[0]


# --- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file or of a notebook's cell."""

    file: str  # the file's name, with the cell
    lines: Mapping[int, str]  # by their numbers
    marked: int | None = None  # the number of the line to point at
    cut: bool = False  # whether the definition has more lines


def excerpts_of_answer(
    sources: Sequence[SourceText],
    definition: Place | None,
    at: Place | None,
    most: int = MAX_LINES,
) -> tuple[Excerpt, ...]:
    """The first `most` lines of the answer's definition, with the line `at` marked.

    Of a docstring, which is mostly the exercise's statement, they have the first line. If these
    lines do not contain the marked line, a second excerpt shows it.
    """
    found = _definition(sources, definition, most) if definition else None
    if definition and found and at:
        together = (at.file, at.cell) == (definition.file, definition.cell)
        if together and at.line in found.lines:
            return (replace(found, marked=at.line),)
    return tuple(part for part in (found, _around(sources, at) if at else None) if part)


def _definition(sources: Sequence[SourceText], place: Place, most: int) -> Excerpt | None:
    """The lines of a definition: from its first line up to the next line that is not indented."""
    lines = wire.lines_around(place, sources)
    if not lines:
        return None
    kept: dict[int, str] = {}
    between: dict[int, str] = {}  # lines that may be after the definition
    depth = _indentation(lines[place.line - 1])
    for number, line in _without_docstrings(lines, place.line):
        bare = line.strip()
        if not kept or _indentation(line) > depth or bare.startswith((")", "]")):
            if len(kept) + len(between) >= most:
                return Excerpt(place.within, kept, cut=True)
            kept |= between | {number: line}
            between = {}
        elif not bare or bare.startswith("#"):
            between[number] = line
        else:
            break
    return Excerpt(place.within, kept)


def _without_docstrings(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Numbered lines from the first one on; a string of several lines after a colon is cut."""
    quotes, before = "", ""
    for number, line in enumerate(lines[first - 1 :], start=first):
        bare = line.strip()
        if quotes:  # within a docstring
            quotes = "" if quotes in line else quotes
            continue
        opened = DOCSTRING.match(bare)
        if opened and before.endswith(":") and opened[1] not in bare[opened.end() :]:
            quotes = opened[1]
            line += " …"
        before = bare or before
        yield number, line


def _around(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    lines = wire.lines_around(place, sources)
    first = max(1, place.line - AROUND)
    some = lines[first - 1 : place.line + AROUND]
    return Excerpt(place.within, dict(enumerate(some, start=first)), place.line) if some else None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0
