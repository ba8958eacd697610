"""Which known mistake gives the results that a student's answer gave.

The calls that a failed test made are made again on the mistakes of the library, on this side, in
the same test and with the same inputs. A mistake is named if its results are the student's in
every test that failed, and those of no other mistake are. Where two would fit, or none, nobody is
told anything: a wrong name is worse than none.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, starmap
from typing import Any

import torch

from grader.jail import wire
from grader.jail.remote import Heard
from grader.mistakes import Library, Variant

COMMON = 12  # mistakes of an exercise, from the first in the library, that are tried in pairs
RELATIVE, ABSOLUTE = 1e-4, 1e-5  # two ways to make one mistake differ by rounding
NEARER = 0.1  # a mistake must be so much nearer to the student's results than the reference is
MOST_HEARD = 2**19  # bytes of one case's results: the course's have less, and all are kept


def kept(heard: Sequence[Heard]) -> tuple[Heard, ...]:
    """What calls gave, or nothing if that is more than a diagnosis needs."""
    return tuple(heard) if sum(map(_bytes, heard)) <= MOST_HEARD else ()


def _bytes(value: Heard) -> int:
    match value:
        case wire.TensorData(data=data):
            return len(data) + 100
        case wire.Items(_, items):
            return 100 + sum(map(_bytes, items))
        case wire.Entries(entries):
            return 100 + sum(map(_bytes, entries.values()))
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


# Runs one case of a test on these definitions: whether it passed, and what its calls gave.
Replay = Callable[[Mapping[str, Any], str, str], tuple[bool, tuple[Heard, ...]]]


class Diagnosis:
    """The library's mistakes, and what they give in the tests that were replayed so far."""

    def __init__(self, library: Library, references: Mapping[str, Any], replay: Replay) -> None:
        self._library = library
        self._references = references
        self._replay = replay
        self._made: dict[str, Mapping[str, Any]] = {}
        self._pairs_of: dict[str, list[Variant]] = {}
        self._built: dict[str, Mapping[str, Any]] = {}
        self._heard: dict[tuple[str, str, str], tuple[bool, tuple[Heard, ...]]] = {}

    def name(self, exercise: str, answers: Sequence[Answer]) -> Variant | None:
        """The one mistake, or pair of mistakes, that gives the same; None if there is no such."""
        failed = [answer for answer in answers if not answer.passed and answer.heard]
        if not failed:
            return None
        mistakes = self._library.of(exercise, "mistake")
        found = self._fitting(mistakes, failed) or self._fitting(self._pairs(mistakes), failed)
        found = [v for v in found if all(self._explains(v, answer) for answer in failed)]
        if len(found) > 1:  # what passed tells them apart
            found = self._fitting(found, [answer for answer in answers if answer.passed])
        alike = {variant.slug for variant in found[:1]}
        for variant in found[1:]:
            if not alike & variant.same_as.keys():
                return None
        return found[0] if found else None

    def built_on(
        self, exercise: str, known: Variant, answers: Sequence[Answer]
    ) -> Mapping[str, Any] | None:
        """The references, all built on a mistake in one, if `exercise` then gives the same."""
        if known.id not in self._built:
            namespace: dict[str, Any] = {"__name__": f"built on {known.id}"}
            for text in (*self._library.together(), known.definition):
                exec(compile(text, f"<{known.id}>", "exec"), namespace)
            self._built[known.id] = {name: namespace[name] for name in self._references}
        built = self._built[known.id]
        failed = [answer for answer in answers if not answer.passed]
        heard = (self._replay(built, answer.test, answer.case)[1] for answer in failed)
        fits = all(same(h, answer.heard) for h, answer in zip(heard, failed, strict=True))
        return built if fits and exercise != known.exercise else None

    def _explains(self, variant: Variant, answer: Answer) -> bool:
        """Whether a variant that fits explains how far from right the results are."""
        to_reference = gap_between(answer.heard, self._replayed(None, answer)[1])
        to_variant = gap_between(answer.heard, self._replayed(variant, answer)[1])
        return to_reference.right or to_variant.largest <= NEARER * to_reference.largest

    def _pairs(self, mistakes: Sequence[Variant]) -> Iterator[Variant]:
        exercise = mistakes[0].exercise if mistakes else ""
        if exercise not in self._pairs_of:
            changes = [variant for variant in mistakes if variant.change][:COMMON]
            pairs = starmap(self._library.combined, combinations(changes, 2))
            self._pairs_of[exercise] = [both for both in pairs if both is not None]
        yield from self._pairs_of[exercise]

    def _fitting(self, variants: Iterable[Variant], answers: Sequence[Answer]) -> list[Variant]:
        """Variants that end as the student's answer did in each of these, and give the same."""
        return [v for v in variants if all(self._fits(v, answer) for answer in answers)]

    def _fits(self, variant: Variant, answer: Answer) -> bool:
        passed, heard = self._replayed(variant, answer)
        # Of two right results nobody can say how they came about.
        return passed is answer.passed and (passed or same(heard, answer.heard))

    def _replayed(self, variant: Variant | None, answer: Answer) -> tuple[bool, tuple[Heard, ...]]:
        """How a case ends with a variant, or with the reference, and what its calls give."""
        key = (variant.id if variant else "", answer.test, answer.case)
        if key not in self._heard:
            try:
                definitions = self.definitions(variant) if variant else self._references
                self._heard[key] = self._replay(definitions, answer.test, answer.case)
            except Exception:  # a pair of changes need not make sense
                self._heard[key] = False, ()
        return self._heard[key]

    def definitions(self, variant: Variant) -> Mapping[str, Any]:
        """The references, and instead of one of them this variant."""
        if variant.id not in self._made:
            original = self._references[variant.exercise]
            namespace = dict(vars(sys.modules[original.__module__]))
            exec(compile(variant.definition, f"<{variant.id}>", "exec"), namespace)
            self._made[variant.id] = {
                **self._references, variant.exercise: namespace[variant.exercise],
            }  # fmt: skip
        return self._made[variant.id]


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
        first, second = wire.unpack_tensor(theirs), wire.unpack_tensor(ours)
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
        first, second = wire.unpack_tensor(ours), wire.unpack_tensor(theirs)
    except wire.WireError:
        return False
    if not first.is_floating_point():
        return False
    loose = 100 if first.element_size() < 4 else 1
    return torch.allclose(
        first.double(), second.double(),
        rtol=loose * RELATIVE, atol=loose * ABSOLUTE, equal_nan=True,
    )  # fmt: skip
