"""Questions on a change: what happens if a part of the answer is left out or changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from grader import wire
from grader.questions.question import Question
from grader.questions.study import (
    NOTHING,
    NUMBERS,
    RAISES,
    Outcome,
    Study,
    inputs_in_words,
    lines_of,
    shape_of,
)
from grader.questions.words import false_sentences

CHOICES = 4
FOLLOW_UP = {
    "raises": "Which two shapes or types meet there, and why do they not fit?",
    "shape": "Which later line would notice the other shape, and which would not?",
    "behaviour": "Show on a small example why.",
    "edge": "Which inputs of practice are like that?",
    "numbers": "In which direction do the numbers move, and why?",
    "nothing": "Then why is it there?",
}


def about_changes(
    study: Study, chance: random.Random
) -> Iterator[tuple[wire.Site, Outcome, Question]]:
    """Changes, outcomes and questions, in an order by chance; each is run when it is reached."""
    sites = [site for site in study.sites if site.kind != "value"]
    chance.shuffle(sites)
    for site in sites:
        outcome = study.outcome(site)
        if outcome is not None:
            yield site, outcome, question_on(study, site, outcome, chance)


def question_on(study: Study, site: wire.Site, outcome: Outcome, chance: random.Random) -> Question:
    """The question on a change whose outcome is known."""
    choices = [outcome.told, *_others(study, outcome, chance)]
    chance.shuffle(choices)
    place = site.place
    text = (
        f"Suppose that line {place.line} of {place.file if not place.cell else place.within} were "
        "changed as shown. What would happen?"
    )
    return Question(
        "leave out" if site.kind == "leave out" else "change",
        study.name,
        f"{text} ({inputs_in_words(study, study.inputs[0])}.)",
        [
            wire.Place(place.file, place.line + n, line, place.cell)
            for n, line in enumerate(lines_of(study, site))
        ],
        outcome.told,
        outcome.ran,
        FOLLOW_UP[outcome.kind],
        choices,
        lines_of(study, site, site.new),
    )


def _others(study: Study, outcome: Outcome, chance: random.Random) -> list[str]:
    """Wrong choices: none of them is true of the outcome."""
    pool = [RAISES] if outcome.kind != "raises" else []
    pool += [NOTHING] if outcome.kind != "nothing" else []
    pool += [NUMBERS] if outcome.kind in ("raises", "nothing") else []
    if (shape := _another_shape(study, outcome, chance)) is not None:
        pool.append(shape)
    behaviour = list(outcome.false)
    if outcome.kind in ("raises", "shape"):
        behaviour = false_sentences(study.contract, study.facts, study.facts)
    chance.shuffle(pool)
    chance.shuffle(behaviour)
    picked = behaviour[:2] + pool if outcome.kind != "behaviour" else behaviour[:1] + pool
    return picked[: CHOICES - 1]


def _another_shape(study: Study, outcome: Outcome, chance: random.Random) -> str | None:
    """A shape that the result could have by another change."""
    value = study.values[0]
    was = shape_of(value.value) if isinstance(value, wire.Returned) else None
    if was is None or len(was) < 1:
        return None
    others = [was[:-1], was[1:], (*was[:-1], 1), was[::-1], (*was[:-2], *was[:-3:-1])]
    told = [f"The result has the shape {shape}." for shape in others if shape != was]
    told = [one for one in told if one != outcome.told]
    return chance.choice(told) if told else None
