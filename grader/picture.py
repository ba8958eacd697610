"""Draws small matrices for a terminal, as plain text: expected, yours, and where they differ.

A cell is two characters wide, and says what it says without colour:

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

Matrices up to 6 by 6 are shown as numbers of two digits instead, where they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grader.differences import PRECISION, differing

MOST_CELLS = 12  # rows, and columns
MOST_NUMBERS = 6
NUMBER_WIDTH = 5
TITLES = ("expected", "yours", "differs")
GAPS = (4, 2)  # between the matrices: the first that fits


@dataclass(frozen=True)
class _Marks:
    """The characters of cells."""

    shades: str
    zero: str
    true: str
    wrong: str
    infinity: str
    ellipsis: str
    span: str


UNICODE = _Marks("░▒▓█", "·", "■", "✗", "∞", "…", "–")
ASCII = _Marks(":+*#", ".", "#", "X", "I", "...", "-")


@dataclass(frozen=True)
class _Window:
    """The part of a matrix that is shown: where it begins and ends along an axis."""

    start: int
    stop: int
    size: int

    @property
    def cut(self) -> bool:
        return self.stop - self.start < self.size

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)


def side_by_side(
    ours: Tensor,
    theirs: Tensor,
    *,
    names: Sequence[str] | None = None,
    wrong: Tensor | None = None,
    width: int = 80,
    ascii_only: bool = False,
) -> str | None:
    """Expected beside actual beside where they differ, as lines of at most `width` characters.

    Both are tensors of one shape; of more than two axes the first matrix that differs is shown. A
    vector is shown as one row. `names` are those of all axes, or of the last two; `wrong` says
    which elements differ, and without it the tolerances of `torch.testing` do. None where there is
    nothing to see: a single element, no difference, two shapes or dtypes, complex numbers, no room.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return None
    if ours.dtype not in PRECISION or ours.numel() < 2:
        return None
    with torch.no_grad():
        wrong = differing(theirs, ours) if wrong is None else wrong
        if not bool(wrong.any()):
            return None
        first = [int(step) for step in wrong.nonzero()[0]]
        at = tuple(first[:-2])
        matrices = [_matrix(tensor[at]) for tensor in (ours, theirs, wrong)]
    marks = ASCII if ascii_only else UNICODE
    captions = [_caption(at, names, ours.dim())] if at else []
    drawn = _numbers(matrices, marks, width) or _shades(matrices, marks, width)
    if drawn is None:
        return None
    lines = [*captions, *drawn, *_axis_names(names, ours.dim())]
    return "\n".join(line.rstrip() for line in lines) if _fit(lines, width) else None


def _matrix(tensor: Tensor) -> Tensor:
    """Of a vector one row; and everything but truth values in float64."""
    matrix = tensor.detach().reshape(1, -1) if tensor.dim() == 1 else tensor.detach()
    return matrix if matrix.dtype == torch.bool else matrix.double()


def _caption(at: Sequence[int], names: Sequence[str] | None, dims: int) -> str:
    """Which matrix of many: "batch 0, heads 1:"."""
    if names is None or len(names) != dims:
        return f"at [{', '.join(map(str, at))}]:"
    return ", ".join(f"{name} {index}" for name, index in zip(names, at, strict=False)) + ":"


def _axis_names(names: Sequence[str] | None, dims: int) -> list[str]:
    if names is None or len(names) not in (2, dims) or dims < 2:
        return []
    rows, columns = names[-2:]
    return [f"rows: {rows}, columns: {columns}"]


def _fit(lines: Sequence[str], width: int) -> bool:
    return all(len(line.rstrip()) <= width for line in lines)


# --- layout --------------------------------------------------------------------------------------


def _numbers(matrices: Sequence[Tensor], marks: _Marks, width: int) -> list[str] | None:
    """Two digits a cell, if all values are legible so and there is room."""
    ours, theirs, wrong = matrices
    rows, columns = ours.shape
    if ours.dtype == torch.bool or max(rows, columns) > MOST_NUMBERS:
        return None
    values = [[[_number(value) for value in row] for row in m.tolist()] for m in (ours, theirs)]
    if any(len(text) >= NUMBER_WIDTH for matrix in values for row in matrix for text in row):
        return None
    whole = _Window(0, rows, rows), _Window(0, columns, columns)
    cells = [*values, _crosses(wrong, marks)]
    return _panels(cells, whole, (NUMBER_WIDTH, NUMBER_WIDTH, 2), width)


def _shades(matrices: Sequence[Tensor], marks: _Marks, width: int) -> list[str] | None:
    """Two characters a cell, in a window that has a difference in it."""
    wrong = matrices[2]
    hits = [wrong.any(1).nonzero(), wrong.any(0).nonzero()]
    label = len(str(wrong.shape[0] - 1)) + 1
    room = (width - label - 2 * GAPS[-1]) // 6
    if room < 2:
        return None
    down, across = (
        _window(size, min(MOST_CELLS, most), int(hit[0]))
        for size, most, hit in zip(wrong.shape, (MOST_CELLS, room), hits, strict=True)
    )
    ours, theirs, wrong = (matrix[down.slice, across.slice] for matrix in matrices)
    if not bool(wrong.any()):  # the first wrong row and column may not meet: begin at an element
        row, column = (int(step) for step in matrices[2].nonzero()[0])
        down = _window(down.size, MOST_CELLS, row)
        across = _window(across.size, min(MOST_CELLS, room), column)
        ours, theirs, wrong = (matrix[down.slice, across.slice] for matrix in matrices)
    top = _scale(ours, theirs)
    cells = [[[_shade(value, top, marks) for value in row] for row in m.tolist()]
             for m in (ours, theirs)]  # fmt: skip
    drawn = _panels([*cells, _crosses(wrong, marks)], (down, across), (2, 2, 2), width)
    if drawn is None:
        return None
    legend = _legend(ours, theirs, top, marks)
    return [*drawn, *_wrapped(legend, width), *_cut(down, across, marks)]


def _window(size: int, most: int, wanted: int) -> _Window:
    """The first `most` indices, or some further on that hold the wanted one."""
    start = 0 if wanted < most else min(wanted, size - most)
    return _Window(start, min(size, start + most), size)


def _panels(
    cells: Sequence[Sequence[Sequence[str]]],
    windows: tuple[_Window, _Window],
    widths: tuple[int, int, int],
    width: int,
) -> list[str] | None:
    """Titles, column indices, and the rows of all matrices, with their index on the left."""
    down, across = windows
    label = len(str(down.stop - 1)) + 1
    columns = across.stop - across.start
    outer = [max(len(title), columns * cell) for title, cell in zip(TITLES, widths, strict=True)]
    gap = next((gap for gap in GAPS if label + sum(outer) + 2 * gap <= width), None)
    if gap is None:
        return None
    heads = [_indices(across, cell) for cell in widths]
    rows = [
        ["".join(text.rjust(cell) for text in matrix[row]) for matrix, cell in
         zip(cells, widths, strict=True)]
        for row in range(down.stop - down.start)
    ]  # fmt: skip
    labels = [" " * label] * 2 + [f"{i} ".rjust(label) for i in range(down.start, down.stop)]
    titles = [f" {title}" if columns * cell > len(title) else title
              for title, cell in zip(TITLES, widths, strict=True)]  # fmt: skip
    return [
        first + (" " * gap).join(part.ljust(size) for part, size in zip(parts, outer, strict=True))
        for first, parts in zip(labels, [titles, heads, *rows], strict=True)
    ]


def _indices(across: _Window, cell: int) -> str:
    """Indices over their columns, as many as can be told apart."""
    digits = len(str(across.stop - 1))
    every = 1 if digits < cell else math.ceil((digits + 1) / cell)
    line = ""
    for index in range(across.start, across.stop):
        end = (index - across.start + 1) * cell
        if index % every == 0 and end - len(str(index)) >= len(line):
            line = line.ljust(end - len(str(index))) + str(index)
    return line


# --- cells ---------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """Two digits: .25, -1.3, 12; and whole numbers as they are."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return str(int(value))
    text = f"{value:.2f}" if abs(value) < 0.995 else f"{value:.{1 if abs(value) < 9.95 else 0}f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text


def _shade(value: float | bool, top: float, marks: _Marks) -> str:
    if isinstance(value, bool):
        return marks.true if value else marks.zero
    if math.isnan(value):
        return "N"
    sign = "-" if value < 0 else "+"
    if math.isinf(value):
        return sign + marks.infinity
    if value == 0:
        return marks.zero
    level = min(3, max(0, math.ceil(4 * min(1.0, abs(value) / top)) - 1))
    return (sign if value < 0 else marks.shades[level]) + marks.shades[level]


def _crosses(wrong: Tensor, marks: _Marks) -> list[list[str]]:
    return [[marks.wrong if value else marks.zero for value in row] for row in wrong.tolist()]


def _scale(ours: Tensor, theirs: Tensor) -> float:
    """What the darkest shade stands for: the largest expected value, or else the largest."""
    for tensor in (ours, theirs):
        sizes = tensor.double().abs()
        sizes = sizes[sizes.isfinite()]
        if sizes.numel() and float(sizes.max()) > 0:
            return float(sizes.max())
    return 1.0


def _legend(ours: Tensor, theirs: Tensor, top: float, marks: _Marks) -> list[str]:
    """What the marks mean: those that are there."""
    if ours.dtype == torch.bool:
        return [f"{marks.true} True", f"{marks.zero} False"]
    both = torch.cat((ours.flatten(), theirs.flatten()))
    finite = both[both.isfinite()]
    shades = " ".join(marks.shades)
    entries = [
        (bool((both == 0).any()), f"{marks.zero} zero"),
        (bool((finite != 0).any()), f"{shades} in quarters up to {top:.2g}"),
        (bool((finite.abs() > top).any()), f"{marks.shades[-1]} also beyond"),
        (bool((finite < 0).any()), f"-{marks.shades[-1]} negative"),
        (bool(both.isinf().any()), f"{marks.infinity} infinite"),
        (bool(both.isnan().any()), "N NaN"),
    ]
    return [text for shown, text in entries if shown]


def _wrapped(entries: Sequence[str], width: int) -> list[str]:
    """Entries with two spaces between, on as many lines as they need."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 2 + len(entry) <= width:
            lines[-1] += f"  {entry}"
        else:
            lines.append(entry)
    return lines


def _cut(down: _Window, across: _Window, marks: _Marks) -> list[str]:
    """What is shown of how much."""
    parts = [
        f"{what} {window.start}{marks.span}{window.stop - 1} of {window.size}"
        for what, window in (("rows", down), ("columns", across))
        if window.cut
    ]
    return [f"{marks.ellipsis} only {', '.join(parts)}"] if parts else []
