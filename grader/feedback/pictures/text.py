"""Draws small matrices for a terminal, as plain text: expected, yours, and where they differ.

Matrices up to 6 by 6 are drawn as numbers of two digits, if these fit, with a ``✗`` after a wrong
number. Other matrices are drawn as shades, with two characters for each cell. Colour is not needed:

=================  =================  =============================================
in Unicode         ASCII              meaning
=================  =================  =============================================
``░░ ▒▒ ▓▓ ██``    ``:: ++ ** ##``    positive, in quarters of the largest expected
``-░ -▒ -▓ -█``    ``-: -+ -* -#``    negative, in the same quarters
``·``              ``.``              exactly zero; False; right
``■``              ``#``              True
``✗``              ``X``              wrong
``+∞ -∞``          ``+I -I``          infinite
``N``              ``N``              NaN
=================  =================  =============================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.records.grade import MatrixCell, Picture

Rows = Sequence[Sequence[MatrixCell]]

MOST_NUMBERS = 6  # a matrix with more rows or columns is drawn as shades
NUMBER_WIDTH = 5
TITLES = ("expected", "yours", "differs")
GAPS = (4, 2)  # characters between the matrices; the first gap that fits is used


@dataclass(frozen=True)
class Marks:
    """The characters for cells and legends."""

    shades: str
    zero: str
    true: str
    wrong: str
    infinity: str
    ellipsis: str
    span: str


UNICODE = Marks("░▒▓█", "·", "■", "✗", "∞", "…", "–")
ASCII = Marks(":+*#", ".", "#", "X", "I", "...", "-")


@dataclass(frozen=True)
class _Window:
    """The indices shown along an axis, and the axis's size."""

    start: int
    stop: int
    size: int

    @property
    def cut(self) -> bool:
        return self.stop - self.start < self.size


def drawn(picture: Picture, *, width: int = 80, ascii_only: bool = False) -> str | None:
    """The expected and the actual matrix side by side, in lines of at most `width` characters.

    Marks or a third matrix show the differences. Returns None if `width` is too small.
    """
    marks = ASCII if ascii_only else UNICODE
    lines = _numbers(picture, marks, width) or _shades(picture, marks, width)
    if lines is None:
        return None
    captions = [f"{picture.caption}:"] if picture.caption else []
    named = picture.row_name != picture.column_name  # the same name twice would not help
    axes = [f"rows: {picture.row_name}, columns: {picture.column_name}"] if named else []
    lines = [line.rstrip() for line in (*captions, *lines, *axes)]
    return "\n".join(lines) if all(len(line) <= width for line in lines) else None


# --- layout --------------------------------------------------------------------------------------


def _numbers(picture: Picture, marks: Marks, width: int) -> list[str] | None:
    """Two matrices of numbers with two digits; wrong numbers are marked.

    None if the numbers do not fit, or if a wrong number looks like the expected number.
    """
    whole = _Window(0, picture.rows, picture.rows), _Window(0, picture.columns, picture.columns)
    if is_boolean(picture) or max(picture.rows, picture.columns) > MOST_NUMBERS:
        return None
    ours, theirs = (
        [[_number(float(value)) for value in row] for row in matrix]
        for matrix in (picture.expected, picture.actual)
    )
    longest = max(len(text) for row in (*ours, *theirs) for text in row)
    if longest >= NUMBER_WIDTH:
        return None
    rows = zip(ours, theirs, picture.wrong, strict=True)
    if any(one == other and wrong for row in rows for one, other, wrong in zip(*row, strict=True)):
        return None  # rounded to two digits, a wrong number looks like the expected number
    marked = [
        [text + (marks.wrong if wrong else " ") for text, wrong in zip(*rows, strict=True)]
        for rows in zip(theirs, picture.wrong, strict=True)
    ]
    tight = max(longest + 1, 3)
    for widths in ((NUMBER_WIDTH, NUMBER_WIDTH + 1), (tight, tight + 1), (tight, tight)):
        lines = _panels([ours, marked], whole, widths, width, marked=True)
        if lines is not None:
            return [*lines, f"{marks.wrong} {TITLES[-1]}"]
    return None


def _shades(picture: Picture, marks: Marks, width: int) -> list[str] | None:
    """Three matrices of shades, two characters a cell; None if `width` is too small.

    If not all columns fit, the columns shown contain a difference.
    """
    height, breadth = len(picture.wrong), len(picture.wrong[0])
    down = _Window(picture.top, picture.top + height, picture.rows)
    room = (width - len(str(picture.rows - 1)) - 1 - 2 * GAPS[-1]) // 6
    if room < 2:
        return None
    hit = next(index for row in picture.wrong for index, value in enumerate(row) if value)
    skipped = 0 if hit < room or breadth <= room else min(hit, breadth - room)
    part = slice(skipped, skipped + room)
    left = picture.left + skipped
    across = _Window(left, left + min(room, breadth - skipped), picture.columns)
    ours, theirs = ([row[part] for row in m] for m in (picture.expected, picture.actual))
    top = scale(ours, theirs)
    cells = [[[shade(value, top, marks) for value in row] for row in m] for m in (ours, theirs)]
    crosses = [[marks.wrong if w else marks.zero for w in row[part]] for row in picture.wrong]
    lines = _panels([*cells, crosses], (down, across), (2, 2, 2), width)
    if lines is None:
        return None
    legend = _legend(ours, theirs, top, marks)
    return [*lines, *_wrapped(legend, width), *_cut(down, across, marks)]


def _panels(
    cells: Sequence[Sequence[Sequence[str]]],
    windows: tuple[_Window, _Window],
    widths: Sequence[int],
    width: int,
    *,
    marked: bool = False,
) -> list[str] | None:
    """The matrices side by side: titles, column indices, and rows with their indices on the left.

    None if `width` is too small. If `marked`, the cells of the last matrix end with a mark, and
    its column indices are aligned with the values, not with the marks.
    """
    down, across = windows
    label = len(str(down.stop - 1)) + 1
    columns = across.stop - across.start
    outer = [max(len(title), columns * cell) for title, cell in zip(TITLES, widths, strict=False)]
    gap = next((gap for gap in GAPS if label + sum(outer) + (len(outer) - 1) * gap <= width), None)
    if gap is None:
        return None
    heads = [indices(across.start, across.stop, cell) for cell in widths]
    if marked:
        heads[-1] = heads[-1][1:]
    rows = [
        [
            "".join(text.rjust(cell) for text in matrix[row])
            for matrix, cell in zip(cells, widths, strict=True)
        ]
        for row in range(down.stop - down.start)
    ]
    labels = [" " * label] * 2 + [f"{i} ".rjust(label) for i in range(down.start, down.stop)]
    titles = [
        f" {title}" if columns * cell > len(title) else title
        for title, cell in zip(TITLES, widths, strict=False)
    ]
    return [
        first + (" " * gap).join(part.ljust(size) for part, size in zip(parts, outer, strict=True))
        for first, parts in zip(labels, [titles, heads, *rows], strict=True)
    ]


def indices(start: int, stop: int, cell: int) -> str:
    """The line of indices above columns of `cell` characters, without indices that do not fit."""
    digits = len(str(stop - 1))
    every = 1 if digits < cell else math.ceil((digits + 1) / cell)
    line = ""
    for index in range(start, stop):
        end = (index - start + 1) * cell
        if index % every == 0 and end - len(str(index)) >= len(line):
            line = line.ljust(end - len(str(index))) + str(index)
    return line


# --- cells ---------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """A number with two digits, such as .25, -1.3 or 12; whole numbers are not rounded."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return str(int(value))
    text = f"{value:.2f}" if abs(value) < 0.995 else f"{value:.{1 if abs(value) < 9.95 else 0}f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text


def shade(cell: MatrixCell, top: float, marks: Marks) -> str:
    """The characters for a value; a stronger shade for each quarter of `top`."""
    if isinstance(cell, bool):
        return marks.true if cell else marks.zero
    value = float(cell)
    if math.isnan(value):
        return "N"
    sign = "-" if value < 0 else "+"
    if math.isinf(value):
        return sign + marks.infinity
    if value == 0:
        return marks.zero
    level = min(3, max(0, math.ceil(4 * min(1.0, abs(value) / top)) - 1))
    return (sign if value < 0 else marks.shades[level]) + marks.shades[level]


def cell_of(value: Any) -> MatrixCell:
    """A number or truth value as a cell; infinities and NaN become text, since JSON lacks them."""
    if isinstance(value, bool):
        return value
    number = float(value)
    return number if math.isfinite(number) else str(number)  # type: ignore[return-value]


def is_boolean(picture: Picture) -> bool:
    """Whether the picture's matrices hold truth values."""
    return isinstance(picture.expected[0][0], bool)


def scale(ours: Rows, theirs: Rows) -> float:
    """The value of the darkest shade: the largest absolute value of `ours`, or else of `theirs`."""
    for matrix in (ours, theirs):
        largest = max((abs(value) for value in _values(matrix) if math.isfinite(value)), default=0)
        if largest > 0:
            return largest
    return 1.0


def _values(matrix: Rows) -> list[float]:
    return [float(cell) for row in matrix for cell in row]


def _legend(ours: Rows, theirs: Rows, top: float, marks: Marks) -> list[str]:
    """Explanations of the marks that occur in two matrices."""
    if isinstance(ours[0][0], bool):
        return [f"{marks.true} True", f"{marks.zero} False"]
    both = _values(ours) + _values(theirs)
    finite = [value for value in both if math.isfinite(value)]
    shades = " ".join(marks.shades)
    entries = [
        (0.0 in both, f"{marks.zero} zero"),
        (any(finite), f"{shades} in quarters up to {top:.2g}"),
        (any(abs(value) > top for value in finite), f"{marks.shades[-1]} also beyond"),
        (any(value < 0 for value in finite), f"-{marks.shades[-1]} negative"),
        (any(map(math.isinf, both)), f"{marks.infinity} infinite"),
        (any(map(math.isnan, both)), "N NaN"),
    ]
    return [text for shown, text in entries if shown]


def _wrapped(entries: Sequence[str], width: int) -> list[str]:
    """The entries, separated by two spaces, on as many lines as needed."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 2 + len(entry) <= width:
            lines[-1] += f"  {entry}"
        else:
            lines.append(entry)
    return lines


def _cut(down: _Window, across: _Window, marks: Marks) -> list[str]:
    """A line with the shown ranges of rows and columns, if some are left out."""
    parts = [
        f"{noun} {window.start}{marks.span}{window.stop - 1} of {window.size}"
        for noun, window in (("rows", down), ("columns", across))
        if window.cut
    ]
    return [f"{marks.ellipsis} only {', '.join(parts)}"] if parts else []
