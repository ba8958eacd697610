"""Questions on a change: what happens if a part of the answer is left out or changed.

Each choice is what one of several changes of this answer does, and chance decides which of these
changes the question is about. So the choices alone do not show which of them is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from grader import wire
from grader.questions.inputs import shapes_in_words, values_in_words
from grader.questions.outcomes import (
    NOTHING,
    NUMBERS,
    RAISES,
    Outcome,
    excludes,
    positions_in_words,
)
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import differ, lines_at

FEWEST, CHOICES = 3, 5  # choices of a question
ROUNDED = ", rounded to two digits"
DRAWS = 40  # questions that are drawn, for the sake of those that others do not exclude
BY_RESULT = 0.2  # how often a change is asked about by a result, where that is possible
# The rank of a change by what it does, the most telling first; chance adds at most `NOISE`.
NOISE = 2.5
TELLING = {"behaviour": 0, "edge": 0, "shape": 1, "numbers": 1, "nothing": 1, "raises": 2}
HIDDEN = ("nothing", "edge")  # kinds of changes that show on few inputs, or on none
RAN = "The changed answer, on inputs of the public checks and on small changes of them."
FOLLOW_UP = {
    "raises": "Which two shapes or types meet there, and why do they not fit?",
    "shape": "What would notice the other shape first: a later line, or the code that calls this?",
    "behaviour": "Why? Show it on a small example of your own.",
    "edge": "Which inputs of practice are like that?",
    "numbers": "Which numbers on the way change then, and why?",
    "nothing": "Then why is it there?",
}
Tried = Mapping[wire.Site, Outcome]  # changes that were run, and what they do
T = TypeVar("T")


@dataclass(frozen=True)
class _Drawn:
    """A question on a change."""

    site: wire.Site
    question: Question
    is_filled: bool  # whether too few changes exclude each other to make all choices


def about_changes(
    study: Study, tried: Tried, chance: random.Random
) -> Sequence[tuple[wire.Site, Question]]:
    """Questions on changes that were tried, each with its change; a change may come again.

    Those with a choice that no change has come last: such a choice is never right.
    """
    drawn: list[_Drawn] = []
    for _ in range(DRAWS if tried else 0):
        ways = [_by_result, _in_words] if chance.random() < BY_RESULT else [_in_words, _by_result]
        drawn += islice(filter(None, (way(study, tried, chance) for way in ways)), 1)
    drawn.sort(key=lambda one: one.is_filled)
    return [(one.site, one.question) for one in drawn]


def in_words(tried: Tried, chance: random.Random) -> tuple[int, list[tuple[wire.Site, Outcome]]]:
    """Changes that an input tells apart, and the number of this input.

    The sentence on one of them is false of the others.
    """
    at = tried[chance.choice([*tried])].at
    ranked: list[tuple[float, wire.Site, Outcome]] = []
    for site, outcome in tried.items():
        if outcome.at != at and outcome.kind not in HIDDEN:
            continue
        if outcome.told == NUMBERS and any(outcome.shown):
            continue  # results show better how numbers differ
        for place, sentence in enumerate(outcome.sentences):
            told = replace(outcome, told=sentence)
            ranked.append((_rank(told) + place / 2 + NOISE * chance.random(), site, told))
    ranked.sort(key=lambda one: one[0])
    fitting = [(site, told) for _, site, told in ranked]
    return at, apart(fitting, lambda one, other: excludes(one[1], other[1]), CHOICES)


def apart(of: Collection[T], excludes: Callable[[T, T], bool], most: int) -> list[T]:
    """The first of these, each of which excludes all others in both directions."""
    found: list[T] = []
    for one in of:
        if len(found) < most and all(excludes(one, o) and excludes(o, one) for o in found):
            found.append(one)
    return found


def _rank(outcome: Outcome) -> int:
    """How little a change tells."""
    return 2 if outcome.told == NUMBERS else TELLING[outcome.kind]


def _in_words(study: Study, tried: Tried, chance: random.Random) -> _Drawn | None:
    """A question whose choices are sentences."""
    at, found = in_words(tried, chance)
    choices = [outcome.told for _, outcome in found]
    if len(found) > 1:
        others = [Outcome("raises", RAISES), *_rare(study, at, chance)]
        others = [o for o in others if all(excludes(outcome, o) for _, outcome in found)]
        choices += [one.told for one in others[: max(FEWEST - len(found), 0)]]
    if len(choices) < FEWEST:
        return None
    site, outcome = chance.choice(found)
    setting = shapes_in_words(study.contract, study.inputs[at])
    asks = f"What happens if {setting}?" if setting else "What happens?"
    asks += conditions(study, [site])
    question = _question(study, site, asks, outcome, outcome.told, choices, chance)
    return _Drawn(site, question, len(found) < FEWEST)


def conditions(study: Study, sites: Collection[wire.Site]) -> str:
    """A sentence on what decides the effect of some changes."""
    adds_bias = any(
        "True" in site.new and "bias" in line.text
        for site in sites
        for line in lines_at(study.sources, site)
    )
    said = {
        "the module is in evaluation mode": study.has_modes,
        "the weights are as before, and a new bias is not 0": adds_bias,
    }
    so = ", and ".join(words for words, is_so in said.items() if is_so)
    return f" Unless it is said otherwise, {so}." if so else ""


def _rare(study: Study, at: int, chance: random.Random) -> list[Outcome]:
    """What no change that was tried may do, and changes of other answers do."""
    told = positions_in_words(study.contract, study.values[at])
    told = told or ([] if study.readable else [NUMBERS])
    found = [Outcome("nothing", NOTHING), *(Outcome("numbers", one) for one in told)]
    return chance.sample(found, len(found))


def _by_result(study: Study, tried: Tried, chance: random.Random) -> _Drawn | None:
    """A question whose choices are results for a small input."""
    for number in chance.sample(range(len(study.readable)), len(study.readable)):
        usual = study.result_of(study.readable[number])
        if "," not in usual:  # of one number
            continue
        shown = {site: outcome.shown[number] for site, outcome in tried.items() if outcome.shown}
        # An input that hides what a change does is none to ask by.
        fitting = [
            site
            for site in shown
            if shown[site] and (differ(shown[site], usual) or tried[site].kind in HIDDEN)
        ]
        chance.shuffle(fitting)
        sites = apart(fitting, _differing(shown), CHOICES)
        choices = [shown[one] for one in sites]
        if len(sites) > 1:
            others = [one for one in (RAISES, usual) if all(differ(one, c) for c in choices)]
            choices += others[: max(FEWEST - len(sites), 0)]
        if len(choices) < FEWEST:
            continue
        site = chance.choice(sites)
        rounded = ROUNDED if any("." in one for one in choices if one != RAISES) else ""
        values = values_in_words(study.contract, study.readable[number])
        asks = f"For {values}, what is the result then{rounded}?"
        question = _question(study, site, asks, tried[site], shown[site], choices, chance)
        return _Drawn(site, question, len(sites) < FEWEST)
    return None


def _differing(shown: Mapping[wire.Site, str]) -> Callable[[wire.Site, wire.Site], bool]:
    return lambda one, other: differ(shown[one], shown[other])


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
    # Without its number: the order of lines tells which step of the exercise a line is.
    lines = "The line" if site.end_line == place.line else "The lines"
    verb = "is" if site.end_line == place.line else "are"
    seen = "" if reply == RAISES else f"The result was {reply}."
    # On a readable input, a change may do something else than on the input of `outcome`.
    by_result = "raises" if reply == RAISES else "numbers"
    kind = outcome.kind if reply == outcome.told or outcome.kind in HIDDEN else by_result
    return Question(
        "leave out" if site.kind == "leave out" else "change",
        study.name,
        f"{lines} of {place.within} {verb} changed as shown. {asks}",
        lines_at(study.sources, site),
        reply,
        (outcome.ran if reply == outcome.told else seen) or RAN,
        FOLLOW_UP[kind],
        choices,
        lines_at(study.sources, site, site.new),
    )
