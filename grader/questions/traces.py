"""Questions on which positions of the result change with a position of an argument."""

from __future__ import annotations

import random
from collections.abc import Iterator

from grader.course.forms import specs_of
from grader.feedback.behaviour import BATCH, axis_named, label_of
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.words import is_named

FEWEST = 3  # positions
ONLY = "Only this position."
RARELY = 0.6  # how often this reply, which is frequent and says little, is left out


def about_positions(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on an axis that an argument and the result share."""
    signature = study.contract.forward or study.contract.call
    out = next(specs_of(signature.returns), None)
    reaches = {fact: holds for fact, holds in study.facts.items() if fact.kind == "reaches"}
    groups = sorted({(fact.argument, fact.at[0], fact.at[2]) for fact in reaches})
    chance.shuffle(groups)
    for number, axis, over in groups:
        parameter = signature.parameters[number]
        spec = parameter.specs[0] if parameter.specs else None
        label = label_of(spec, axis)
        if label != label_of(out, over) or label == BATCH:
            continue
        if not (is_named(spec, label) and is_named(out, label)):
            continue
        pairs = {
            (f.at[1], f.at[3]): holds
            for f, holds in reaches.items()
            if (f.argument, f.at[0], f.at[2]) == (number, axis, over)
        }
        positions = sorted({to for _, to in pairs})
        if len(positions) < FEWEST or positions != [*range(len(positions))]:
            continue
        at = chance.choice(positions[1:-1])
        forward = chance.random() < 0.5  # else the same is asked about a position of the result
        ways = [(at, other) if forward else (other, at) for other in positions]
        if any(pair not in pairs for pair in ways):
            continue
        found = [other for other, pair in zip(positions, ways, strict=True) if pairs[pair]]
        sets = {
            ONLY: [at],
            "This position and all later ones.": positions[at:],
            "This position and all earlier ones.": positions[: at + 1],
            "All positions.": positions,
        }
        reply = next((words for words, some in sets.items() if some == found), None)
        if reply is None or (reply == ONLY and chance.random() < RARELY):
            continue
        name, along = f"`{parameter.name}`", f"the axis {axis_named(label)}"
        count = f"(positions count from 0, up to {positions[-1]})"
        yield Question(
            "rows",
            study.name,
            f"Only the numbers of {name} at position {at} of {along} change {count}. Which "
            f"positions of the result change along {along}?"
            if forward
            else f"Look at position {at} of {along} in the result {count}. On which positions of "
            f"{name} along {along} does it depend?",
            [],
            reply,
            f"{name} was changed at one position after the other; these counted: {found}.",
            "Which line of your answer decides that?",
            [*sets],
        )
