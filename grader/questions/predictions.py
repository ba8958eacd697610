"""Questions on an entry of a value on the way, for an input that a person can compute."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor

from grader import wire
from grader.questions.inputs import ROUND, values_in_words
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import MARKS, marked
from grader.wire import payload

MOST_ENTRIES = 100  # of the value


def about_entries(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on entries that have few digits and are not in the result; not for modules."""
    sites = [site for site in study.sites if site.kind == "value"]
    rounds = [
        (one, result)
        for one, result in zip(study.inputs, study.values, strict=True)
        if one.only == ROUND and one.is_readable
    ]
    chance.shuffle(rounds)
    for one, result in rounds:
        seen = next(iter(study.probed(sites, [one])), {})
        # The whole result can be computed without the lines, and so can what it is made from.
        known = {*_numbers(result), *(n for given in one.tensors for n in given.flatten().tolist())}
        for site in chance.sample([*seen], len(seen)):
            values = seen[site]
            value = _plain_tensor(values[0]) if values and (site.loops or not values[1:]) else None
            if value is None:
                continue
            exact = value.double().flatten().tolist()
            numbers = [round(number, 2) for number in exact]
            times = Counter(numbers)
            entries = [
                at
                for at, number in enumerate(exact)
                if number and _has_few_digits(number) and numbers[at] not in known
            ]
            if not entries:
                continue
            chance.shuffle(entries)
            at = min(entries, key=lambda n: times[numbers[n]])
            place = [int(index) for index in torch.unravel_index(torch.tensor(at), value.shape)]
            again = " the first time that it runs" if site.loops else ""
            yield Question(
                "number",
                study.name,
                f"For {values_in_words(study.contract, one)}: what is the entry {place} of the "
                f"value between {MARKS[0]} and {MARKS[1]}{again}, rounded to two digits?",
                marked(study.sources, site),
                f"{numbers[at]:.2f}",
                f"A probe saw {_listed(value)} there.",
                "What would it be if the first number were larger?",
            )


def _plain_tensor(value: wire.Value) -> Tensor | None:
    """A tensor of few finite numbers with a point; None for any other value."""
    if not isinstance(value, wire.TensorData) or value.array or value.device != "cpu":
        return None
    tensor = payload.unpack_tensor(value)
    plain = tensor.is_floating_point() and tensor.dim() and 1 < tensor.numel() <= MOST_ENTRIES
    return tensor if plain and bool(tensor.isfinite().all()) else None


def _numbers(outcome: wire.Outcome | None) -> list[float]:
    """The numbers of a result, rounded to two digits."""
    tensors = (
        payload.tensors_of([payload.unpack(outcome.value)])
        if isinstance(outcome, wire.Returned)
        else ()
    )
    return [round(n, 2) for tensor in tensors if not tensor.dtype.is_complex and not tensor.is_meta
            for n in tensor.double().flatten().tolist()]  # fmt: skip


def _has_few_digits(value: float) -> bool:
    """Whether a number has at most two digits after the point."""
    return abs(value * 100 - round(value * 100)) < 1e-3


def _listed(result: Tensor) -> str:
    rounded = (result.double() * 100).round() / 100
    text: str = repr(rounded.tolist())
    return text
