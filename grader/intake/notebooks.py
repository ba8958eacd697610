"""The code cells of a notebook, of any version and however untidy.

Only the sources are read. `nbformat` would warn about, upgrade and refuse what does not matter
here (outputs, ids, metadata), and takes seconds for a large old notebook.
"""

from __future__ import annotations

import json
from typing import Any

from grader.intake.files import Unreadable, decoded
from grader.wire import clean

_SOURCE = {1: "code", 2: "input", 3: "input", 4: "source"}  # its key in each version

ODD_CELLS = "not a notebook: its cells are not of the known form"


def code_cells(data: bytes) -> tuple[str, ...]:
    """The text of each code cell; raise `Unreadable` for what is no notebook."""
    try:
        content = json.loads(decoded(data))
    except RecursionError:
        raise Unreadable("not a notebook: nested too deeply") from None
    except ValueError:
        raise Unreadable("not a notebook: the file is not JSON") from None
    version = content.get("nbformat") if isinstance(content, dict) else None
    if version not in (1, 2, 3, 4):
        raise Unreadable("not a notebook of a format that is known (nbformat 1 to 4)")
    sheets = _items(content, "worksheets") if version in (2, 3) else [content]
    return tuple(
        _text(cell, _SOURCE[version])
        for sheet in sheets
        for cell in _items(sheet, "cells")
        if _field(cell, "cell_type") == "code"
    )


def _field(holder: Any, key: str) -> Any:
    if not isinstance(holder, dict) or key not in holder:
        raise Unreadable(ODD_CELLS)
    return holder[key]


def _items(holder: Any, key: str) -> list[Any]:
    items = _field(holder, key)
    if not isinstance(items, list):
        raise Unreadable(ODD_CELLS)
    return items


def _text(cell: Any, key: str) -> str:
    """A cell's source: a string, or a list of lines."""
    source = _field(cell, key)
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise Unreadable(ODD_CELLS)
    return clean("".join(lines))
