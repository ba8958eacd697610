"""Reads a CSV as spreadsheets, editors and learning systems write it."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from grader.records.faults import CallError
from grader.records.rows import separator_of

# Excel's first line, which names the separator and is no row.
_SEPARATOR = re.compile(r"\"?sep=(?P<separator>[,;\t|])\"?[ \t]*(\r\n|\r|\n|\Z)", re.IGNORECASE)
QUOTES = (
    "the quotes in this row do not match: close the quote, or remove it; a quote inside a quoted "
    "cell is written twice"
)


@dataclass(frozen=True)
class CsvTable:
    """The rows of a CSV, each with the number of its first line; blank rows included."""

    separator: str
    line_end: str
    rows: list[tuple[int, list[str]]]


def read_csv(text: str, where: str) -> CsvTable:
    """Parse the text of a CSV; `where` names the file in messages.

    Lines may end as on any system. Raises `CallError`, which names the line, if quotes do not
    match: otherwise the reader would silently take several rows for one cell.
    """
    named = _SEPARATOR.match(text)
    rest = text[named.end() :] if named else text
    plain = rest.replace("\r\n", "\n").replace("\r", "\n")
    separator = named["separator"] if named else separator_of(plain)
    reader = csv.reader(io.StringIO(rest, newline=""), delimiter=separator, strict=True)
    above = 1 if named else 0
    rows: list[tuple[int, list[str]]] = []
    while True:
        line = above + reader.line_num + 1  # a row may span several lines: this is its first
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            why = f"this row is not valid CSV: {error}" if "limit" in str(error) else QUOTES
            raise CallError(f"{where}:{line}: {why}") from None
        if rows and len(cells) != len(rows[0][1]) and _holds_rows(cells, separator):
            raise CallError(f"{where}:{line}: {QUOTES}")
        rows.append((line, cells))
    line_end = "\r\n" if "\r\n" in rest else "\r" if "\r" in rest and "\n" not in rest else "\n"
    return CsvTable(separator, line_end, rows)


def _holds_rows(cells: list[str], separator: str) -> bool:
    """Whether a cell seems to hold whole rows, since its quote is closed in a later row."""
    return any(separator in line for cell in cells for line in cell.splitlines()[1:])
