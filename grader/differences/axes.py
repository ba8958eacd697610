"""What the axes of a tensor are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """What one index along an axis is called: a row, a head, an index of axis 0."""

    one: str
    many: str
    of: str = ""

    def at(self, index: int) -> str:
        """One of them by its index: "row 3", "index 2 of axis 0"."""
        return f"{self.one} {index}{self.of}"


NAMED = {
    "batch": Axis("batch row", "batch rows"),
    "heads": Axis("head", "heads"), "num_heads": Axis("head", "heads"),
    "tokens": Axis("token", "tokens"), "num_tokens": Axis("token", "tokens"),
    "time": Axis("time step", "time steps"),
    "queries": Axis("query", "queries"), "keys": Axis("key", "keys"),
    "channels": Axis("channel", "channels"),
}  # fmt: skip


def named_axes(dims: int, names: Sequence[str] | None) -> tuple[Axis, ...]:
    """What the axes are called. Rows and columns are never false; a batch or a head may be."""
    if dims == 1:
        axes = [Axis("value", "values")]
    else:
        leading = [Axis("index", "indices", f" of axis {axis}") for axis in range(dims - 2)]
        axes = [*leading, Axis("row", "rows"), Axis("column", "columns")]
    if names is None or len(names) != dims:
        return tuple(axes)
    called = [NAMED.get(name, axis) for name, axis in zip(names, axes, strict=True)]
    # Tokens by tokens: which of the two is meant, only rows and columns say.
    return tuple(
        word if called.count(word) == 1 else axis for word, axis in zip(called, axes, strict=True)
    )
