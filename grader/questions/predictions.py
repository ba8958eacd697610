"""Questions on an entry of the result, for an input that a person can compute."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import Tensor

from grader import wire
from grader.questions.question import Question
from grader.questions.study import Input, Study
from grader.wire import payload

MOST_NUMBERS = 16  # of all tensors of an input
PATTERNS: Sequence[Sequence[float]] = (
    (1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 2.0), (2.0, 1.0, 3.0, 0.0, 4.0),
)  # fmt: skip


def about_entries(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on an entry of the result that has few digits; not for modules."""
    small = [one for one in study.inputs if _is_small(one)]
    if not small:
        return
    one = small[0]
    rounds = [replace(one, call=_with(one.call, pattern)) for pattern in PATTERNS]
    values = study.results(rounds)
    if values is None:
        return
    pairs = [*zip(rounds, values, strict=True)]
    chance.shuffle(pairs)
    for given, value in pairs:
        result = payload.unpack(value.value) if isinstance(value, wire.Returned) else None
        if not isinstance(result, Tensor) or not result.dim() or not result.is_floating_point():
            continue
        entries = [
            place
            for place in torch.cartesian_prod(*map(torch.arange, result.shape))
            .reshape(-1, result.dim())
            .tolist()
            if _is_plain(float(result[tuple(place)]))
        ]
        if not entries or len(set(result.flatten().tolist())) < 2:
            continue
        place = chance.choice(entries)
        reply = f"{float(result[tuple(place)]):.2f}"
        arguments = ", ".join(_shown(study, given))
        yield Question(
            "number",
            study.name,
            f"For {arguments}: what is the entry {place} of the result, rounded to two digits?",
            [],
            reply,
            f"The whole result is {_listed(result)}.",
            "What would it be if the first number were larger?",
        )


def _is_small(one: Input) -> bool:
    plain = all(
        isinstance(value, wire.TensorData | None | bool | int | float)
        for value in one.call.arguments
    )
    tensors = one.tensors
    few = 0 < sum(tensor.numel() for tensor in tensors) <= MOST_NUMBERS
    floats = any(tensor.is_floating_point() for tensor in tensors)
    return one.made is None and not one.only and plain and few and floats


def _with(call: wire.Invoke, pattern: Sequence[float]) -> wire.Invoke:
    """The call with numbers of a pattern in place of its floats."""
    arguments = [*call.arguments]
    for number, value in enumerate(arguments):
        if isinstance(value, wire.TensorData) and value.dtype == "float32" and not value.array:
            tensor = payload.unpack_tensor(value)
            # Another argument begins at another place of the pattern.
            numbers = [pattern[(n + number) % len(pattern)] for n in range(tensor.numel())]
            arguments[number] = payload.pack_tensor(torch.tensor(numbers).reshape(tensor.shape))
    return msgspec.structs.replace(call, arguments=arguments)


def _is_plain(value: float) -> bool:
    """Whether a number has at most two digits after the point."""
    return math.isfinite(value) and abs(value * 100 - round(value * 100)) < 1e-3


def _shown(study: Study, one: Input) -> Iterator[str]:
    signature = study.contract.call
    names = one.call.keywords or [parameter.name for parameter in signature.parameters]
    for name, value in zip(names, one.call.arguments, strict=False):
        here = payload.unpack(value)
        shown = _listed(here) if isinstance(here, Tensor) else repr(here)
        yield f"`{name}` = {shown}"


def _listed(tensor: Tensor) -> str:
    text: str = repr(_rounded(tensor.tolist()))
    return text


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value
