"""Runs an answer's text on inputs, in a jail of its own, and finds facts about its behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import torch

from grader import wire
from grader.course.references import WEIGHT_SCALE
from grader.course.tensors import Make
from grader.grading.desk import Desk, Seat
from grader.intake import Submission
from grader.proxies.calls import first_outcome, plain_value, require_believable
from grader.proxies.facts import Example, Facts, facts
from grader.questions.inputs import FRESH, TRAINING, Input
from grader.questions.outcomes import Values, shapes_of
from grader.sandbox.session import StudentLost
from grader.wire import SourceText, payload


def make_of(desk: Desk, name: str) -> Make:
    """The tensors of a study: the same for each run."""
    return Make(desk.course.seed, name, "questions")


def values_of(
    desk: Desk, name: str, sources: tuple[SourceText, ...], inputs: Sequence[Input]
) -> Values:
    """The outcome of each input; None for each if the process is lost."""
    ran = run(desk, name, sources, inputs, None)
    return ran[0] if ran is not None else [None] * len(inputs)


def run(
    desk: Desk,
    name: str,
    sources: tuple[SourceText, ...],
    inputs: Sequence[Input],
    example: Example | None,
    *,
    like: wire.Outcome | None = None,
    probes: bool = False,
) -> tuple[Values, Facts] | None:
    """Run an answer's text on inputs, and find the facts about an example.

    Modules get the same weights each time. With `like`, facts are found only if the first result
    has its shapes. Returns None if the process is lost.
    """
    make = make_of(desk, name)
    try:
        with desk.seat(Submission("question", sources), [name], probes=probes) as seat:
            values: Values = [_called(seat, name, one, make) for one in inputs]
            known: Facts = {}
            first = values[0] if values else None
            shapes = shapes_of(first)
            # Facts are about a result of one tensor.
            fits = len(shapes) == 1 and (like is None or shapes == shapes_of(like))
            if example is not None and isinstance(first, wire.Returned) and fits:
                known = facts(seat.begin(make), name, example, make)
                if not _is_signed(example):  # no result of such an example may be negative
                    known = {fact: holds for fact, holds in known.items() if fact.kind != "bounded"}
            return values, known
    except StudentLost:
        return None


def _is_signed(example: Example) -> bool:
    tensors = payload.tensors_of([payload.unpack(value) for value in example.arguments])
    return any(bool((tensor < 0).any()) for tensor in tensors if not tensor.dtype.is_complex)


def _called(seat: Seat, name: str, one: Input, make: Make) -> wire.Outcome:
    session = seat.session
    seat.begin(make)  # the same random numbers, whatever was called before
    target: str | int = name
    if one.made is not None:
        target = next(session.handles)
        made = session.run(msgspec.structs.replace(one.made, result=target))
        structure = first_outcome(made)
        if not isinstance(structure, wire.Structure):
            return structure
        require_believable(structure)
        weights = {
            info.path: payload.pack_tensor(
                make.normal_like(torch.zeros(info.shape), WEIGHT_SCALE, name=info.path)
            )
            for info in structure.parameters
        }
        mode: Literal["train", "eval"] = "train" if one.only == TRAINING else "eval"
        own: list[wire.Call] = [] if one.only == FRESH else [wire.Assign(target, weights)]
        session.run(*own, wire.Convert(target, mode))
    call = msgspec.structs.replace(one.call, target=target, result=next(session.handles))
    outcome = first_outcome(session.run(call))
    if isinstance(outcome, wire.Returned):
        plain_value(outcome.value)  # a process may send a tensor that is none
    return outcome
