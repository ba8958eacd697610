"""Chooses the questions to ask about an answer, by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from grader import wire
from grader.questions.changes import about_changes
from grader.questions.lines import about_lines
from grader.questions.predictions import about_entries
from grader.questions.question import Question
from grader.questions.shapes import about_shapes
from grader.questions.study import NOTHING, Outcome, Study
from grader.questions.traces import about_positions

MOST_TRIED = 12  # changes that are run for a set of questions
Generator = Callable[[Study, random.Random], Iterator[Question]]
RUNNABLE: tuple[Generator, ...] = (about_shapes, about_entries, about_positions)


def choose(study: Study, count: int, seed: str) -> list[Question]:
    """At most `count` questions: of two kinds at least, and on different lines.

    At most one of them can be answered by running the unchanged answer, and of at most one is the
    reply that nothing changes. The same seed gives the same questions.
    """
    chance = random.Random(f"{seed} {study.name}")
    found = _runnable(study, chance)[: count - 1]
    tried: dict[wire.Site, Outcome] = {}
    spare: list[Question] = []
    for number, (site, outcome, question) in enumerate(about_changes(study, chance), start=1):
        tried[site] = outcome
        if len(found) < count and _adds(question, found):
            found.append(question)
        elif len(_kinds(found)) == 1 and question.kind != found[0].kind and len(found) == count:
            found[-1] = question
        else:
            spare.append(question)
        if number >= MOST_TRIED or (len(found) >= count and len(_kinds(found)) > 1):
            break
    if len(found) >= count > 1 and chance.random() < SHARE_OF_LINES:
        found = [*found[:1], *islice(about_lines(study, tried, chance), 1), *found[1:]][:count]
    for question in spare:
        if len(found) < count and (question.reply != NOTHING or NOTHING not in _replies(found)):
            found.append(question)
    return found


def _kinds(questions: Sequence[Question]) -> set[str]:
    return {question.kind for question in questions}


def _replies(questions: Sequence[Question]) -> list[str]:
    return [question.reply for question in questions]


SHARE_OF_LINES = 0.5


def _runnable(study: Study, chance: random.Random) -> list[Question]:
    """A question that running the answer would show, of a kind by chance."""
    for make in chance.sample(RUNNABLE, len(RUNNABLE)):
        if (question := next(make(study, chance), None)) is not None:
            return [question]
    return []


def _adds(question: Question, found: list[Question]) -> bool:
    """Whether a question is on another line than those before, and has another reply."""
    lines = {(line.file, line.cell, line.line) for one in found for line in one.lines}
    own = {(line.file, line.cell, line.line) for line in question.lines}
    return own.isdisjoint(lines) and question.reply not in _replies(found)
