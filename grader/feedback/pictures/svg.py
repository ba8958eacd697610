"""Draws small matrices as SVG for notebooks and pages: expected, yours, and their difference.

The SVG is written directly: a page of feedback may have dozens of pictures, and a plotting library
takes a fifth of a second for each.

A picture is legible without colour. A stronger fill means a larger absolute value, a bar marks a
negative value, frames and crosses mark wrong cells, and small matrices show their numbers. A
picture has no background and takes the page's text colour, so that it suits light and dark pages.
It has no ids, style sheets or links, so that a page can hold many pictures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from grader.feedback.pictures.text import MOST_NUMBERS, cell_of, is_boolean, scale
from grader.records.faults import CallError
from grader.records.grade import Matrix, MatrixCell, Picture

MOST_SHOWN = 64  # the most rows, and the most columns, of a single matrix

# Lengths are in points, 72 to an inch.
EDGE, GAP, LINE = 8.0, 16.0, 12.0
NUMBER_CELL, MARK_CELL, LEAST_CELL = 24.0, 14.0, 4.0
MOST_WIDTH = 360.0  # the largest width of a single matrix without numbers
NUMBER_FONT, MARK_FONT, LABEL_FONT, TITLE_FONT = 7.5, 7.5, 7.5, 9.5
WIDE = 0.62  # width of a character, relative to the font's size
LONGEST = 14  # characters of a label; a longer token is cut
RISE = 0.36  # from the middle of a line to its baseline, relative to the font's size

INK, FAINT = "currentColor", "currentColor; fill-opacity: 0.75"  # the page's text colour
WHITE, GRID, WRONG = "#ffffff", "#9a9a9a", "#d0202c"
SHADES = 12  # steps from transparent to opaque
FULLEST = {False: "#1f5fbf", True: "#a8480a"}  # blue; brown for negative values
INVERTED = 0.75  # above this share of the largest value, the fill is dark and the text white

Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]  # left, top, width, height


def picture_svg(picture: Picture) -> str:
    """The expected matrix, the student's matrix and their difference, as an ``<svg>`` element."""
    panels, down, across = _compared(picture)
    title = f"{picture.caption}: expected, yours, and the difference".removeprefix(": ")
    return _drawn(panels, down, across, picture.caption, title, _described(picture))


def panels_svg(picture: Picture) -> list[str]:
    """The matrices of `picture_svg` as an ``<svg>`` element each, for narrow screens.

    The caption is left to the page. Only the last element describes the cells that differ.
    """
    panels, down, across = _compared(picture)
    described = ["", "", _described(picture)]
    return [
        _drawn([panel], down, across, "", panel.title, words)
        for panel, words in zip(panels, described, strict=True)
    ]


def _compared(picture: Picture) -> tuple[list[_Panel], _Axis, _Axis]:
    """The panels of a picture, with the axis of rows and the axis of columns."""
    across = _Axis(picture.left, len(picture.wrong[0]), picture.columns, picture.column_name)
    down = _Axis(picture.top, len(picture.wrong), picture.rows, picture.row_name)
    numbers = max(picture.rows, picture.columns) <= MOST_NUMBERS and not is_boolean(picture)
    difference = _difference(picture)
    top = scale(picture.expected, picture.actual)
    panels = [
        _Panel("expected", picture.expected, top, numbers),
        _Panel("yours", picture.actual, top, numbers, framed=picture.wrong),
        _Panel(
            "differs" if is_boolean(picture) else "yours − expected",
            difference,
            scale(difference, difference),
            numbers,
            crossed=picture.wrong,
        ),
    ]
    return panels, down, across


def heatmap_svg(
    weights: Any,
    *,
    title: str = "",
    rows: str = "",
    columns: str = "",
    row_tokens: Sequence[str] = (),
    column_tokens: Sequence[str] = (),
) -> str:
    """A single matrix as an ``<svg>`` element: attention weights, or a mask.

    `weights` is a tensor, an array or a list of lists. `rows` and `columns` are the axes' names.
    `row_tokens` and `column_tokens` are labels in place of the indices. Raises `CallError` if
    `weights` is not a matrix.
    """
    whole = matrix_of(weights)
    matrix = tuple(row[:MOST_SHOWN] for row in whole[:MOST_SHOWN])
    down = _Axis(0, len(matrix), len(whole), rows, row_tokens)
    across = _Axis(0, len(matrix[0]), len(whole[0]), columns, column_tokens)
    numbers = max(down.count, across.count) <= MOST_NUMBERS and not isinstance(matrix[0][0], bool)
    described = f"A matrix of {down.size} by {across.size} values."
    panel = _Panel("", matrix, scale(matrix, matrix), numbers)
    return _drawn([panel], down, across, title, title or "a matrix", described)


def matrix_of(weights: Any) -> Matrix:
    """Numbers or truth values as rows of cells; a vector becomes a single row.

    Leading axes of length one are dropped, such as the batch of a single sequence.
    """
    if callable(weights) and not hasattr(weights, "tolist"):
        raise CallError("a heat-map shows one matrix, and this is a function: call it")
    values = weights.tolist() if hasattr(weights, "tolist") else weights
    shape = _shape(values)
    while len(shape) > 2 and shape[0] == 1:
        values, shape = values[0], shape[1:]
    if len(shape) == 1:
        values, shape = [values], (1, *shape)
    if len(shape) != 2 or 0 in shape:
        listed = f"({', '.join(map(str, shape))})"
        raise CallError(
            f"a heat-map shows one matrix, and this has the shape {listed}"
            + ("; pick one of them, such as weights[0]" if len(shape) > 2 else "")
        )
    try:
        matrix = tuple(tuple(map(cell_of, row)) for row in values)
    except (TypeError, ValueError):
        raise CallError("a heat-map shows real numbers or True and False") from None
    if len(set(map(len, matrix))) > 1:
        raise CallError("a heat-map shows one matrix, and the rows of this differ in length")
    return matrix


def _shape(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        return ()
    return len(values), *(_shape(values[0]) if values else ())


# --- text ----------------------------------------------------------------------------------------


def _difference(picture: Picture) -> Matrix:
    """The student's values minus the expected values.

    Zero for truth values, and where the difference is not finite.
    """

    def less(ours: MatrixCell, theirs: MatrixCell) -> float:
        gap = float(theirs) - float(ours)
        return gap if math.isfinite(gap) and not isinstance(ours, bool) else 0.0

    rows = zip(picture.expected, picture.actual, strict=True)
    return tuple(tuple(map(less, ours, theirs)) for ours, theirs in rows)


def _described(picture: Picture) -> str:
    """A description for people who cannot see the picture."""
    wrong = [
        (row, column)
        for row, crosses in enumerate(picture.wrong)
        for column, is_wrong in enumerate(crosses)
        if is_wrong
    ]
    count = "one cell differs" if len(wrong) == 1 else f"{len(wrong)} cells differ"
    parts = [f"A matrix of {picture.rows} by {picture.columns}; {count}"]
    for row, column in wrong[:3]:
        ours, theirs = (_words(m[row][column]) for m in (picture.expected, picture.actual))
        where = f"row {row + picture.top}, column {column + picture.left}"
        parts.append(f"{where}: expected {ours}, yours {theirs}")
    return "; ".join(parts) + "."


def _printable(text: str) -> str:
    """Replace control characters, which XML forbids."""
    return "".join(c if c.isprintable() else " " for c in text)


def _words(cell: MatrixCell) -> str:
    """A cell's value as text, with three digits."""
    return str(cell) if isinstance(cell, (bool, str)) else f"{cell:.3g}"


def _number(value: float) -> str:
    """A number as text with two digits; with three digits if it is 10 or larger."""
    return f"{value:.{3 if abs(value) >= 10 else 2}g}".replace("-", "−")


# --- layout --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """The indices shown along an axis, with the axis's size, name and tokens."""

    start: int
    count: int
    size: int
    name: str
    tokens: Sequence[str] = ()

    @property
    def labels(self) -> Sequence[str]:
        """The label of each shown index: its token, or its number."""
        shown = range(self.start, self.start + self.count)
        if not self.tokens:
            return [str(index) for index in shown]
        tokens = [self.tokens[index] for index in shown]
        return [t if len(t) <= LONGEST else f"{t[: LONGEST - 1]}…" for t in tokens]

    @property
    def room(self) -> float:
        """The width of the longest label."""
        return max(_room(label, LABEL_FONT) for label in self.labels)

    def turned(self, cell: float) -> bool:
        """Whether tokens must be turned to fit above columns of this width."""
        return bool(self.tokens) and self.room > cell

    @property
    def cut(self) -> str:
        """The shown range, if some indices are left out."""
        end = self.start + self.count
        return f"{self.start}–{end - 1} of {self.size}" if self.count < self.size else ""


@dataclass(frozen=True)
class _Panel:
    """A matrix with its title and marks; panels are drawn side by side."""

    title: str
    matrix: Matrix
    top: float  # the value of the darkest shade
    numbers: bool
    framed: Sequence[Sequence[bool]] = ()
    crossed: Sequence[Sequence[bool]] = ()

    def text(self, row: int, column: int) -> str:
        """The text in a cell."""
        cell = self.matrix[row][column]
        if self.crossed:
            if not self.crossed[row][column]:
                return ""
            return _number(float(cell)) if self.numbers and cell else "×"
        if isinstance(cell, bool):
            return "T" if cell else "F"
        if isinstance(cell, str):
            return {"nan": "NaN", "inf": "∞", "-inf": "−∞"}[cell]
        return _number(cell) if self.numbers else ""


@dataclass
class _Sheet:
    """The shapes to draw, grouped by style: all shapes of a style become a single SVG path."""

    filled: dict[str, list[Rectangle]] = field(default_factory=lambda: defaultdict(list))
    framed: list[Rectangle] = field(default_factory=list)
    lines: dict[str, list[tuple[Point, Point]]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float,
        color: str = INK,
        anchor: str = "middle",
        bold: bool = False,
        upright: bool = False,
    ) -> None:
        """Add text centred vertically at `y`; if `upright`, rotate the text about (x, y)."""
        # The <svg> element holds the style of most texts: write only deviations from that style.
        styles = [
            f"font-size: {size:.3g}px" if size != LABEL_FONT else "",
            f"fill: {color}" if color != INK else "",
            f"text-anchor: {anchor}" if anchor != "middle" else "",
            "font-weight: bold" if bold else "",
        ]
        style = "; ".join(filter(None, styles))
        styled = f' style="{style}"' if style else ""
        turned = f' transform="rotate(-90 {_lengths(x, y)})"' if upright else ""
        place = f'x="{_lengths(x)}" y="{_lengths(y + RISE * size)}"'
        self.texts.append(f"<text {place}{turned}{styled}>{escape(_printable(text))}</text>")


def _drawn(
    panels: Sequence[_Panel], down: _Axis, across: _Axis, caption: str, title: str, described: str
) -> str:
    """The panels from left to right, with the caption above them."""
    sheet = _Sheet()
    height, width = _cell_size(panels, down, across)
    cuts = [f"{noun} {cut}" for noun, cut in (("rows", down.cut), ("columns", across.cut)) if cut]
    head = ", ".join(filter(None, (caption, *cuts)))
    y = EDGE
    if head:
        sheet.write(EDGE, y + LINE / 2, head, size=TITLE_FONT, anchor="start")
        y += LINE * 1.5
    # The row axis's name may be longer than the rows are high: make room for it above the panels.
    above = LINE * (bool(across.name) + any(panel.title for panel in panels))
    above += _height_of_labels(across, width)
    y += max(0.0, (_room(down.name, LABEL_FONT) - down.count * height) / 2 - above)
    x = right = EDGE
    for panel in panels:
        x += GAP if panel is not panels[0] else 0
        labels = down.room + (LINE if down.name else 0)
        beside = max(0.0, (_room(across.name, LABEL_FONT) - across.count * width) / 2)
        labels = max(labels, beside)
        inner = max(across.count * width + beside, _room(panel.title, TITLE_FONT))
        bottom = _panel(sheet, panel, (x + labels, y, width, height), down, across)
        x += labels + inner
        right = max(x, EDGE + _room(head, TITLE_FONT))
    return _rendered(sheet, right + EDGE, bottom + EDGE, title, described)


def _cell_size(panels: Sequence[_Panel], down: _Axis, across: _Axis) -> tuple[float, float]:
    """The height and width of a cell; a cell with a number has room for the longest text."""
    if any(panel.numbers for panel in panels):
        longest = max(
            (
                panel.text(row, column)
                for panel in panels
                for row in range(down.count)
                for column in range(across.count)
            ),
            key=len,
        )
        return NUMBER_CELL, max(NUMBER_CELL, 2 + _room(longest, NUMBER_FONT))
    side = min(MARK_CELL, max(LEAST_CELL, MOST_WIDTH / max(down.count, across.count)))
    return side, side


def _room(text: str, size: float) -> float:
    return len(text) * size * WIDE + 4


def _panel(sheet: _Sheet, panel: _Panel, at: Rectangle, down: _Axis, across: _Axis) -> float:
    """Draw a matrix with its title and labels; return the y coordinate of its end."""
    x, y, width, height = at
    if panel.title:
        sheet.write(x, y + LINE / 2, panel.title, size=TITLE_FONT, anchor="start", bold=True)
        y += LINE
    if across.name:
        middle = x + across.count * width / 2
        sheet.write(middle, y + LINE / 2, across.name, size=LABEL_FONT, color=FAINT)
        y += LINE
    y += _height_of_labels(across, width)
    _column_labels(sheet, across, (x, y), width)
    every = math.ceil(LABEL_FONT / height)
    for row, label in list(enumerate(down.labels))[::every]:
        middle = y + (row + 0.5) * height
        sheet.write(x - 3, middle, label, size=LABEL_FONT, color=FAINT, anchor="end")
    if down.name:
        left = x - down.room - LINE / 2
        middle = y + down.count * height / 2
        sheet.write(left, middle, down.name, size=LABEL_FONT, color=FAINT, upright=True)
    for row in range(down.count):
        for column in range(across.count):
            place = x + column * width, y + row * height, width, height
            _draw_cell(sheet, panel, row, column, place)
    end = y + down.count * height
    if min(width, height) > LEAST_CELL:
        for row in range(down.count + 1):
            level = y + row * height
            sheet.lines[GRID].append(((x, level), (x + across.count * width, level)))
        for column in range(across.count + 1):
            edge = x + column * width
            sheet.lines[GRID].append(((edge, y), (edge, end)))
    return max(end, y + (down.count * height + _room(down.name, LABEL_FONT)) / 2)


def _height_of_labels(across: _Axis, cell: float) -> float:
    return across.room if across.turned(cell) else LINE


def _column_labels(sheet: _Sheet, across: _Axis, corner: Point, cell: float) -> None:
    """Draw labels above the columns of a matrix; leave out labels if not all fit."""
    left, bottom = corner
    turned = across.turned(cell)
    every = math.ceil((LABEL_FONT if turned else across.room) / cell)
    for column, label in list(enumerate(across.labels))[::every]:
        middle = left + (column + 0.5) * cell
        if turned:
            place, anchor = (middle, bottom - 3), "start"
        else:
            place, anchor = (middle, bottom - LINE / 2), "middle"
        sheet.write(*place, label, size=LABEL_FONT, color=FAINT, anchor=anchor, upright=turned)


def _draw_cell(sheet: _Sheet, panel: _Panel, row: int, column: int, at: Rectangle) -> None:
    x, y, width, height = at
    cell = panel.matrix[row][column]
    share = 0.0
    if isinstance(cell, bool):
        share = float(cell)
        sheet.filled[_shade(share, negative=False)].append(at)
    elif not isinstance(cell, str):
        share = min(1.0, abs(cell) / panel.top)
        sheet.filled[_shade(share, cell < 0)].append(at)
    color = WHITE if share >= INVERTED else INK
    text = panel.text(row, column)
    if text and height > LEAST_CELL * 1.5:
        size = min(MARK_FONT, height * 0.6, (width - 4) / (len(text) * WIDE))
        sheet.write(x + width / 2, y + height / 2, text, size=size, color=color)
    elif not isinstance(cell, (bool, str)) and cell < 0 and not panel.numbers:
        bar = y + height / 2
        sheet.lines[color].append(((x + width * 0.3, bar), (x + width * 0.7, bar)))
    if (panel.framed and panel.framed[row][column]) or (
        panel.crossed and panel.numbers and panel.crossed[row][column]
    ):
        sheet.framed.append((x + 1.5, y + 1.5, width - 3, height - 3))


def _shade(share: float, negative: bool) -> str:
    """The fill for a share of the largest value, rounded so that many cells share an SVG path."""
    step = math.ceil(share * SHADES) / SHADES
    return f"{FULLEST[negative]}; fill-opacity: {step:.2g}"


# --- SVG -----------------------------------------------------------------------------------------


def _rendered(sheet: _Sheet, width: float, height: float, title: str, described: str) -> str:
    """The ``<svg>`` element, with a title and a description for screen readers."""
    title, described = escape(_printable(title)), escape(_printable(described))
    size = _lengths(width), _lengths(height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}pt" height="{size[1]}pt"'
        f' viewBox="0 0 {" ".join(size)}" role="img" aria-label="{title}" style="max-width: 100%;'
        f" font: {LABEL_FONT}px 'DejaVu Sans', Verdana, sans-serif; text-anchor: middle;"
        f' fill: {INK}">'
    )
    named = [f"<title>{title}</title>", f"<desc>{described}</desc>"][: 2 if described else 1]
    return "\n".join([head, *named, *_shapes(sheet), *sheet.texts, "</svg>\n"])


def _shapes(sheet: _Sheet) -> Iterator[str]:
    """SVG paths: cells, then the grid and bars, then frames.

    Frames have a white rim, so that they are visible on dark cells.
    """
    for color, places in sheet.filled.items():
        yield _path(map(_outline, places), f"fill: {color}")
    for color, lines in sheet.lines.items():
        width = 0.5 if color == GRID else 1.0
        drawn = (f"M{_lengths(*start)}L{_lengths(*end)}" for start, end in lines)
        yield _path(drawn, f"stroke: {color}; stroke-width: {width}")
    for color, width in ((WHITE, 3.0), (WRONG, 1.6)):
        if sheet.framed:
            frames = map(_outline, sheet.framed)
            yield _path(frames, f"fill: none; stroke: {color}; stroke-width: {width}")


def _path(parts: Iterable[str], style: str) -> str:
    return f'<path d="{"".join(parts)}" style="{style}"/>'


def _outline(place: Rectangle) -> str:
    x, y, width, height = place
    return f"M{_lengths(x, y)}h{_lengths(width)}v{_lengths(height)}h{_lengths(-width)}z"


def _lengths(*values: float) -> str:
    return " ".join(f"{value:.2f}".rstrip("0").rstrip(".") for value in values)
