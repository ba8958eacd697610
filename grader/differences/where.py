"""Sentences about a part of a tensor: only the last row differs, the diagonal is NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.differences.formulas import constant, offset, one_value, scaled
from grader.differences.pair import Pair, Said
from grader.differences.places import diagonals, find, room_of


def located(pair: Pair) -> Said | None:
    """Where the two differ, and what is true of the values there."""
    place = find(pair.wrong, pair.axes)
    there = "" if bool(pair.wrong.all()) else true_where_wrong(pair)
    if pair.wrong.numel() - room_of(pair.wrong) < pair.precision.chance:
        place = diagonals(pair.wrong)  # the few values elsewhere may be right by chance
    if place is None:
        # Without a place it takes more to be worth saying.
        enough = int(pair.wrong.sum()) >= 6
        return Said(f"every value that differs {there}") if there and enough else None
    text = f"only {place.text}" if place.only else place.text
    text += " differ" if place.plural else " differs"
    if there:
        where = ", where every value" if _filled(pair.wrong) else "; every value that differs"
        text += f"{where} {there}"
    return Said(text, place.ask)


def _filled(mask: Tensor) -> bool:
    """Whether a mask is all of its place: of a diagonal, a triangle or a block of slices."""
    return int(mask.sum()) == room_of(mask) or diagonals(mask) is not None


def true_where_wrong(pair: Pair) -> str:
    """What is true of all elements that differ: "is 0 and should be 1"; empty if nothing is."""
    part = pair.part()
    if part.ours.numel() < 3:
        return ""
    ours = one_value(part.ours)
    said = constant(part)
    if not said and ours is not None:
        return f"should be {pair.show(ours)}"
    said = said or scaled(part) or offset(part)
    return said.text.removeprefix("every value ") if said else ""


def not_finite(pair: Pair, mask: Tensor, what: str) -> list[Said]:
    """NaN or infinities where there should be none."""
    right = " and the rest is right" if torch.equal(mask, pair.wrong) else ""
    if bool(mask.all()):
        return [Said(f"every value is {what}")]
    place = find(mask, pair.axes)
    if place is None or not _filled(mask):
        return []
    verb = "are" if place.plural else "is"
    return [Said(f"{place.text} {verb} {what}{right}", place.ask)]
