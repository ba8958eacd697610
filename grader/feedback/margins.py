"""How near comparisons came to their tolerances: noted only while somebody listens.

A verdict should not hang on rounding. Right answers stay far below a tolerance and wrong ones far
above it, or the next processor judges otherwise.
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
    """What was measured, over what is allowed: at most 1 passes. Nothing should lie in between."""

    ratio: float
    low: float
    high: float

    @property
    def doubtful(self) -> bool:
        """Whether another processor may judge otherwise."""
        return self.low < self.ratio < self.high

    @property
    def distance(self) -> tuple[bool, float]:
        """How far from the verdict's edge, to sort by: what is in doubt comes first."""
        return not self.doubtful, abs(math.log(self.ratio)) if self.ratio > 0 else math.inf


_heard: ContextVar[list[Margin] | None] = ContextVar("heard", default=None)


@contextmanager
def listening() -> Iterator[list[Margin]]:
    """Hear of the margins of all comparisons inside."""
    heard: list[Margin] = []
    before = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(before)


def note(theirs: Tensor, ours: Tensor, within: Tolerance) -> None:
    """A comparison of values: the worst difference over its tolerance.

    NaN, and what is infinite on one side only, is beyond any margin.
    """
    heard = _heard.get()
    if heard is None or not theirs.numel() or theirs.device.type != "cpu":
        return
    allowed = within.atol + within.rtol * ours.double().abs()
    off = (theirs.double() - ours.double()).abs()
    off = torch.where(theirs == ours, 0.0, off)  # infinities too
    ratio = (off / allowed).nan_to_num(nan=math.inf).max().item()
    heard.append(Margin(ratio, 1 / 3, 3.0))


def note_count(measured: float, allowed: float) -> None:
    """A count of work, memory or width."""
    heard = _heard.get()
    if heard is not None and allowed > 0:
        heard.append(Margin(measured / allowed, 1.0, 1.5))


def nearest(heard: list[Margin]) -> Margin | None:
    """The margin of those that is nearest to its verdict's edge; one that is in doubt, if any."""
    return min(heard, key=lambda one: one.distance, default=None)
