"""Lines of a student's answer, to quote.

Indentation shows where a definition ends, since the trusted side does not parse a student's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader import wire
from grader.wire import Place, SourceText

MAX_LINES = 80  # the most lines of a definition that are quoted, if a screen asks for no fewer
PRINTED = "\nyour code printed:\n"  # a message goes on with the output of the student's code
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
    first: int  # the number of the first line
    lines: tuple[str, ...]
    marked: int | None = None  # the number of the line to point at
    cut: bool = False  # whether the definition has more lines


def excerpts_of_answer(
    sources: Sequence[SourceText],
    definition: Place | None,
    at: Place | None,
    most: int = MAX_LINES,
) -> tuple[Excerpt, ...]:
    """The first `most` lines of the answer's definition, with the line `at` marked.

    If these lines do not contain this line, a second excerpt shows the line.
    """
    found = _definition(sources, definition, most) if definition else None
    if definition and found and at:
        together = (at.file, at.cell) == (definition.file, definition.cell)
        if together and 0 <= at.line - found.first < len(found.lines):
            return (replace(found, marked=at.line),)
    return tuple(part for part in (found, _around(sources, at) if at else None) if part)


def _definition(sources: Sequence[SourceText], place: Place, most: int) -> Excerpt | None:
    """The lines of a definition: from its first line up to the next line that is not indented."""
    lines = wire.lines_around(place, sources)
    if not lines:
        return None
    start = place.line - 1
    depth = _indentation(lines[start])
    end, cut = start + 1, False
    for row, line in enumerate(lines[end:], start=end):
        bare = line.strip()
        if _indentation(line) > depth or bare.startswith((")", "]")):
            cut = row - start >= most
            if cut:
                break
            end = row + 1
        elif bare and not bare.startswith("#"):
            break
    return Excerpt(place.within, place.line, tuple(lines[start:end]), cut=cut)


def _around(sources: Sequence[SourceText], place: Place) -> Excerpt | None:
    lines = wire.lines_around(place, sources)
    first = max(1, place.line - AROUND)
    some = tuple(lines[first - 1 : place.line + AROUND])
    return Excerpt(place.within, first, some, place.line) if some else None


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0
