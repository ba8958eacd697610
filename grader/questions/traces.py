"""Questions on which value on the way changes in a certain part, with a part of an argument."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec
import torch
from torch import Tensor

from grader import wire
from grader.feedback.behaviour import BATCH, LEADING, label_of
from grader.questions.changes import CHOICES, FEWEST
from grader.questions.inputs import Input, shapes_in_words
from grader.questions.outcomes import SAME
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import LABELS, MARKS, files_of, line_of, marked
from grader.wire import payload

FEWEST_POSITIONS = 3  # of an axis
FACTORS = (-0.7, 1.9)  # two changes: the reply must not depend on how a number changes
ALL = "all of v"
A_SLICE = re.compile(r"[\w.]+\[[^\[\]]*\]")  # to read it is to answer
ADDED = 0.5  # a factor alone would not change a zero


@dataclass(frozen=True)
class _Change:
    """Other numbers at one position of an axis of a call's argument."""

    number: int
    axis: int
    size: int
    at: int

    def of(self, one: Input, factor: float) -> Input:
        """The input with the change."""
        arguments = [*one.call.arguments]
        value = arguments[self.number]
        assert isinstance(value, wire.TensorData)
        tensor = payload.unpack_tensor(value).clone()
        tensor.select(self.axis, self.at).mul_(factor).add_(ADDED)
        arguments[self.number] = payload.pack_tensor(tensor)
        return replace(one, call=msgspec.structs.replace(one.call, arguments=arguments))


def about_parts(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on values of which one changes in a certain part, and the others in other parts.

    Parts are cut along the axes of a value that are as long as the argument's axis. A question on
    the part of a single value would be answered by the statement of the exercise.
    """
    one = study.clear_input
    if one is None:
        return
    changes = [*_changes(study, one, chance)]
    chance.shuffle(changes)
    for change in changes:
        found: dict[wire.Site, str] = {}
        for site, before, after in _seen(study, one, change):
            parts = _parts(before.shape, change)
            smallest = {_smallest(parts, _differ(before, other)) for other in after}
            if len(smallest) == 1 and "" not in smallest:
                found[site] = smallest.pop()
        replies = [*dict.fromkeys(found.values())]
        for reply in chance.sample(replies, len(replies)):
            right = [site for site, part in found.items() if part == reply]
            wrong = [site for site, part in found.items() if part != reply]
            chance.shuffle(wrong)
            sites = [chance.choice(right)]
            for site in wrong:
                if len(sites) < CHOICES and line_of(site) not in map(line_of, sites):
                    sites.append(site)
            if len(sites) >= FEWEST:
                yield _question(study, one, change, sites, reply, chance)


def _changes(study: Study, one: Input, chance: random.Random) -> Iterator[_Change]:
    signature = study.contract.called
    if one.call.keywords:
        return
    for number, (parameter, value) in enumerate(
        zip(signature.parameters, one.call.arguments, strict=False)
    ):
        if not isinstance(value, wire.TensorData) or value.dtype != "float32" or value.array:
            continue
        if len(value.shape) < 2:  # such a weight changes what it is multiplied with
            continue
        spec = parameter.specs[0] if parameter.specs else None
        for axis, size in enumerate(value.shape):
            label = label_of(spec, axis - len(value.shape))
            if size >= FEWEST_POSITIONS and label not in (BATCH, LEADING):
                yield _Change(number, axis, size, chance.choice(range(1, size - 1)))


def _seen(
    study: Study, one: Input, change: _Change
) -> Iterator[tuple[wire.Site, Tensor, list[Tensor]]]:
    """Values that a probe sees once, as they are and after each of two changes."""
    sites = [s for s in study.sites
             if s.kind == "value" and not s.loops and not A_SLICE.fullmatch(s.text)]  # fmt: skip
    changed = [change.of(one, factor) for factor in FACTORS]
    seen = study.probed(sites, [one, *changed])
    for site in sites if seen else ():
        tensors = [
            payload.unpack_tensor(value)
            for values in seen
            for value in values[site]
            if isinstance(value, wire.TensorData) and not value.array and value.device == "cpu"
        ]
        shapes = {tensor.shape for tensor in tensors}
        if len(tensors) == len(seen) and len(shapes) == 1 and change.size in tensors[0].shape:
            yield site, tensors[0], tensors[1:]


def _differ(one: Tensor, other: Tensor) -> Tensor:
    a, b = one.to(torch.complex128), other.to(torch.complex128)
    return ~torch.isclose(a, b, rtol=SAME, atol=SAME, equal_nan=True)


def _parts(shape: torch.Size, change: _Change) -> Mapping[str, Tensor]:
    """Parts of a tensor `v` as Python writes them, and which numbers they hold."""
    at, after = change.at, change.at + 1
    ways = {f"{at}": slice(at, after), f"{at}:": slice(at, None)}
    found: dict[str, Tensor] = {}
    axes = [axis for axis, size in enumerate(shape) if size == change.size]
    for axis in axes:
        for text, part in ways.items():
            held = torch.zeros(shape, dtype=torch.bool)
            held.movedim(axis, 0)[part] = True
            found[f"v[{':, ' * axis}{text}]"] = held
    one, *others = (f"v[{':, ' * axis}{at}]" for axis in axes)
    for other in others[:1]:
        found[f"{one} and {other}"] = found[one] | found[other]
    return found | {ALL: torch.ones(shape, dtype=torch.bool)}


def _smallest(parts: Mapping[str, Tensor], changed: Tensor) -> str:
    """The smallest part that holds all changes; "" if it is none of these parts.

    Another slice, such as `v[:2]`, may be smaller than each of them.
    """
    if changed.all():
        return ALL
    holding = {text: held for text, held in parts.items() if not (changed & ~held).any()}
    smallest = min(holding, key=lambda text: int(holding[text].sum()))
    within = all(not (holding[smallest] & ~held).any() for held in holding.values())
    equal = [text for text, held in holding.items() if torch.equal(held, holding[smallest])]
    if smallest == ALL or not within or len(equal) > 1 or not changed.any():
        return ""
    size = int(holding[smallest].sum())
    others = [_size_along(changed, axis) for axis in range(changed.dim())]
    others += _sizes_of_pairs(changed)
    return smallest if size <= min(others) and others.count(size) <= 1 else ""


def _size_along(changed: Tensor, axis: int) -> int:
    """How many numbers the smallest slice along an axis has that holds all changes."""
    size = changed.shape[axis]
    places = changed.movedim(axis, 0).reshape(size, -1).any(dim=1).nonzero()
    return int(places.max() - places.min() + 1) * changed.numel() // size


def _sizes_of_pairs(changed: Tensor) -> Iterator[int]:
    """How many numbers each two slices at the same position have that hold all changes."""
    for one, other in combinations(range(changed.dim()), 2):
        for at in range(min(changed.shape[one], changed.shape[other])):
            held = torch.zeros_like(changed)
            for axis in (one, other):
                held.select(axis, at).fill_(True)
            if not (changed & ~held).any():
                yield int(held.sum())


def _question(
    study: Study,
    one: Input,
    change: _Change,
    sites: Sequence[wire.Site],
    part: str,
    chance: random.Random,
) -> Question:
    """A question on these values, of which the first is the reply."""
    signature = study.contract.called
    name = signature.parameters[change.number].name
    altered = f"`{name}[{':, ' * change.axis}{change.at}]`"
    where = part if part == ALL else f"`{part}`"
    labels = dict(zip(chance.sample(sites, len(sites)), LABELS, strict=False))
    return Question(
        "part",
        study.name,
        f"Suppose that {shapes_in_words(study.contract, one)}. Only the numbers in {altered} "
        f"change. For which of the values v between {MARKS[0]} and {MARKS[1]} in "
        f"{files_of(sites)} is {where} the smallest part that holds every number that changes? "
        "A part is one slice along an axis, two slices at the same position of two axes, or all "
        "of v.",
        [
            line
            for site in sorted(sites, key=line_of)
            for line in marked(study.sources, site, label=labels[site])
        ],
        _choice(labels[sites[0]]),
        f"The numbers in {altered} were changed in two ways, and probes compared values.",
        "Which line would change that, and how?",
        [_choice(label) for label in labels.values()],
    )


def _choice(label: str) -> str:
    return f"The value {label}"
