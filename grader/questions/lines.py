"""Questions on which of several changes has an effect."""

from __future__ import annotations

import random
from collections.abc import Iterator

from grader import wire
from grader.questions.changes import FOLLOW_UP, Tried, conditions, in_words
from grader.questions.inputs import shapes_in_words
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import LABELS, OMITTED, files_of, line_of, lines_at, marked

FEWEST = 4  # changes: their letters say nothing, so of three, a guess is right too often
DRAWS = 16  # sets of changes


def about_lines(
    study: Study, tried: Tried, chance: random.Random
) -> Iterator[tuple[wire.Site, Question]]:
    """Questions on changes of different lines, of which one has an effect; with that change."""
    short = {site: outcome for site, outcome in tried.items() if _is_short(site)}
    for _ in range(DRAWS if short else 0):
        at, found = in_words(short, chance)
        sites = [site for site, _ in found]
        if len(sites) < FEWEST or len({*map(line_of, sites)}) < len(sites):
            continue
        if not all(map(study.is_sure, sites)):
            continue
        site, outcome = chance.choice(found)
        told = outcome.told
        if not all(study.is_general(one, told if one is site else "", [told]) for one in sites):
            continue
        setting = shapes_in_words(study.contract, study.inputs[at])
        labels = dict(zip(chance.sample(sites, len(sites)), LABELS, strict=False))
        sites.sort(key=line_of)
        question = Question(
            "line",
            study.name,
            (f"Suppose that {setting}. " if setting else "")
            + f'One of these changes of {files_of(sites)} has this effect: "{told}" Which one?'
            + conditions(study, sites),
            [line for one in sites for line in lines_at(study.sources, one)],
            _choice(labels[site]),
            f"The {len(sites)} changes were run one by one; only this one had the effect.",
            FOLLOW_UP["behaviour"],
            [_choice(label) for label in labels.values()],
            [line for one in sites for line in marked(study.sources, one, one.new, labels[one])],
        )
        yield site, question


def _is_short(site: wire.Site) -> bool:
    """Whether a change is of one line, which it does not leave out: that would stand out."""
    return site.end_line == site.place.line and "\n" not in site.new and site.new != OMITTED


def _choice(label: str) -> str:
    return f"The change {label}"
