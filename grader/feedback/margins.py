"""Records how near comparisons come to their tolerances.

A verdict must not depend on rounding, and another processor rounds differently. Differences of
right answers should stay far below the tolerance, and differences of wrong answers far above it.
Margins are recorded only inside `with listening()`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor

from grader.course.tolerances import Tolerance


@dataclass(frozen=True)
class Margin:
    """The ratio of a measured value to its limit; a ratio of at most 1 passes.

    Between `low` and `high`, the ratio is so near to 1 that the verdict is doubtful.
    """

    ratio: float
    low: float
    high: float

    @property
    def doubtful(self) -> bool:
        """Whether another processor may give another verdict."""
        return self.low < self.ratio < self.high

    @property
    def distance(self) -> tuple[bool, float]:
        """A sort key: doubtful margins come first, and ratios near 1 come before other ratios."""
        return not self.doubtful, abs(math.log(self.ratio)) if self.ratio > 0 else math.inf


_noted: ContextVar[list[Margin] | None] = ContextVar("noted", default=None)


@contextmanager
def listening() -> Iterator[list[Margin]]:
    """Collect the margins of all comparisons inside the ``with`` block in the yielded list."""
    noted: list[Margin] = []
    before = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(before)


def note(theirs: Tensor, ours: Tensor, within: Tolerance) -> None:
    """Record the margin of two compared tensors: the largest difference divided by its tolerance.

    The ratio is infinite for NaN, and if a value is infinite in only one of the tensors.
    """
    noted = _noted.get()
    if noted is None or not theirs.numel() or theirs.device.type != "cpu":
        return
    allowed = within.atol + within.rtol * ours.double().abs()
    off = (theirs.double() - ours.double()).abs()
    off = torch.where(theirs == ours, 0.0, off)  # equal infinities too
    ratio = (off / allowed).nan_to_num(nan=math.inf).max().item()
    noted.append(Margin(ratio, 1 / 3, 3.0))


def note_count(measured: float, allowed: float) -> None:
    """Record the margin of a count, such as operations, bytes or a width."""
    noted = _noted.get()
    if noted is not None and allowed > 0:
        noted.append(Margin(measured / allowed, 1.0, 1.5))


def nearest(noted: list[Margin]) -> Margin | None:
    """The margin with the smallest `Margin.distance`, or None if there is no margin."""
    return min(noted, key=lambda margin: margin.distance, default=None)
