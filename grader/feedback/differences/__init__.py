"""Says in words how a wrong tensor differs from the expected one, before any numbers.

It knows arithmetic and nothing of exercises. A sentence is said only when it is exactly true, up to
rounding, and when the values carry enough evidence: that one number is twice another says nothing,
that twenty different ones are says much. Where two explanations of the same kind fit, neither is
said. Silence is better than a false trail.
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
# From two tensors to a sentence or two: the explanations, and their order.


MOST_ELEMENTS = 100_000
MOST_SENTENCES = 2


def in_words(
    theirs: Tensor,
    ours: Tensor,
    *,
    names: Sequence[str] | None = None,
    wrong: Tensor | None = None,
) -> str | None:
    """How `theirs` differs from `ours`, in one or two sentences; None when nothing simple fits.

    Both are plain CPU tensors of the same shape and dtype; nothing is raised for such. `names` are
    the names of the axes, like ("batch", "tokens", "d_out"). `wrong`, a bool tensor of the same
    shape, says which elements differ; without it the tolerances of `torch.testing` do.
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
        said = _say(pair)[:MOST_SENTENCES] if pair.speaks else []
    if not said:
        return None
    ask = next((sentence.ask for sentence in said if sentence.ask), "")
    return "; ".join(sentence.text for sentence in said) + (f": {ask}" if ask else "")


def _say(pair: TensorPair) -> list[Sentence]:
    """All that is to be said, the most telling first."""
    nan = pair.theirs.isnan()
    if bool(nan.any()):
        return not_finite(pair, nan, "NaN")
    infinite = pair.theirs.isinf() & (pair.theirs != pair.ours)
    if bool(infinite.any()):
        # The logarithm of a weight of 0 is right to be so.
        said = elementwise(pair) or softmax(pair)
        value = one_value(pair.theirs[infinite])
        what = "infinite" if value is None else pair.show(value)
        return [said] if said else not_finite(pair, infinite, what)
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
        said = finder(pair)
        if said:
            return [said]
    return [said for said in (distribution(pair), triangle_of_zeros(pair), located(pair)) if said]
