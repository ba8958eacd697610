"""The texts of a question: an answer with a change in place, its lines, and values as Python."""

from __future__ import annotations

import io
import math
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from torch import Tensor

from grader import wire
from grader.wire import SourceText, payload

LONGEST_LINE = 295  # characters of a line that a question shows, without marks
MARKS = "«", "»"  # around the value that a question is about
LABELS = "ABCDE"  # of several values or changes, in another order than that of the lines
LONGEST_VALUE = 130  # characters of a value
MOST_NUMBERS = 25  # of a tensor that is written out
OMITTED = "pass"  # what takes the place of a statement that is left out


def spliced(
    sources: tuple[SourceText, ...], site: wire.Site, new: str
) -> tuple[SourceText, ...] | None:
    """The sources with a new text at a site; None if the site's text is not there."""
    changed = []
    done = False
    for source in sources:
        cells = list(source.cells)
        number = max(site.place.cell, 1) - 1
        if source.name == site.place.file and not done and number < len(cells):
            text = _put(cells[number], site, new)
            if text is not None:
                cells[number], done = text, True
        changed.append(SourceText(source.name, tuple(cells)))
    return tuple(changed) if done else None


def _put(cell: str, site: wire.Site, new: str) -> str | None:
    lines = _lines(cell)
    first, last = site.place.line - 1, site.end_line - 1
    if not 0 <= first <= last < len(lines):
        return None
    before, after = lines[first][: site.start], lines[last][site.end :]
    whole = "\n".join(lines[first : last + 1])
    if whole != f"{before}{site.text}{after}":
        return None
    return "\n".join([*lines[:first], before + new + after, *lines[last + 1 :]])


def surrounded(
    sources: tuple[SourceText, ...], around: Sequence[tuple[wire.Site, str, str]]
) -> tuple[SourceText, ...]:
    """The sources with a text before and a text after each of these sites, which may be nested."""
    texts = {
        (source.name, number): _lines(cell)
        for source in reversed(sources)
        for number, cell in enumerate(source.cells)
    }
    # At one place, ends come before starts, inner ends first, and outer starts first.
    marks: list[tuple[int, int, bool, int, int, str, tuple[str, int]]] = []
    for site, before, after in around:
        at = site.place.file, max(site.place.cell, 1) - 1
        line, start, end_line, end = site.place.line, site.start, site.end_line, site.end
        marks.append((line, start, True, -end_line, -end, before, at))
        marks.append((end_line, end, False, -line, -start, after, at))
    for line, column, _, _, _, text, at in sorted(marks, reverse=True):
        whole = texts[at][line - 1]
        texts[at][line - 1] = whole[:column] + text + whole[column:]
    return tuple(
        SourceText(
            source.name,
            tuple("\n".join(texts[source.name, n]) for n in range(len(source.cells))),
        )
        for source in sources
    )


def _lines(cell: str) -> list[str]:
    return re.sub(r"\r\n?", "\n", cell).split("\n")


def stands(sources: tuple[SourceText, ...], site: wire.Site) -> bool:
    """Whether a site's text is at its place, in lines that a question can show."""
    if spliced(sources, site, site.text) is None:
        return False
    return all(len(line.text) <= LONGEST_LINE for line in lines_at(sources, site))


def line_of(site: wire.Site) -> tuple[str, int, int]:
    """The file, the cell and the number of a site's first line."""
    return site.place.file, site.place.cell, site.place.line


def lines_at(
    sources: tuple[SourceText, ...], site: wire.Site, new: str | None = None
) -> list[wire.Place]:
    """The lines of a site, as they are or with a new text.

    Comments are left out: they often tell what the line does.
    """
    changed = sources if new is None else spliced(sources, site, new)
    assert changed is not None
    place = site.place
    lines = wire.lines_around(place, changed)
    end = site.end_line if new is None else place.line + new.count("\n")
    shown = without_comments("\n".join(lines[place.line - 1 : end])).split("\n")
    return [
        wire.Place(place.file, number, line, place.cell)
        for number, line in enumerate(shown, start=place.line)
        if line.strip()
    ]


def marked(
    sources: tuple[SourceText, ...], site: wire.Site, new: str | None = None, label: str = ""
) -> list[wire.Place]:
    """The lines of a site, with marks around its text or the new text, and a label in them.

    The text of the question does not repeat it: a name tells much of a value's shape. A new text
    is on one line.
    """
    start, end = MARKS
    ends = (site.end_line, site.end)
    if new is not None:
        ends = (site.place.line, site.start + len(new))
    found = []
    for line in lines_at(sources, site, new):
        text = line.text
        begins = (site.place.line, site.start)
        for (number, column), mark in ((ends, end), (begins, start + (label and f"{label}: "))):
            if line.line == number:
                text = text[:column] + mark + text[column:]
        found.append(wire.Place(line.file, line.line, text, line.cell))
    return found


def files_of(sites: Iterable[wire.Site]) -> str:
    """The files of some sites, such as "gpt.py", with the numbers of cells."""
    return " and ".join(dict.fromkeys(site.place.within for site in sites))


def without_comments(code: str) -> str:
    """Lines of code without their comments."""
    lines = code.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):
        pass  # the lines are a part of a statement
    return "\n".join(line.rstrip() for line in lines)


def in_python(value: Any) -> str:
    """A value as Python writes it, with two digits after the point; "" if it is long or odd."""
    plain = list(_plain(value))
    text = plain[0] if len(plain) == 1 else ""
    return text if len(text) <= LONGEST_VALUE else ""


def _plain(value: Any) -> Iterator[str]:
    """The text of a value; nothing if a part of it cannot be written."""
    match value:
        case wire.TensorData():
            if value.device == "cpu" and math.prod(value.shape) <= MOST_NUMBERS:
                unpacked = payload.unpack(value)
                if isinstance(unpacked, Tensor) and not unpacked.dtype.is_complex:
                    yield from _plain(unpacked.tolist())
        case wire.Items(kind="tuple" | "list" as kind, items=items) if len(items) <= MOST_NUMBERS:
            yield from _plain(tuple(items) if kind == "tuple" else items)
        case list() | tuple():
            parts = [part for item in value for part in _plain(item)]
            if len(parts) == len(value):
                start, end = "[]" if isinstance(value, list) else "()"
                comma = "," if isinstance(value, tuple) and len(parts) == 1 else ""
                yield f"{start}{', '.join(parts)}{comma}{end}"
        case float():
            number = f"{value:.2f}"
            plain = number.rstrip("0").rstrip(".") if "." in number else number
            yield plain if plain != "-0" else "0"
        case None | bool() | int() | str():
            yield repr(value)


def differ(one: str, other: str) -> bool:
    """Whether two values in Python's words differ by more than rounding."""
    (form, numbers), (other_form, others) = _form_and_numbers(one), _form_and_numbers(other)
    if form != other_form:
        return True
    return any(abs(a - b) > 0.021 for a, b in zip(numbers, others, strict=True))


@lru_cache(maxsize=256)
def _form_and_numbers(written: str) -> tuple[str, Sequence[float]]:
    number = r"-?\d+\.?\d*"
    return re.sub(number, "0", written), [float(one) for one in re.findall(number, written)]
