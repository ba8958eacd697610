"""Reads tables of decisions that an instructor wrote: one line for each decision.

A table is taken as a whole or not at all: an error names every wrong line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from grader.intake.files import decoded
from grader.records.faults import CallError
from grader.records.rows import counted, some_of
from grader.records.tables import read_csv

Made = TypeVar("Made")


@dataclass(frozen=True)
class Columns:
    """The columns of a table; titles are compared without case."""

    table: str  # what the table holds, as in "a table of corrections"
    needed: Sequence[str]
    optional: Sequence[str] = ()
    either: Sequence[str] = ()  # of these, a table has at least one
    aliases: Mapping[str, str] = field(default_factory=dict)  # other titles, and what they mean

    @property
    def header(self) -> str:
        """What the first line must be."""
        needed = [*self.needed, *[" or ".join(self.either)] * bool(self.either)]
        more = f"; also {', '.join(self.optional)} if you like" if self.optional else ""
        return f"its first line must name the columns {', '.join(needed)}, in any order{more}"


def entries(
    data: bytes, file: str, columns: Columns, make: Callable[[int, Mapping[str, str]], Made]
) -> list[Made]:
    """Make something of each line of a table; other columns are ignored.

    `make` gets a line's number and its cells by column, and raises `CallError` if the line is
    wrong. Raises one `CallError` that names every wrong line.
    """
    found: list[Made] = []
    wrong: list[str] = []
    for line, cells in _lines(data, file, columns):
        try:
            if isinstance(cells, str):
                raise CallError(cells)
            found.append(make(line, cells))
        except CallError as error:
            wrong.append(f"line {line}: {' '.join(str(error).split())}")
    if wrong:
        raise CallError(f"{file}: nothing was written: {some_of(wrong)}")
    if not found:
        raise CallError(f"{file} has no line below its header: there is nothing to write")
    return found


def _lines(
    data: bytes, file: str, columns: Columns
) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    """The number of each line that is not blank, with its cells by column, or an error message."""
    rows = [
        (line, [cell.strip() for cell in cells])
        for line, cells in read_csv(decoded(data), file).rows
    ]
    rows = [(line, cells) for line, cells in rows if any(cells)]
    if not rows:
        raise CallError(f"{file} is empty: {columns.header}")
    (_, header), *rest = rows
    titles = [columns.aliases.get(cell.casefold(), cell.casefold()) for cell in header]
    known = (*columns.needed, *columns.either, *columns.optional)
    twice = any(titles.count(column) > 1 for column in known)
    lacks = columns.either and not {*columns.either} & {*titles}
    if twice or lacks or not {*columns.needed} <= {*titles}:
        raise CallError(f"{file} is not a table of {columns.table}: {columns.header}")
    places = {column: titles.index(column) for column in known if column in titles}
    for line, cells in rest:
        if len(cells) != len(titles):
            yield line, f"it has {counted(len(cells), 'cell')}, but the header has {len(titles)}"
        else:
            yield line, {column: cells[place] for column, place in places.items()}
