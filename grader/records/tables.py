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
            rows.append((line, next(reader)))
        except StopIteration:
            break
        except csv.Error as error:
            raise CallError(f"{where}:{line}: {_why(error)}") from None
    line_end = "\r\n" if "\r\n" in rest else "\r" if "\r" in rest and "\n" not in rest else "\n"
    return CsvTable(separator, line_end, rows)


def _why(error: csv.Error) -> str:
    if "limit" in str(error):
        return f"this row is not valid CSV: {error}"
    return (
        "the quotes in this row do not match: close the quote, or remove it; a quote inside a "
        "quoted cell is written twice"
    )
