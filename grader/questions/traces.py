"""Questions on which positions of the result change with a position of an argument."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from grader.course.forms import specs_of
from grader.feedback.behaviour import BATCH, LEADING, axis_named, label_of
from grader.questions.question import Question
from grader.questions.study import Study

FEWEST = 3  # positions


def about_positions(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on an axis that an argument and the result share."""
    signature = study.contract.forward or study.contract.call
    out = next(specs_of(signature.returns), None)
    reaches = {fact: holds for fact, holds in study.facts.items() if fact.kind == "reaches"}
    groups = sorted({(fact.argument, fact.at[0], fact.at[2]) for fact in reaches})
    chance.shuffle(groups)
    for number, axis, over in groups:
        parameter = signature.parameters[number]
        label = label_of(parameter.specs[0] if parameter.specs else None, axis)
        if label != label_of(out, over) or label in (LEADING, BATCH):
            continue
        pairs = {
            (f.at[1], f.at[3]): holds
            for f, holds in reaches.items()
            if (f.argument, f.at[0], f.at[2]) == (number, axis, over)
        }
        positions = sorted({to for _, to in pairs})
        if len(positions) < FEWEST or positions != [*range(len(positions))]:
            continue
        of = chance.choice(positions[1:-1])
        if any((of, to) not in pairs for to in positions):
            continue
        changed = [to for to in positions if pairs[of, to]]
        sets = {
            "Only at this position.": [of],
            "At this position and all later ones.": positions[of:],
            "At this position and all earlier ones.": positions[: of + 1],
            "At all positions.": positions,
        }
        reply = next((words for words, some in sets.items() if some == changed), None)
        if reply is None:
            continue
        choices: Sequence[str] = [*sets]
        yield Question(
            "rows",
            study.name,
            f"Only the numbers of `{parameter.name}` at position {of} of {axis_named(label)} "
            f"change (positions count from 0, up to {positions[-1]}). Where along "
            f"{axis_named(label)} does the result change?",
            [],
            reply,
            f"The result changed at the positions {changed}.",
            "Which line of your answer decides that?",
            [*choices],
        )
