"""Questions on a change: what happens if a part of the answer is left out or changed.

Each choice is what one of several changes of this answer does, and chance decides which of these
changes the question is about. So the choices alone do not show which of them is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from grader import wire
from grader.questions.inputs import FRESH, shapes_in_words, values_in_words
from grader.questions.outcomes import (
    NOTHING,
    NUMBERS,
    ON_EDGES,
    RAISES,
    Outcome,
    excludes,
    positions_in_words,
)
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import differ, lines_at

FEWEST, CHOICES = 3, 4
DRAWS = 40  # questions that are drawn, for the sake of those that others do not exclude
BY_RESULT = 0.5  # how often a change is asked about by a result, where that is possible
# The rank of a change by what it does, the most telling first; chance adds at most 1.5.
TELLING = {"behaviour": 0, "edge": 0, "shape": 1, "numbers": 1, "nothing": 1, "raises": 2}
FOLLOW_UP = {
    "raises": "Which two shapes or types meet there, and why do they not fit?",
    "shape": "Which later line would notice the other shape, and which would not?",
    "behaviour": "Show on a small example why.",
    "edge": "Which inputs of practice are like that?",
    "numbers": "In which direction do the numbers move, and why?",
    "nothing": "Then why is it there?",
}
Tried = Mapping[wire.Site, Outcome]  # changes that were run, and what they do
T = TypeVar("T")


def about_changes(
    study: Study, tried: Tried, chance: random.Random
) -> Iterator[tuple[wire.Site, Question]]:
    """Questions on changes that were tried, each with its change; a change may come again."""
    for _ in range(DRAWS if tried else 0):
        found = None
        if study.readable and chance.random() < BY_RESULT:
            found = _by_result(study, tried, chance)
        if (found := found or _in_words(study, tried, chance)) is not None:
            yield found


def in_words(tried: Tried, chance: random.Random) -> tuple[int, list[wire.Site]]:
    """Changes that an input tells apart, and the number of this input.

    The sentence that is true of one of them is false of the others.
    """
    at = tried[chance.choice([*tried])].at
    fitting = [
        site
        for site, outcome in tried.items()
        if (outcome.at == at or outcome.kind in ("nothing", "edge"))
        # Results show better how numbers differ.
        and not (outcome.told == NUMBERS and any(outcome.shown))
    ]
    fitting.sort(key=lambda site: _rank(tried[site]) + 1.5 * chance.random())
    return at, apart(fitting, lambda one, other: excludes(tried[one], tried[other]), CHOICES)


def apart(of: Collection[T], excludes: Callable[[T, T], bool], most: int) -> list[T]:
    """The first of these, each of which excludes all others in both directions."""
    found: list[T] = []
    for one in of:
        if len(found) < most and all(excludes(one, o) and excludes(o, one) for o in found):
            found.append(one)
    return found


def _rank(outcome: Outcome) -> int:
    """How little a change tells."""
    says_little = outcome.told in (NUMBERS, ON_EDGES[FRESH])
    return 2 if says_little else TELLING[outcome.kind]


def _in_words(
    study: Study, tried: Tried, chance: random.Random
) -> tuple[wire.Site, Question] | None:
    """A question whose choices are sentences."""
    at, sites = in_words(tried, chance)
    choices = [tried[one].told for one in sites]
    if 1 < len(sites) < CHOICES:
        # No change that was tried does this; with other answers, one often does.
        others = [Outcome("nothing", NOTHING), Outcome("raises", RAISES)]
        told = positions_in_words(study.contract, study.values[at])
        others += [Outcome("numbers", one) for one in told]
        others = [o for o in others if all(excludes(tried[site], o) for site in sites)]
        choices += [one.told for one in chance.sample(others, len(others))][: CHOICES - len(sites)]
    if len(choices) < FEWEST:
        return None
    site = chance.choice(sites)
    setting = shapes_in_words(study.contract, study.inputs[at])
    asks = f"What happens if {setting}?" if setting else "What happens?"
    if study.has_modes:
        asks += " The module is in evaluation mode, unless a choice says otherwise."
    return site, _question(study, site, asks, tried[site], tried[site].told, choices, chance)


def _by_result(
    study: Study, tried: Tried, chance: random.Random
) -> tuple[wire.Site, Question] | None:
    """A question whose choices are results for a small input."""
    number = chance.randrange(len(study.readable))
    shown = {site: outcome.shown[number] for site, outcome in tried.items() if outcome.shown}
    fitting = [site for site in shown if shown[site]]
    chance.shuffle(fitting)
    sites = apart(fitting, lambda one, other: differ(shown[one], shown[other]), CHOICES)
    choices = [shown[one] for one in sites]
    if 1 < len(sites) < CHOICES:
        others = [study.result_of(study.readable[number]), RAISES]
        choices += [one for one in others if one and all(differ(one, c) for c in choices)]
    if len(choices) < FEWEST:
        return None
    site = chance.choice(sites)
    choices = choices[:CHOICES]
    rounded = ", rounded to two digits" if any("." in one.rstrip(".") for one in choices) else ""
    values = values_in_words(study.contract, study.readable[number])
    asks = f"For {values}, what is the result then{rounded}?"
    return site, _question(study, site, asks, tried[site], shown[site], choices, chance)


def _question(
    study: Study,
    site: wire.Site,
    asks: str,
    outcome: Outcome,
    reply: str,
    choices: list[str],
    chance: random.Random,
) -> Question:
    chance.shuffle(choices)
    place = site.place
    lines = (
        f"Line {place.line}"
        if site.end_line == place.line
        else (f"Lines {place.line} to {site.end_line}")
    )
    verb = "is" if site.end_line == place.line else "are"
    seen = outcome.ran if reply in (outcome.told, RAISES) else f"The result was {reply}."
    return Question(
        "leave out" if site.kind == "leave out" else "change",
        study.name,
        f"{lines} of {place.within} {verb} changed as shown. {asks}",
        lines_at(study.sources, site),
        reply,
        seen,
        FOLLOW_UP[outcome.kind],
        choices,
        lines_at(study.sources, site, site.new),
    )
