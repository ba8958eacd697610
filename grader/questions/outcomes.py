"""What a change of an answer does, as its results show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from grader import wire
from grader.course.contract import Contract
from grader.feedback.behaviour import BATCH, axis_named, label_of
from grader.grading.diagnosis import flat
from grader.proxies.facts import CLEAR, Facts
from grader.questions.inputs import (
    DOUBLE,
    FRESH,
    LARGE,
    MASKS,
    ROUND,
    SINGLE,
    TRAINING,
    ZERO,
    Input,
)
from grader.questions.texts import in_python
from grader.questions.words import false_sentences, is_named, sentences_about
from grader.wire import payload

SAME = 1e-5  # a smaller difference, relative to the numbers, is rounding
# A change that only makes a name, a type or a syntax wrong asks for no thought.
DULL = frozenset({
    "AttributeError", "ForbiddenOperation", "IndentationError", "NameError", "NotBound",
    "NotImplementedError", "SyntaxError", "TypeError", "UnboundLocalError",
})  # fmt: skip

DULL_TEXTS = ("Dimension out of range", "negative dimension", "values to unpack")

ORDINALS = ("first", "second", "third", "fourth")
DECIDED = ("repeats", "gradient", "weights")  # kinds of facts that each result decides

Values = list[wire.Outcome | None]  # the outcome of each input; None if the process was lost
Gap = Literal["same", "numbers", "shape"]


@dataclass(frozen=True)
class Outcome:
    """What a change does."""

    kind: Literal["raises", "shape", "behaviour", "numbers", "edge", "nothing"]
    told: str  # the sentence that is true
    false: tuple[str, ...] = ()  # sentences about behaviour that are not
    ran: str = ""  # what was seen beside this
    true: frozenset[str] = frozenset()  # all sentences that are, apart from those on numbers
    shown: tuple[str, ...] = ()  # the result for each readable input, as Python writes it
    at: int = 0  # the number of the input that shows it
    every: Sequence[str] = ()  # of behaviour: all sentences that are true, best first

    @property
    def sentences(self) -> Sequence[str]:
        """Each of the sentences that a question can choose."""
        return self.every or [self.told]


RAISES = "It raises an exception."
NOTHING = "Nothing: every result stays as it is."
NUMBERS = "The result has the same shape, and other numbers."
FEW_POSITIONS = 3
POSITIONS = ("at every position", "at every position but the first")
RESHAPED = "The result has another shape."
BREAKS = "Some numbers of the result become NaN or infinite."
# What is told if a change shows on these inputs alone.
ON_EDGES = {
    LARGE: "Nothing for numbers of usual size; for very large numbers, the result can change.",
    ZERO: "Nothing, except where all numbers are 0: there the result can change.",
    DOUBLE: "Nothing for float32; for float64, the result can change.",
    SINGLE: "Nothing, except where an axis has the size 1: there the result can change.",
    MASKS: "Nothing, except for a mask that is False everywhere.",
    TRAINING: "Nothing in evaluation mode; in training mode, with dropout, the result can change.",
}
OVERFLOWS = "Nothing for numbers of usual size; very large numbers give NaN or infinity."
# An input with infinite numbers breaks, and it is open whether it is one with very large numbers.
OVERLAPS = ({BREAKS, OVERFLOWS}, {BREAKS, ON_EDGES[LARGE]})


def outcome_of(
    contract: Contract,
    inputs: Sequence[Input],
    before: tuple[Values, Facts],
    after: tuple[Values, Facts],
) -> Outcome | None:
    """What a change does; None if it is not clear."""
    every = list(zip(after[0], before[0], inputs, strict=True))
    # The question is about the first input of the checks that shows the change.
    shows = (n for n, (value, was, one) in enumerate(every)
             if not one.only and gap_of(value, was) != "same")  # fmt: skip
    at = next(shows, 0)
    value, was, _ = every[at]
    shown = tuple(_shown(value) for value, _, one in every if one.is_readable)
    if isinstance(value, wire.Raised):
        ran = f"It raises {value.kind}: {_short(value.text)}"
        dull = value.kind in DULL or any(text in value.text for text in DULL_TEXTS)
        return None if dull else Outcome("raises", RAISES, ran=ran, shown=shown, at=at)
    gap = gap_of(value, was)
    if gap is None:
        return None
    now, usual = shapes_of(value), shapes_of(was)
    if gap == "shape":
        if not now or now == usual or len(now) != len(usual):
            return None
        told = shapes_told(now) if inputs[at].is_worded else RESHAPED
        ran = f"{told} Before: {in_words(usual)}."
        # Of several results, those with another shape change, too; so do the numbers of one.
        changed = _changed_results(value, was)
        true = [_results_told(changed)] if changed else positions_in_words(contract, was)[:1]
        return Outcome("shape", told, ran=ran, true=frozenset(true), shown=shown, at=at)
    if _is_finite(was) and not _is_finite(value):
        return Outcome("numbers", BREAKS, shown=shown, at=at)
    if {fact for fact in before[1] if fact.kind in DECIDED} - after[1].keys():
        return None
    true = sentences_about(contract, before[1], after[1])
    where, elsewhere = _positions(contract, value, was) if gap == "numbers" else ([], [])
    false = (*false_sentences(contract, before[1], after[1]), *elsewhere)
    if true:
        all_true = frozenset({*true, NOTHING} if gap == "same" else true)
        return Outcome("behaviour", true[0], false, "", all_true, shown, at, true)
    if gap == "same":  # for another model, of which a question tells nothing, it could differ
        return _on_edges(every, false, shown) if inputs[at].is_worded else None
    if not now:
        return None
    changed = _changed_results(value, was)
    if changed:
        told = _results_told(changed)
        ways = product([True, False], repeat=len(changed))
        false = tuple(_results_told(way) for way in ways if any(way) and way != changed)
        return Outcome("numbers", told, false, shown=shown, at=at)
    if len(now) > 1:  # too many to tell which of them changed
        return None
    told = next(iter(where), NUMBERS)
    return Outcome("numbers", told, false, shown=shown, at=at)


def excludes(one: Outcome, other: Outcome) -> bool:
    """Whether the sentence on another change is surely false of this one."""
    if other.told in {one.told, *one.true} or {one.told, other.told} in OVERLAPS:
        return False
    if other.kind == "behaviour" and one.kind != "raises":
        return other.told in one.false
    if one.kind == "behaviour" and other.kind in ("nothing", "edge"):
        return NOTHING not in one.true
    if one.kind in ("behaviour", "numbers") and other.kind == "numbers":
        return other.told in one.false
    return True


def _shown(value: wire.Outcome | None) -> str:
    """A result as Python writes it, or that there is none; "" if that is not worth asking."""
    if isinstance(value, wire.Raised):
        return "" if value.kind in DULL else RAISES
    return in_python(value.value) if isinstance(value, wire.Returned) else ""


def _changed_results(value: wire.Outcome | None, was: wire.Outcome | None) -> tuple[bool, ...]:
    """Which of several tensors of a result changed; nothing if they are one, or many."""
    assert isinstance(value, wire.Returned)
    assert isinstance(was, wire.Returned)
    ones, others = (
        [part for part in flat([result.value]) if isinstance(part, wire.TensorData)]
        for result in (value, was)
    )
    if not 1 < len(ones) <= len(ORDINALS):
        return ()
    return tuple(_gap(one, other) != "same" for one, other in zip(ones, others, strict=True))


def _results_told(changed: Sequence[bool]) -> str:
    """A sentence on which results change."""
    if all(changed):
        return (
            "Both results change." if len(changed) == 2 else f"All {len(changed)} results change."
        )
    named = [f"the {word}" for word, does in zip(ORDINALS, changed, strict=False) if does]
    verb = "changes" if len(named) == 1 else "change"
    return f"Of the {len(changed)} results, only {' and '.join(named)} {verb}."


def positions_in_words(contract: Contract, was: wire.Outcome | None) -> list[str]:
    """Sentences on where the numbers of a result change, if it has an axis of positions."""
    _, label = _axis_of_positions(contract, was)
    along = f"Along {axis_named(label)}, the numbers of the result change"
    return [f"{along} {where}." for where in POSITIONS] if label else []


def _axis_of_positions(contract: Contract, was: wire.Outcome | None) -> tuple[int, str]:
    """The first axis of a result with some positions that has a name, and is not the last.

    The name is empty if there is none.
    """
    shapes = shapes_of(was)
    spec = contract.called.returned
    for axis, size in enumerate(shapes[0][:-1] if len(shapes) == 1 else ()):
        label = label_of(spec, axis - len(shapes[0]))
        if size >= FEW_POSITIONS and label != BATCH and is_named(spec, label):
            return axis, label
    return 0, ""


def _positions(
    contract: Contract, value: wire.Outcome | None, was: wire.Outcome | None
) -> tuple[list[str], list[str]]:
    """Sentences on where the numbers of a result change: those that are true, and those not."""
    axis, label = _axis_of_positions(contract, was)
    if not label:
        return [], []
    one, other = (_tensors_in(result)[0].to(torch.complex128) for result in (value, was))
    off = (one - other).abs().movedim(axis, 0).flatten(1).amax(dim=1)
    if bool(((off > SAME) & (off < CLEAR)).any()) or not bool(off.isfinite().all()):
        return [], []
    changed = (off >= CLEAR).tolist()
    more = len(changed) - 1
    patterns = [True] * len(changed), [False, *[True] * more]
    told = dict(zip(positions_in_words(contract, was), patterns, strict=True))
    true = [sentence for sentence, pattern in told.items() if pattern == changed]
    return true, [sentence for sentence in told if sentence not in true]


def _on_edges(
    every: Sequence[tuple[wire.Outcome | None, wire.Outcome | None, Input]],
    false: tuple[str, ...],
    shown: tuple[str, ...],
) -> Outcome | None:
    """What a change does that shows on no input of the checks."""
    told: set[str] = set()
    for value, was, one in every:
        gap = gap_of(value, was)
        if gap == "same":
            continue
        # "Other weights, but for the same ones nothing" is no reply: it asks for no thought.
        if gap is None or one.only in (ROUND, FRESH):
            return None
        overflows = one.only == LARGE and _is_finite(was) and not _is_finite(value)
        told.add(OVERFLOWS if overflows else ON_EDGES[one.only])
    if len(told) > 1:
        return None
    if told:
        return Outcome("edge", told.pop(), false, shown=shown)
    ran = f"All results stay as they are, for {len(every)} inputs and for small changes of them."
    return Outcome("nothing", NOTHING, false, ran, shown=shown)


def _is_finite(outcome: wire.Outcome | None) -> bool:
    return all(bool(one.isfinite().all()) for one in _tensors_in(outcome) if not one.is_meta)


def _tensors_in(outcome: wire.Outcome | None) -> Sequence[Tensor]:
    """The tensors of a result, and its arrays as tensors."""
    assert isinstance(outcome, wire.Returned)
    parts = flat([outcome.value])
    return [payload.unpack_tensor(part) for part in parts if isinstance(part, wire.TensorData)]


def _short(text: str) -> str:
    return " ".join(text.strip().partition("\n")[0].split())[:160]


def all_same(ones: Values, others: Values) -> bool:
    """Whether the answer returned the same each time."""
    return len(ones) == len(others) and all(
        gap_of(one, other) == "same" for one, other in zip(ones, others, strict=True)
    )


def gap_of(one: wire.Outcome | None, other: wire.Outcome | None) -> Gap | None:
    """How two results differ; None if that is unclear, or one of them is no result."""
    if not isinstance(one, wire.Returned) or not isinstance(other, wire.Returned):
        return None
    if one.changed != other.changed:
        return None  # the change is of an argument
    ones, others = list(flat([one.value])), list(flat([other.value]))
    if len(ones) != len(others):
        return "shape"
    found = {_gap(a, b) for a, b in zip(ones, others, strict=True)}
    if None in found:
        return None
    return "shape" if "shape" in found else "numbers" if "numbers" in found else "same"


def _gap(one: object, other: object) -> Gap | None:
    """How two numbers, tensors or texts differ."""
    if isinstance(one, wire.TensorData) and isinstance(other, wire.TensorData):
        return _gap_of_tensors(one, other)
    if one == other:
        return "same"
    if type(one) is not type(other):
        return "shape"
    return None if isinstance(one, str) else "numbers"  # a text may stand for a container's form


def _gap_of_tensors(one: wire.TensorData, other: wire.TensorData) -> Gap | None:
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return "shape"
    if one == other or one.device != "cpu":
        return "same" if one == other else None
    a, b = (payload.unpack_tensor(value).to(torch.complex128) for value in (one, other))
    if torch.allclose(a, b, rtol=SAME, atol=SAME, equal_nan=True):
        return "same"
    off = (a - b).abs().nan_to_num(nan=1.0, posinf=1.0)
    return "numbers" if float(off.max()) > CLEAR else None


def shapes_of(outcome: wire.Outcome | None) -> Sequence[tuple[int, ...]]:
    """The shapes of the tensors of a result, in order."""
    value = outcome.value if isinstance(outcome, wire.Returned) else None
    return [part.shape for part in flat([value]) if isinstance(part, wire.TensorData)]


def shapes_told(shapes: Sequence[tuple[int, ...]]) -> str:
    """A sentence on the shapes of a result's tensors."""
    if len(shapes) == 1:
        return f"The result has the shape {shapes[0]}."
    return f"The result has tensors of the shapes {in_words(shapes)}."


def in_words(shapes: Sequence[tuple[int, ...]]) -> str:
    """Shapes with commas between them."""
    return ", ".join(map(str, shapes))
