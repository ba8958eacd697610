"""Questions on a change: what happens if a part of the answer is left out or changed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch

from grader import wire
from grader.questions.inputs import shapes_in_words, values_in_words
from grader.questions.outcomes import NOTHING, NUMBERS, RAISES, Outcome, shapes_of, shapes_told
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import differ, in_python, lines_at
from grader.wire import payload

CHOICES = 4
CONCRETE = 0.4  # how often a change of behaviour is asked by a result, where that is possible
FOLLOW_UP = {
    "raises": "Which two shapes or types meet there, and why do they not fit?",
    "shape": "Which later line would notice the other shape, and which would not?",
    "behaviour": "Show on a small example why.",
    "edge": "Which inputs of practice are like that?",
    "numbers": "In which direction do the numbers move, and why?",
    "nothing": "Then why is it there?",
}
Tried = Mapping[wire.Site, Outcome]  # changes that were run, and what they do


def about_change(study: Study, site: wire.Site, tried: Tried, chance: random.Random) -> Question:
    """The question on a change that was tried."""
    outcome = tried[site]
    if outcome.kind == "numbers" or (outcome.kind == "behaviour" and chance.random() < CONCRETE):
        question = _about_result(study, site, tried, chance)
        if question is not None:
            return question
    wrong = _wrong(study, outcome, chance)
    setting = shapes_in_words(study.contract, study.inputs[outcome.at])
    asks = f"What happens if {setting}?" if setting else "What happens?"
    if study.has_modes:
        asks += " The module is in evaluation mode, unless a choice says otherwise."
    return _question(study, site, asks, outcome, outcome.told, wrong, chance)


def _about_result(
    study: Study, site: wire.Site, tried: Tried, chance: random.Random
) -> Question | None:
    """The question what a small input then gives.

    Wrong choices are what it gives without the change, and with other changes.
    """
    numbers = [*range(len(study.readable))]
    chance.shuffle(numbers)
    for number in numbers:
        one, was = study.readable[number]
        reply = tried[site].shown[number]
        if not was or not reply or not differ(was, reply):
            continue
        others = [other.shown[number] for other in tried.values() if other.shown]
        others += _like(study, number)
        chance.shuffle(others)
        wrong = _apart([was, *filter(None, others)], reply)
        if len(wrong) < CHOICES - 1:
            continue
        rounded = ", rounded to two digits" if "." in reply else ""
        text = f"For {values_in_words(study.contract, one)}, what is the result then{rounded}?"
        return _question(study, site, text, tried[site], reply, wrong, chance)
    return None


def _like(study: Study, number: int) -> list[str]:
    """Results that look like that for a readable input: its rows or numbers in another order."""
    place = study.inputs.index(study.readable[number][0])
    value = study.values[place]
    result = plain_tensor(value)
    if result is None or not result.dim():
        return []
    found = [result.flip(-1), result.flip(0), result.roll(1, -1)]
    if result.dim() > 1:
        found.append(result.transpose(-2, -1))
    if result.dtype == torch.bool:
        found.append(~result)
    return [in_python(payload.pack_tensor(one)) for one in found]


def plain_tensor(outcome: wire.Outcome | None) -> torch.Tensor | None:
    """A result that is a tensor of numbers; None for any other."""
    value = outcome.value if isinstance(outcome, wire.Returned) else None
    if not isinstance(value, wire.TensorData) or value.array or value.device == "meta":
        return None
    return payload.unpack_tensor(value)


def _apart(candidates: list[str], reply: str) -> list[str]:
    """The first of these results that differ from the reply, and from each other."""
    found: list[str] = []
    for one in candidates:
        if all(differ(one, other) for other in (reply, *found)) and len(found) < CHOICES - 1:
            found.append(one)
    return found


def _question(
    study: Study,
    site: wire.Site,
    asks: str,
    outcome: Outcome,
    reply: str,
    wrong: list[str],
    chance: random.Random,
) -> Question:
    choices = [reply, *wrong]
    chance.shuffle(choices)
    place = site.place
    lines = (
        f"Line {place.line}"
        if site.end_line == place.line
        else (f"Lines {place.line} to {site.end_line}")
    )
    verb = "is" if site.end_line == place.line else "are"
    return Question(
        "leave out" if site.kind == "leave out" else "change",
        study.name,
        f"{lines} of {place.within} {verb} changed as shown. {asks}",
        lines_at(study.sources, site),
        reply,
        outcome.ran if reply == outcome.told else f"The result was {reply}.",
        FOLLOW_UP[outcome.kind],
        choices,
        [line.text for line in lines_at(study.sources, site, site.new)],
    )


def _wrong(study: Study, outcome: Outcome, chance: random.Random) -> list[str]:
    """Wrong choices: none of them is true of the outcome."""
    pool = [RAISES] if outcome.kind != "raises" else []
    pool += (
        [NOTHING] if outcome.kind not in ("nothing", "edge") and NOTHING not in outcome.true else []
    )
    pool += [NUMBERS] if outcome.kind in ("raises", "nothing", "shape") else []
    if (shape := _another_shape(study, outcome, chance)) is not None:
        pool.append(shape)
    behaviour = list(outcome.false)
    if outcome.kind == "raises":
        behaviour = study.imaginable
    chance.shuffle(pool)
    chance.shuffle(behaviour)
    return (behaviour[:2] + pool)[: CHOICES - 1]


def _another_shape(study: Study, outcome: Outcome, chance: random.Random) -> str | None:
    """A shape that the result could have by another change."""
    shapes = shapes_of(study.values[outcome.at])
    if not shapes or not shapes[0]:
        return None
    was, *rest = shapes
    others = [was[:-1], was[1:], (*was[:-1], 1), was[::-1], (*was[:-2], *was[:-3:-1])]
    told = [shapes_told([shape, *rest]) for shape in others if shape != was]
    told = [one for one in told if one != outcome.told]
    return chance.choice(told) if told else None
