"""Questions on which line makes a property true."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grader import wire
from grader.questions.question import Question
from grader.questions.study import Outcome, Study, inputs_in_words

FEWEST, MOST = 3, 5  # lines to choose from


def about_lines(
    study: Study, tried: Mapping[wire.Site, Outcome], chance: random.Random
) -> Iterator[Question]:
    """Questions on lines of which exactly one makes a property true, among the changes tried."""
    of_line: dict[tuple[str, int, int], list[Outcome]] = defaultdict(list)
    places: dict[tuple[str, int, int], wire.Place] = {}
    for site, outcome in tried.items():
        key = (site.place.file, site.place.cell, site.place.line)
        places.setdefault(key, site.place)
        of_line[key].append(outcome)
    effects: Sequence[str] = sorted(
        {s for some in of_line.values() for o in some for s in o.changed}
    )
    for effect in effects:
        guilty = [key for key, some in of_line.items() if any(effect in o.changed for o in some)]
        free = [
            key
            for key, some in of_line.items()
            if all(effect not in o.changed and o.kind in ("behaviour", "numbers") for o in some)
        ]
        texts = {places[key].text for key in (*guilty, *free)}
        if len(guilty) != 1 or len(free) < FEWEST - 1 or len(texts) < len(guilty) + len(free):
            continue
        chance.shuffle(free)
        shown = sorted([*guilty, *free[: MOST - 1]])
        yield Question(
            "line",
            study.name,
            "A small change of one of these lines has this effect: "
            f'"{effect}" Small changes of the others do not. Which line is it? '
            f"({inputs_in_words(study, study.inputs[0])}.)",
            [places[key] for key in shown],
            places[guilty[0]].text,
            f"Changes of {len(of_line)} lines were run; only this line's had the effect.",
            "What must be true of the other lines for this line to be enough?",
            [places[key].text for key in shown],
        )
