"""Questions on which of several changes has an effect."""

from __future__ import annotations

import random
from collections.abc import Iterator

from grader import wire
from grader.questions.changes import FOLLOW_UP, Tried
from grader.questions.outcomes import NOTHING, Outcome
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import OMITTED, lines_at

FEWEST, MOST = 3, 4  # changes to choose from


def about_lines(
    study: Study, tried: Tried, chance: random.Random
) -> Iterator[tuple[wire.Site, Question]]:
    """Questions on changes of different lines, of which one has an effect; with that change."""
    short = {site: outcome for site, outcome in tried.items() if _is_short(site)}
    effects = [(site, e) for site, outcome in short.items() for e in _effects(outcome)]
    chance.shuffle(effects)
    for site, effect in effects:
        lines = {_line(site)}
        shown = [site]
        for other in chance.sample([*short], len(short)):
            surely = effect in short[other].false or short[other].kind == "nothing"
            if surely and _line(other) not in lines and len(shown) < MOST:
                lines.add(_line(other))
                shown.append(other)
        choices = {one: _choice(study, one) for one in sorted(shown, key=_line)}
        if len(shown) < FEWEST or len({*choices.values()}) < len(shown):
            continue
        if not all(map(study.is_sure, shown)):
            continue
        question = Question(
            "line",
            study.name,
            f'One of these changes has this effect: "{effect}" Which one?',
            [line for one in choices for line in lines_at(study.sources, one)],
            choices[site],
            f"The {len(shown)} changes were run one by one; only this one had the effect.",
            FOLLOW_UP["behaviour"],
            [*choices.values()],
        )
        yield site, question


def _effects(outcome: Outcome) -> list[str]:
    return sorted(outcome.true - {NOTHING})


def _is_short(site: wire.Site) -> bool:
    """Whether a change is of one line, which it does not leave out: that would stand out."""
    return site.end_line == site.place.line and "\n" not in site.new and site.new != OMITTED


def _line(site: wire.Site) -> tuple[str, int, int]:
    return site.place.file, site.place.cell, site.place.line


def _choice(study: Study, site: wire.Site) -> str:
    """A change in words."""
    (line,) = lines_at(study.sources, site, site.new)
    return f"Line {line.line} becomes `{line.text.strip()}`"
