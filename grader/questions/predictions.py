"""Questions on an entry of the result, for an input that a person can compute."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator

import torch

from grader.questions.changes import plain_tensor
from grader.questions.inputs import ROUND, values_in_words
from grader.questions.question import Question
from grader.questions.study import Study

MOST_ENTRIES = 100  # of the result


def about_entries(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on an entry of the result that has few digits; not for modules."""
    rounds = [
        (one, value)
        for one, value in zip(study.inputs, study.values, strict=True)
        if one.only == ROUND and one.is_readable
    ]
    chance.shuffle(rounds)
    for one, value in rounds:
        result = plain_tensor(value)
        if result is None or not 1 < result.numel() <= MOST_ENTRIES or not result.dim():
            continue
        if not result.is_floating_point():
            continue
        numbers = [round(number, 2) for number in result.double().flatten().tolist()
                   if math.isfinite(number)]  # fmt: skip
        if len(numbers) < result.numel() or len({*numbers}) < 2:
            continue
        given = {float(number) for tensor in one.tensors for number in tensor.flatten()}
        times = Counter(numbers)
        # An entry that no other has, and that is not an argument's, says most.
        entries = [at for at, exact in enumerate(result.double().flatten().tolist())
                   if _is_plain(exact) and exact]  # fmt: skip
        if not entries:
            continue
        chance.shuffle(entries)
        at = min(entries, key=lambda n: (numbers[n] in given, times[numbers[n]]))
        place = [int(index) for index in torch.unravel_index(torch.tensor(at), result.shape)]
        yield Question(
            "number",
            study.name,
            f"For {values_in_words(study.contract, one)}: what is the entry {place} of the "
            "result, rounded to two digits?",
            [],
            f"{numbers[at]:.2f}",
            f"The whole result is {_listed(result)}.",
            "What would it be if the first number were larger?",
        )


def _is_plain(value: float) -> bool:
    """Whether a number has at most two digits after the point."""
    return math.isfinite(value) and abs(value * 100 - round(value * 100)) < 1e-3


def _listed(result: torch.Tensor) -> str:
    rounded = (result.double() * 100).round() / 100
    text: str = repr(rounded.tolist())
    return text
