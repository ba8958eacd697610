"""Notes how near comparisons come to their tolerances, inside `listening`.

A verdict must not depend on rounding. Right answers should stay far below a tolerance and wrong
answers far above it, since another processor rounds differently.
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
    """The ratio of a measured value to its limit: at most 1 passes.

    A ratio between `low` and `high` is too near to the limit.
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
        """A key to sort by: doubtful margins first, then by distance from the limit."""
        return not self.doubtful, abs(math.log(self.ratio)) if self.ratio > 0 else math.inf


_noted: ContextVar[list[Margin] | None] = ContextVar("noted", default=None)


@contextmanager
def listening() -> Iterator[list[Margin]]:
    """Collect the margins of all comparisons inside the ``with``."""
    noted: list[Margin] = []
    before = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(before)


def note(theirs: Tensor, ours: Tensor, within: Tolerance) -> None:
    """Note a comparison of values: the largest difference divided by its tolerance.

    The ratio is infinite for NaN, and for values that are infinite on one side only.
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
    """Note a count of work, memory or width."""
    noted = _noted.get()
    if noted is not None and allowed > 0:
        noted.append(Margin(measured / allowed, 1.0, 1.5))


def nearest(noted: list[Margin]) -> Margin | None:
    """The margin that is nearest to its limit; a doubtful margin if there is any."""
    return min(noted, key=lambda margin: margin.distance, default=None)
