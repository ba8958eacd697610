"""Finds a statement that is true of every value of a wrong tensor, such as "is 2 times …".

Each finder returns a sentence, or None if its statement is not true or lacks evidence.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from grader.feedback.differences.pair import Precision, Sentence, TensorPair
from grader.feedback.differences.places import diagonals, positions_of, room_of


def constant(pair: TensorPair) -> Sentence | None:
    """Report that all values of the wrong tensor are the same."""
    theirs, ours = one_value(pair.theirs), one_value(pair.ours)
    if theirs is None or pair.theirs.numel() < 3:
        return None
    should = f" and should be {pair.show(ours)}" if ours is not None else ""
    return Sentence(f"every value is {pair.show(theirs)}{should}")


def one_value(tensor: Tensor) -> float | None:
    """The value of all elements, or None if they are not equal."""
    first = tensor.flatten()[0]
    return float(first) if bool((tensor == first).all()) else None


def multiple(pair: TensorPair) -> Sentence | None:
    """Report that every value is the expected value times the same factor."""
    if pair.is_bool or not pair.has_evidence:
        return None
    finite = pair.ours.isfinite() & pair.theirs.isfinite()
    theirs, ours = pair.theirs[finite], pair.ours[finite]
    factor = float((theirs * ours).sum() / (ours * ours).sum())
    if not math.isfinite(factor) or factor == 0 or not pair.explains(lambda x: x * factor):
        return None
    if abs(factor + 1) <= pair.precision.rtol:
        return Sentence("every value has the wrong sign")
    return Sentence(f"every value is {_name(factor, pair.precision)} the expected value")


def _name(factor: float, precision: Precision) -> str:
    """A factor in words: "2 times", "1/√8 (0.3536) of"."""
    sign, size = "-" if factor < 0 else "", abs(factor)
    most = min(256, int(1 / (8 * precision.rtol)))  # rounding blurs larger integers
    for power, root in ((1.0, ""), (0.5, "√")):
        upward = round(size ** (1 / power)) if size < 1e6 else 0
        if 2 <= upward <= most and math.isclose(upward**power, size, rel_tol=precision.rtol):
            return f"{sign}{root}{upward}{f' ({factor:.4g})' if root else ''} times"
        downward = round((1 / size) ** (1 / power)) if size > 1e-6 else 0
        if 2 <= downward <= most and math.isclose(downward**-power, size, rel_tol=precision.rtol):
            return f"{sign}1/{root}{downward} ({factor:.4g}) of"
    return f"{factor:.4g} times"


def offset(pair: TensorPair) -> Sentence | None:
    """Report that every value is too large or too small by the same amount."""
    enough = (
        pair.has_evidence if pair.is_float else pair.ours.numel() > 3 and pair.levels(pair.ours) > 1
    )
    if pair.is_bool or not enough:
        return None
    finite = pair.ours.isfinite() & pair.theirs.isfinite()
    gaps = (pair.theirs - pair.ours)[finite]
    if not gaps.numel() or not bool((finite | (pair.theirs == pair.ours)).all()):
        return None
    amount = float(gaps.mean())
    slack = pair.precision.atol * pair.scale
    if abs(amount) <= 50 * slack or float((gaps - amount).abs().max()) > slack:
        return None
    way = "large" if amount > 0 else "small"
    return Sentence(f"every value is {abs(amount):.4g} too {way}")


def elementwise(pair: TensorPair) -> Sentence | None:
    """Report that every value is the same function of the expected value, such as its square."""
    if not pair.is_float or not pair.has_evidence:
        return None
    for formula, text in (
        (torch.reciprocal, "1 divided by the expected value"),
        (torch.log, "the logarithm of the expected value"),
        (torch.exp, "the exponential of the expected value"),
        (torch.square, "the square of the expected value"),
        (torch.sqrt, "the square root of the expected value"),
    ):
        if pair.explains(formula):
            return Sentence(f"every value is {text}")
    if int((pair.ours < 0).sum()) > 2 and pair.explains(torch.abs):
        return Sentence("every value has lost its sign")
    return None


# --- where ---------------------------------------------------------------------------------------
#
# Sentences about a part of a tensor, such as "only the last row differs" or "the diagonal is NaN".


def located(pair: TensorPair) -> Sentence | None:
    """Report where the tensors differ, with a statement about the values there."""
    place = positions_of(pair.wrong, pair.axes)
    there = "" if bool(pair.wrong.all()) else true_where_wrong(pair)
    if pair.wrong.numel() - room_of(pair.wrong) < pair.precision.chance:
        place = diagonals(pair.wrong)  # the few right values may be right by chance
    if place is None:
        # If the place has no name, a statement about its values needs more evidence.
        enough = int(pair.wrong.sum()) >= 6
        return Sentence(f"every value that differs {there}") if there and enough else None
    text = f"only {place.text}" if place.only else place.text
    text += " differ" if place.plural else " differs"
    if there:
        where = ", where every value" if _filled(pair.wrong) else "; every value that differs"
        text += f"{where} {there}"
    return Sentence(text, place.ask)


def _filled(mask: Tensor) -> bool:
    """Whether a mask fills a whole diagonal, a whole triangle or a whole block of slices."""
    return int(mask.sum()) == room_of(mask) or diagonals(mask) is not None


def true_where_wrong(pair: TensorPair) -> str:
    """A statement about all elements that differ: "is 0 and should be 1".

    Empty if no statement fits.
    """
    part = pair.part()
    if part.ours.numel() < 3:
        return ""
    ours = one_value(part.ours)
    sentence = constant(part)
    if not sentence and ours is not None:
        return f"should be {pair.show(ours)}"
    sentence = sentence or multiple(part) or offset(part)
    return sentence.text.removeprefix("every value ") if sentence else ""


def not_finite(pair: TensorPair, mask: Tensor, value: str) -> list[Sentence]:
    """Report where `mask` marks unexpected values; `value` is their name: NaN or infinite."""
    right = " and the rest is right" if torch.equal(mask, pair.wrong) else ""
    if bool(mask.all()):
        return [Sentence(f"every value is {value}")]
    place = positions_of(mask, pair.axes)
    if place is None or not _filled(mask):
        return []
    verb = "are" if place.plural else "is"
    return [Sentence(f"{place.text} {verb} {value}{right}", place.ask)]
