"""Names the known mistake that gives the same results as a student's answer.

The student's results in a failed test are compared with the results of each known mistake, in the
same test and with the same inputs. A mistake is named if it gives the student's results in every
failed test, and no other mistake does. If two mistakes fit, or none, no mistake is named: a wrong
name is worse than no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch

from grader import wire
from grader.course.tolerances import RECOGNISED
from grader.grading.replays import Given
from grader.grading.sheet import Sheet
from grader.mistakes import Variant
from grader.proxies.calls import CallResult
from grader.wire import payload

NEARER = 0.1  # the largest gap to a named mistake, as a share of the gap to the reference
MOST_RESULTS = 2**19  # bytes of one case's results; every case of our course has fewer


def within_size(results: Sequence[CallResult]) -> tuple[CallResult, ...]:
    """The results of a case's calls; empty if they exceed `MOST_RESULTS`."""
    return tuple(results) if sum(map(weight, results)) <= MOST_RESULTS else ()


def weight(value: CallResult) -> int:
    """The approximate number of bytes in a call's result."""
    match value:
        case wire.TensorData(data=data):
            return len(data) + 100
        case wire.Items(_, items):
            return 100 + sum(map(weight, items))
        case wire.Entries(entries):
            return 100 + sum(weight(part) for pair in entries for part in pair)
        case str():
            return len(value)
    return 100


CaseName = tuple[str, str]  # a test's key and a case's label
Answers = Mapping[CaseName, Given]  # the outcomes of one exercise's cases on a student's answer


class Diagnosis:
    """Compares the outcomes on a student's answer with the outcomes on known mistakes."""

    def __init__(self, known: Sheet) -> None:
        self._known = known

    def name(self, exercise: str, answers: Answers, bases: Sequence[str] = ()) -> Variant | None:
        """The mistake, or pair of mistakes, that gives the student's results.

        If none does, it may be a mistake in one of the `bases`, since some answers hold the code of
        the exercises that others build on. None if no mistake fits, or if several mistakes fit.
        """
        failed = {at: own for at, own in answers.items() if not own.passed and own.results}
        if not failed:
            return None
        known = self._known
        for variants in (known.mistakes(exercise), known.pairs(exercise)):
            if found := _fitting(variants, failed, known.given):
                return self._only(found, answers, failed, known.given)
        if not _show_numbers(failed):
            return None
        found = _fitting(chain.from_iterable(map(known.mistakes, bases)), failed, known.built_on)
        return self._only(found, answers, failed, known.built_on)

    def fitting(self, variants: Iterable[Variant], answers: Answers) -> list[Variant]:
        """The variants that would be named for an answer, and pass the same cases as the answer."""
        # The failed cases come first, since few variants agree with them.
        ordered = dict(sorted(answers.items(), key=lambda case: case[1].passed))
        return [
            variant
            for variant in _fitting(variants, ordered, self._known.given)
            if all(
                self._explains(variant, at, own, self._known.given)
                for at, own in answers.items()
                if not own.passed
            )
        ]

    def follows(self, exercise: str, base: Variant, answers: Answers) -> bool:
        """Whether the answer to `exercise` fails because of `base`, a mistake in another exercise.

        This is true if references that use `base` give the answer's results in every failed case.
        These results must be numbers, since an exception may have many causes.
        """
        failed = {at: own for at, own in answers.items() if not own.passed}
        if exercise == base.exercise or not _show_numbers(failed):
            return False
        return bool(_fitting([base], failed, self._known.built_on))

    def _only(
        self, found: list[Variant], answers: Answers, failed: Answers, outcome: _Outcome
    ) -> Variant | None:
        """The mistake that explains the failed cases; None if there are several, or none."""
        found = [
            v for v in found if all(self._explains(v, *case, outcome) for case in failed.items())
        ]
        if found and not any(self._known.given(None, *at).passed for at in failed):
            return None  # the references fail these tests too: the tests are faulty
        if len(found) > 1:  # keep the mistakes that pass the cases that the student passed
            passed = {at: own for at, own in answers.items() if own.passed}
            found = _fitting(found, passed, outcome)
        if len(found) > 1:  # prefer the mistakes that give the same error messages
            found = [v for v in found if _says_the_same(v, failed, outcome)] or found
        for variant in found[1:]:
            told_alike = (variant.title, variant.hint) == (found[0].title, found[0].hint)
            if not told_alike and found[0].slug not in variant.same_as:
                return None
        return found[0] if found else None

    def _explains(self, variant: Variant, at: CaseName, own: Given, outcome: _Outcome) -> bool:
        """Whether a case's results are much nearer to a mistake's results than to the reference's.

        Also true if the case's results equal the reference's.
        """
        to_reference = gap_between(own.results, self._known.given(None, *at).results)
        to_variant = gap_between(own.results, outcome(variant, *at).results)
        return to_reference.right or to_variant.largest <= NEARER * to_reference.largest


# The outcome of a case on a mistake: a variant, the test's key and the case's label.
_Outcome = Callable[[Variant, str, str], Given]


def _fitting(variants: Iterable[Variant], answers: Answers, outcome: _Outcome) -> list[Variant]:
    """The variants with the same status and the same results as the answer in all these cases.

    The results of passed cases are not compared.
    """
    return [v for v in variants if all(_fits(outcome(v, *at), own) for at, own in answers.items())]


def alike(ours: Answers, theirs: Answers) -> bool:
    """Whether two answers pass and fail the same cases, with the same results."""
    return ours.keys() == theirs.keys() and all(_fits(ours[at], theirs[at]) for at in ours)


def _fits(given: Given, own: Given) -> bool:
    # Right results are the same for every answer, so they show no mistake.
    if given.passed or own.passed:
        return given.passed is own.passed
    called = not given.uses or not set(given.uses).isdisjoint(own.uses)
    return called and same(given.results, own.results)


def _says_the_same(variant: Variant, answers: Answers, outcome: _Outcome) -> bool:
    """Whether a variant's error messages equal those of the student's answer."""
    return all(
        same_words(outcome(variant, *at).results, own.results) for at, own in answers.items()
    )


def _show_numbers(answers: Answers) -> bool:
    return all(shows_numbers(own.results) for own in answers.values())


# --- comparing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """The difference between two answers' results of the same calls."""

    largest: float = 0.0  # the largest difference of two numbers
    right: bool = True  # no difference exceeds rounding


def gap_between(theirs: Sequence[CallResult], ours: Sequence[CallResult]) -> Gap:
    """The gap between two answers' results; infinite if these differ in type or shape."""
    ones, others = list(flat(theirs)), list(flat(ours))
    if len(ones) != len(others):
        return Gap(math.inf, right=False)
    gaps = list(map(_gap, ones, others))
    return Gap(max((gap.largest for gap in gaps), default=0.0), all(gap.right for gap in gaps))


def flat(answers: Iterable[CallResult]) -> Iterator[CallResult]:
    """The results without nesting: a container becomes its size or names, and then its items."""
    for answer in answers:
        match answer:
            case wire.Items(_, inside):
                yield f"{len(inside)} items"
                yield from flat(inside)
            case wire.Entries(pairs, dataclass):
                in_order = sorted(pairs, key=lambda pair: repr(pair[0]))
                yield f"the entries {[key for key, _ in in_order]} of {dataclass or 'a dictionary'}"
                yield from flat(item for _, item in in_order)
            case _:
                yield answer


def _gap(theirs: CallResult, ours: CallResult) -> Gap:
    match theirs, ours:
        case wire.TensorData(), wire.TensorData():
            if _shown(theirs) == _shown(ours):
                return Gap() if theirs.device == "meta" else _gap_of_tensors(theirs, ours)
    return Gap() if theirs == ours else Gap(math.inf, right=False)


def _shown(data: wire.TensorData) -> object:
    """The properties of a tensor or array, without its values."""
    return data.dtype, data.shape, data.device, data.array


# The largest rounding difference between right answers, as a share of the largest number. Tests in
# float64 compare nine digits.
RIGHT_WITHIN = {torch.float64: 1e-10, torch.float32: 1e-5}


def _gap_of_tensors(theirs: wire.TensorData, ours: wire.TensorData) -> Gap:
    try:
        first, second = payload.unpack_tensor(theirs), payload.unpack_tensor(ours)
    except wire.WireError:
        return Gap(math.inf, right=False)
    if not first.is_floating_point():
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
    room = RIGHT_WITHIN.get(first.dtype, 1e-2) * max(size, 1.0)
    return Gap(largest, largest <= room)


def shows_numbers(results: Sequence[CallResult]) -> bool:
    """Whether the results of calls contain numbers, and no exception."""
    values = list(flat(results))
    raised = any(isinstance(value, wire.Raised) for value in values)
    return not raised and any(isinstance(v, wire.TensorData | int | float) for v in values)


def same(ours: Sequence[CallResult], theirs: Sequence[CallResult]) -> bool:
    """Whether two answers gave the same results in the same calls; NaN equals NaN here."""
    ones, others = list(flat(ours)), list(flat(theirs))
    return len(ones) == len(others) and all(map(_same, ones, others))


def same_words(ours: Sequence[CallResult], theirs: Sequence[CallResult]) -> bool:
    """Whether two answers with the same results also raised errors with the same messages.

    A tensor on the meta device has a checksum in place of numbers: checksums must be equal too.
    """
    return all(map(_same_word, flat(ours), flat(theirs)))


def _same_word(ours: CallResult, theirs: CallResult) -> bool:
    match ours, theirs:
        case wire.Raised(), wire.Raised():
            return _first_line(ours) == _first_line(theirs)
        case wire.TensorData(device="meta"), wire.TensorData(device="meta"):
            return ours.data == theirs.data
    return True


def _first_line(error: wire.Raised) -> str:
    return error.text.partition("\n")[0]


def _same(ours: CallResult, theirs: CallResult) -> bool:
    match ours, theirs:
        case wire.TensorData(), wire.TensorData():
            return _same_tensor(ours, theirs)
        case wire.Raised(), wire.Raised():
            return ours.kind == theirs.kind and _essence(ours) == _essence(theirs)
    ours, theirs = _number(ours), _number(theirs)
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or math.isclose(ours, theirs, rel_tol=RECOGNISED.rtol)
    return type(ours) is type(theirs) and ours == theirs


def _number(value: CallResult) -> CallResult:
    """The integer in a tensor without dimensions, or NumPy's number; any other value as it is.

    Some answers return a number, and others such a value: the two must compare equal. A float in a
    tensor is no Python number: one has a gradient, and the other has none.
    """
    if not isinstance(value, wire.TensorData) or value.shape or value.device != "cpu":
        return value
    try:
        number = payload.unpack_tensor(value).item()
    except wire.WireError:
        return value
    return number if value.array or type(number) is int else value


# Parts of torch's error messages that differ between two answers with the same mistake: an axis, a
# tensor's version, an address.
BESIDE = re.compile(
    r" at non-singleton dimension \d+"
    r"|, which is output \d+ of \w+, is at version \d+; expected version \d+ instead"
    r"|0x[0-9a-f]+"
)


def _essence(error: wire.Raised) -> tuple[str, list[str]]:
    """The first line of an error's message without its numbers; and the numbers, sorted.

    Two answers with the same mistake may swap operands, so the order of numbers does not count.
    """
    text = _first_line(error)
    if error.kind == "NameError":  # keep only the name: the rest depends on the submission's files
        return text.removeprefix("name ").partition(" ")[0].strip("'"), []
    text = BESIDE.sub("", text)
    return re.sub(r"\d+", "#", text), sorted(re.findall(r"\d+", text))


def _same_tensor(ours: wire.TensorData, theirs: wire.TensorData) -> bool:
    if _shown(ours) != _shown(theirs):
        return False
    if ours.device == "meta" or ours.data == theirs.data:
        return True
    try:
        first, second = payload.unpack_tensor(ours), payload.unpack_tensor(theirs)
    except wire.WireError:
        return False
    if not first.is_floating_point():
        return False
    within = RECOGNISED * (100 if first.element_size() < 4 else 1)
    if within.holds(first.double(), second.double()):
        return True
    # Rounding grows with the largest number, also in numbers that are small beside it.
    return torch.equal(first.isnan(), second.isnan()) and _gap_of_tensors(ours, theirs).right
