"""A comparison that failed: what differs, in numbers, and as a picture for whoever may see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grader.feedback.differences import in_words
from grader.feedback.pictures.data import picture_of
from grader.records.grade import Picture


class Disagreement(AssertionError):
    """Two tensors of one shape and dtype that do not agree."""

    def __init__(self, what: str, ours: Tensor, theirs: Tensor, wrong: Tensor) -> None:
        super().__init__(what)
        self._pair = ours, theirs, wrong

    def __str__(self) -> str:
        # When it is read, since nobody reads those of mistakes, and there are thousands.
        ours, theirs, wrong = self._pair
        said = (in_words(theirs, ours, wrong=wrong), _numbers(theirs, ours, wrong))
        return f"{self.args[0]}: {'; '.join(part for part in said if part)}"

    def picture(self, names: Sequence[str] | None = None) -> Picture | None:
        """Expected beside actual beside where they differ; `names` are those of the axes."""
        ours, theirs, wrong = self._pair
        return picture_of(ours, theirs, names=names, wrong=wrong)


def _numbers(theirs: Tensor, ours: Tensor, wrong: Tensor) -> str:
    """How many elements differ, and the worst of them."""
    share = f"{int(wrong.sum())} of {wrong.numel()} elements differ"
    nans = theirs.isnan()
    if nans.any():
        return f"NaN at {_index(nans)}; {share}"
    if not ours.is_floating_point():
        at = _index(wrong)
        return f"{share}, the first at {at}: expected {_at(ours, at)}, got {_at(theirs, at)}"
    gap = (theirs.double() - ours.double()).abs().nan_to_num(nan=0.0, posinf=torch.inf)
    at = _index(wrong & (gap == gap[wrong].max()))
    expected, got = _tell_apart(_at(ours, at), _at(theirs, at))
    return f"{share}; the largest difference is at {at}: expected {expected}, got {got}"


def _tell_apart(expected: float, got: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see the difference, four at least."""
    pairs = ((f"{expected:.{digits}g}", f"{got:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(expected), repr(got)))


def _index(mask: Tensor) -> list[int]:
    return [int(step) for step in mask.nonzero()[0]]


def _at(tensor: Tensor, index: Sequence[int]) -> Any:
    return tensor[tuple(index)].item()
