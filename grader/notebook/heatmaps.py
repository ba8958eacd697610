"""`grader.heatmap`: one matrix to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.feedback.pictures.svg import heatmap_svg, matrix_of
from grader.feedback.pictures.text import UNICODE, scale, shade
from grader.notebook.errors import NotChecked
from grader.notebook.shown import WIDTH
from grader.records.faults import CallError
from grader.records.grade import Cell, Matrix


@dataclass(frozen=True, repr=False)
class Heatmap:
    """One matrix to look at: as a picture in a notebook, and as blocks of shade in text."""

    matrix: Matrix
    title: str = ""
    rows: str = ""
    columns: str = ""

    def __repr__(self) -> str:
        shown = [row[: WIDTH // 2 - 4] for row in self.matrix[:WIDTH]]
        top = scale(shown, shown)
        label = len(str(len(shown) - 1))
        lines = [
            f"{index:>{label}} " + "".join(f"{shade(cell, top, UNICODE):>2}" for cell in row)
            for index, row in enumerate(shown)
        ]
        size = f"{len(self.matrix)} by {len(self.matrix[0])}"
        names = (("rows", self.rows), ("columns", self.columns))
        axes = [f"{what}: {name}" for what, name in names if name]
        return "\n".join(
            [*filter(None, [self.title]), *lines, ", ".join([size, *axes, *self._cuts(shown)])]
        )

    def _cuts(self, shown: Sequence[Sequence[Cell]]) -> Iterator[str]:
        """What is shown of how much, where it is not all."""
        if len(shown) < len(self.matrix):
            yield f"shown are rows 0–{len(shown) - 1}"
        if len(shown[0]) < len(self.matrix[0]):
            yield f"shown are columns 0–{len(shown[0]) - 1}"

    def _repr_svg_(self) -> str:
        return heatmap_svg(self.matrix, title=self.title, rows=self.rows, columns=self.columns)

    def _repr_html_(self) -> str:
        return self._repr_svg_()


def heatmap(weights: Any, *, rows: str = "", columns: str = "", title: str = "") -> Heatmap:
    """Show attention weights or a mask: a tensor with two axes, an array or a list of lists.

    `rows` and `columns` say what stands along the axes. Raises `CallError` for what is no matrix.

    >>> grader.heatmap(weights, rows="queries", columns="keys")
    """
    try:
        return Heatmap(matrix_of(weights), title, rows, columns)
    except CallError as error:
        raise NotChecked(str(error)) from None
