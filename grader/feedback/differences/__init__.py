"""Describes in words how a wrong tensor differs from the expected tensor.

The sentences are about arithmetic, never about an exercise. A sentence must be exactly true, up to
rounding, and needs enough evidence: a single value that is twice the expected value may be chance;
twenty such values are evidence. If two explanations of the same kind fit, neither is given, since a
wrong explanation is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from grader.feedback.differences.formulas import (
    constant,
    elementwise,
    located,
    multiple,
    not_finite,
    offset,
    one_value,
)
from grader.feedback.differences.pair import (
    PRECISION,
    Sentence,
    TensorPair,
    computed_on,
    differing,
    named_axes,
)
from grader.feedback.differences.places import rearranged, repeated, shifted
from grader.feedback.differences.weights import (
    distribution,
    inverted,
    one_diagonal,
    one_vector,
    row_factors,
    row_offsets,
    same_triangle,
    softmax,
    triangle_of_zeros,
)

__all__ = ["MOST_ELEMENTS", "PRECISION", "computed_on", "differing", "in_words"]


# --- words ---------------------------------------------------------------------------------------
#
# Tries the explanations in order, and joins the sentences of the first explanation that fits.


MOST_ELEMENTS = 100_000
MOST_SENTENCES = 2


def in_words(
    theirs: Tensor,
    ours: Tensor,
    *,
    names: Sequence[str] | None = None,
    wrong: Tensor | None = None,
) -> str | None:
    """How `theirs` differs from `ours`, in one or two sentences; None if no explanation fits.

    `ours` is the expected tensor. Both are plain CPU tensors of the same shape and dtype. `names`
    are the names of the axes, like ("batch", "tokens", "d_out"). `wrong`, a bool tensor of the same
    shape, marks the elements that differ; by default, elements differ if their difference exceeds
    the tolerances of `torch.testing`.
    """
    if theirs.dtype not in PRECISION or theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return None
    if not 2 <= ours.numel() <= MOST_ELEMENTS:
        return None
    with torch.no_grad():
        wrong = differing(theirs, ours) if wrong is None else wrong
        pair = TensorPair(
            theirs.detach().double(),
            ours.detach().double(),
            wrong,
            theirs.dtype,
            named_axes(ours.dim(), names),
        )
        sentences = _sentences(pair)[:MOST_SENTENCES] if pair.is_comparable else []
    if not sentences:
        return None
    ask = next((sentence.ask for sentence in sentences if sentence.ask), "")
    return "; ".join(sentence.text for sentence in sentences) + (f": {ask}" if ask else "")


def _sentences(pair: TensorPair) -> list[Sentence]:
    """The sentence of the first explanation that fits, or sentences on where the tensors differ."""
    nan = pair.theirs.isnan()
    if bool(nan.any()):
        return not_finite(pair, nan, "NaN")
    infinite = pair.theirs.isinf() & (pair.theirs != pair.ours)
    if bool(infinite.any()):
        # A formula may explain infinities: the logarithm of a weight of 0 is minus infinity.
        sentence = elementwise(pair) or softmax(pair)
        value = one_value(pair.theirs[infinite])
        shown = "infinite" if value is None else pair.show(value)
        return [sentence] if sentence else not_finite(pair, infinite, shown)
    finders: tuple[Callable[[TensorPair], Sentence | None], ...] = (
        constant,
        same_triangle,
        inverted,
        one_diagonal,
        rearranged,
        shifted,
        repeated,
        multiple,
        offset,
        elementwise,
        softmax,
        row_factors,
        row_offsets,
        one_vector,
    )
    for finder in finders:
        sentence = finder(pair)
        if sentence:
            return [sentence]
    return [s for s in (distribution(pair), triangle_of_zeros(pair), located(pair)) if s]
