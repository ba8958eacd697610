"""`grader.heatmap`: shows a matrix, as a picture in a notebook or as shaded blocks in text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from grader.feedback.pictures.svg import heatmap_svg, matrix_of
from grader.feedback.pictures.text import ASCII, UNICODE, Marks, indices, scale, shade
from grader.records.faults import CallError
from grader.records.grade import Matrix
from grader.student.notebook_display import NotChecked, with_text

WIDTH = 80  # characters of a line of text
MOST_ROWS = 88
LONGEST, SHORTEST = 12, 4  # a token is cut to at most 12 characters, and to 4 in narrow columns

NO_TOKENS = "tokens must be a list of labels for rows and columns, as in tokens=text.split()"


@dataclass(frozen=True, repr=False)
class Heatmap:
    """A matrix that notebooks show as a picture, and that prints as shaded blocks."""

    matrix: Matrix
    title: str = ""
    rows: str = ""
    columns: str = ""
    row_tokens: tuple[str, ...] = ()
    column_tokens: tuple[str, ...] = ()

    def show(self) -> None:
        """Show the heatmap at once: as a picture in a notebook, or as text in a terminal."""
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            ipython.display.display(self)
            return
        encoding = sys.stdout.encoding or "utf-8"
        try:
            repr(self).encode(encoding)
        except UnicodeEncodeError:  # the console cannot print shaded blocks
            print(self._text(ASCII).encode(encoding, "replace").decode(encoding))
        else:
            print(self)

    def __repr__(self) -> str:
        return self._text(UNICODE)

    def _text(self, marks: Marks) -> str:
        height = min(len(self.matrix), MOST_ROWS)
        labels, heads, widths = self._labels(height, marks)
        cells = [row[: len(widths)] for row in self.matrix[:height]]
        top = scale(cells, cells)
        lines = [heads] if heads else []
        for label, row in zip(labels, cells, strict=True):
            blocks = (shade(cell, top, marks) for cell in row)
            lines.append(f"{label} " + "".join(map(str.rjust, blocks, widths)))
        names = (("rows", self.rows), ("columns", self.columns))
        axes = [f"{what}: {name}" for what, name in names if name]
        size = f"{len(self.matrix)} by {len(self.matrix[0])}"
        below = ", ".join([size, *axes, *self._cuts(height, len(widths), marks)])
        return "\n".join([*filter(None, [self.title]), *lines, below])

    def _labels(self, height: int, marks: Marks) -> tuple[list[str], str, list[int]]:
        """The labels of the rows, the line above them, and the width of each column.

        If there is no room for the columns' tokens, the columns get numbers instead. Then each row
        has its number before its token.
        """
        numbers = [str(index) for index in range(height)]
        tokens = [_short(token, LONGEST, marks) for token in self.row_tokens[:height]]
        labels = _aligned(tokens or numbers)
        room = WIDTH - len(labels[0]) - 1
        for longest in range(LONGEST, SHORTEST - 1, -1) if self.column_tokens else ():
            heads = [_short(token, longest, marks) for token in self.column_tokens]
            widths = [max(len(head), 2) + 1 for head in heads]
            if sum(widths) <= room:
                above = "".join(map(str.rjust, heads, widths))
                return labels, " " * (len(labels[0]) + 1) + above, widths
        if tokens and self.column_tokens:
            labels = _aligned(map("{} {}".format, _aligned(numbers), tokens), left=True)
            room = WIDTH - len(labels[0]) - 1
        count = min(len(self.matrix[0]), room // 2)
        above = " " * (len(labels[0]) + 1) + indices(0, count, 2) if self.column_tokens else ""
        return labels, above, [2] * count

    def _cuts(self, height: int, width: int, marks: Marks) -> Iterator[str]:
        """Phrases that say which rows and columns are shown, if some are cut off."""
        if height < len(self.matrix):
            yield f"only rows 0{marks.span}{height - 1} are shown"
        if width < len(self.matrix[0]):
            yield f"only columns 0{marks.span}{width - 1} are shown"

    def _repr_svg_(self) -> str:
        return heatmap_svg(
            self.matrix,
            title=self.title,
            rows=self.rows,
            columns=self.columns,
            row_tokens=self.row_tokens,
            column_tokens=self.column_tokens,
        )

    def _repr_html_(self) -> str:
        return with_text(self._repr_svg_(), repr(self))


def heatmap(
    weights: Any,
    *,
    tokens: Iterable[Any] = (),
    rows: str = "",
    columns: str = "",
    title: str = "",
) -> Heatmap:
    """Show attention weights or a mask: a tensor with two axes, an array or a list of lists.

    `tokens` are the labels of rows and columns. If the matrix is not square, they label the axis
    that has one entry for each token. `rows` and `columns` are names of the axes. Raises
    `CallError` if `weights` is not a matrix, or if no axis has one entry for each token.

    >>> grader.heatmap(weights, tokens="Your journey starts".split(), rows="queries")
    """
    try:
        matrix = matrix_of(weights)
        down, across = _along(matrix, _labels_of(tokens))
        return Heatmap(matrix, title, rows, columns, down, across)
    except CallError as error:
        raise NotChecked(str(error)) from None


def _labels_of(tokens: Iterable[Any]) -> tuple[str, ...]:
    """Each token as one line of text."""
    try:
        labels = [str(token) for token in tokens]
    except TypeError:
        raise CallError(NO_TOKENS) from None
    return tuple(label if label.isprintable() else repr(label)[1:-1] for label in labels)


def _along(matrix: Matrix, labels: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of the rows and of the columns; an axis with more or fewer entries gets none."""
    height, width = len(matrix), len(matrix[0])
    if labels and len(labels) not in (height, width):
        raise CallError(
            f"there are {len(labels)} tokens, and the matrix is {height} by {width}: "
            "give one token for each row or column"
        )
    return labels if len(labels) == height else (), labels if len(labels) == width else ()


def _short(token: str, longest: int, marks: Marks) -> str:
    if len(token) <= longest:
        return token
    return token[: longest - len(marks.ellipsis)] + marks.ellipsis


def _aligned(labels: Iterable[str], left: bool = False) -> list[str]:
    """The labels, padded to the width of the widest label."""
    some = list(labels)
    widest = max(map(len, some))
    return [label.ljust(widest) if left else label.rjust(widest) for label in some]
