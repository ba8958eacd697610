"""Which known mistake gives the results that a student's answer gave.

What the calls of a failed test gave is compared with what they give on each known mistake, in the
same test and with the same inputs. A mistake is named if its results are the student's in
every test that failed, and those of no other mistake are. Where two would fit, or none, nobody is
told anything: a wrong name is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from grader import wire
from grader.grading.known import Given, Known
from grader.mistakes import Variant
from grader.proxies.calls import Heard
from grader.wire import payload

RELATIVE, ABSOLUTE = 1e-4, 1e-5  # two ways to make one mistake differ by rounding
NEARER = 0.1  # a mistake must be so much nearer to the student's results than the reference is
MOST_HEARD = 2**19  # bytes of one case's results: the course's have less, and all are kept


def kept(heard: Sequence[Heard]) -> tuple[Heard, ...]:
    """What calls gave, or nothing if that is more than a diagnosis needs."""
    return tuple(heard) if sum(map(weight, heard)) <= MOST_HEARD else ()


def weight(value: Heard) -> int:
    """About how many bytes it holds."""
    match value:
        case wire.TensorData(data=data):
            return len(data) + 100
        case wire.Items(_, items):
            return 100 + sum(map(weight, items))
        case wire.Entries(entries):
            return 100 + sum(map(weight, entries.values()))
        case str():
            return len(value)
    return 100


@dataclass(frozen=True)
class Answer:
    """A case of a test that a student's answer ran, how it ended, and what its calls gave."""

    test: str
    case: str
    passed: bool
    heard: tuple[Heard, ...]


class Diagnosis:
    """Compares a student's answers with what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def name(self, exercise: str, answers: Sequence[Answer]) -> Variant | None:
        """The one mistake, or pair of mistakes, that gives the same; None if there is no such."""
        failed = [answer for answer in answers if not answer.passed and answer.heard]
        if not failed:
            return None
        found = self._fitting(self._known.mistakes(exercise), failed)
        found = found or self._fitting(self._known.pairs(exercise), failed)
        found = [v for v in found if all(self._explains(v, answer) for answer in failed)]
        if len(found) > 1:  # what passed tells them apart
            found = self._fitting(found, [answer for answer in answers if answer.passed])
        alike = {variant.slug for variant in found[:1]}
        for variant in found[1:]:
            if not alike & variant.same_as.keys():
                return None
        return found[0] if found else None

    def follows(self, exercise: str, base: Variant, answers: Sequence[Answer]) -> bool:
        """Whether the references, all built on a mistake in one, give the same in `exercise`.

        Numbers show that, in every test that failed. An exception does not: anyone can raise it.
        """
        failed = [answer for answer in answers if not answer.passed]
        if exercise == base.exercise or not all(shows_numbers(answer.heard) for answer in failed):
            return False
        built = (self._known.built_on(base, answer.test, answer.case) for answer in failed)
        return all(
            not given.passed and same(given.heard, answer.heard)
            for given, answer in zip(built, failed, strict=True)
        )

    def _explains(self, variant: Variant, answer: Answer) -> bool:
        """Whether a variant that fits explains how far from right the results are."""
        to_reference = gap_between(answer.heard, self._given(None, answer).heard)
        to_variant = gap_between(answer.heard, self._given(variant, answer).heard)
        return to_reference.right or to_variant.largest <= NEARER * to_reference.largest

    def _fitting(self, variants: Iterable[Variant], answers: Sequence[Answer]) -> list[Variant]:
        """Variants that end as the student's answer did in each of these, and give the same."""
        return [v for v in variants if all(self._fits(v, answer) for answer in answers)]

    def _fits(self, variant: Variant, answer: Answer) -> bool:
        given = self._given(variant, answer)
        # Of two right results nobody can say how they came about.
        return given.passed is answer.passed and (given.passed or same(given.heard, answer.heard))

    def _given(self, variant: Variant | None, answer: Answer) -> Given:
        return self._known.given(variant, answer.test, answer.case)


# --- comparing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """How far two answers to the same calls are apart, in the numbers that both have."""

    largest: float = 0.0
    right: bool = True  # no further than rounding goes


def gap_between(theirs: Sequence[Heard], ours: Sequence[Heard]) -> Gap:
    """The gap between two answers; it is infinite where they differ in kind or shape."""
    ones, others = list(_flat(theirs)), list(_flat(ours))
    if len(ones) != len(others):
        return Gap(math.inf, right=False)
    gaps = list(map(_gap, ones, others))
    return Gap(max((gap.largest for gap in gaps), default=0.0), all(gap.right for gap in gaps))


def _flat(answers: Iterable[Heard]) -> Iterator[Heard]:
    """Without nests: of a nest its size or its names, and then what it holds."""
    for answer in answers:
        match answer:
            case wire.Items(_, inside):
                yield f"{len(inside)} items"
                yield from _flat(inside)
            case wire.Entries(inside):
                yield f"the entries {sorted(inside)}"
                yield from _flat(inside[name] for name in sorted(inside))
            case _:
                yield answer


def _gap(theirs: Heard, ours: Heard) -> Gap:
    match theirs, ours:
        case wire.TensorData(), wire.TensorData():
            if (theirs.dtype, theirs.shape, theirs.device) == (ours.dtype, ours.shape, ours.device):
                return _gap_of_tensors(theirs, ours)
    return Gap() if theirs == ours else Gap(math.inf, right=False)


# Where two right answers may differ: float64 tests ask for nine digits.
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}


def _gap_of_tensors(theirs: wire.TensorData, ours: wire.TensorData) -> Gap:
    try:
        first, second = payload.unpack_tensor(theirs), payload.unpack_tensor(ours)
    except wire.WireError:
        return Gap(math.inf, right=False)
    if not first.is_floating_point() or first.device.type != "cpu":
        return Gap(right=theirs == ours, largest=0.0 if theirs == ours else 1.0)
    both = first.isfinite() & second.isfinite()
    apart = (first.isinf() | second.isinf()) & (first != second) & ~first.isnan()
    if bool(apart.any()):
        return Gap(math.inf, right=False)
    one, other = first[both].double(), second[both].double()
    if not one.numel():
        return Gap()
    largest = float((one - other).abs().max())
    size = float(other.abs().max())
    room = ROUNDING.get(first.dtype, 1e-2) * max(size, 1.0)
    return Gap(largest, largest <= room)


def shows_numbers(heard: Sequence[Heard]) -> bool:
    """Whether calls gave numbers, and no exception."""
    flat = list(_flat(heard))
    raised = any(isinstance(value, wire.Raised) for value in flat)
    return not raised and any(isinstance(v, wire.TensorData | int | float) for v in flat)


def same(ours: Sequence[Heard], theirs: Sequence[Heard]) -> bool:
    """Whether two answers gave the same in the same calls; NaN is the same as NaN here."""
    ones, others = list(_flat(ours)), list(_flat(theirs))
    return len(ones) == len(others) and all(map(_same, ones, others))


def _same(ours: Heard, theirs: Heard) -> bool:
    match ours, theirs:
        case wire.TensorData(), wire.TensorData():
            return _same_tensor(ours, theirs)
        case wire.Raised(), wire.Raised():
            # A name that is missing is told with what else was handed in: the name itself counts.
            text = [error.text.partition("\n")[0] for error in (ours, theirs)]
            if ours.kind == "NameError":
                text = [error.removeprefix("name ").partition(" ")[0].strip("'") for error in text]
            return ours.kind == theirs.kind and text[0] == text[1]
        case float(), float():
            return ours == theirs or math.isclose(ours, theirs, rel_tol=RELATIVE)
    return type(ours) is type(theirs) and ours == theirs


def _same_tensor(ours: wire.TensorData, theirs: wire.TensorData) -> bool:
    if (ours.dtype, ours.shape, ours.device) != (theirs.dtype, theirs.shape, theirs.device):
        return False
    if ours.data == theirs.data:
        return True
    try:
        first, second = payload.unpack_tensor(ours), payload.unpack_tensor(theirs)
    except wire.WireError:
        return False
    if not first.is_floating_point():
        return False
    loose = 100 if first.element_size() < 4 else 1
    return torch.allclose(
        first.double(),
        second.double(),
        rtol=loose * RELATIVE,
        atol=loose * ABSOLUTE,
        equal_nan=True,
    )
