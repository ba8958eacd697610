"""Chooses the questions to ask about an answer, by a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from grader import wire
from grader.questions.changes import about_changes
from grader.questions.lines import about_lines
from grader.questions.outcomes import Outcome
from grader.questions.question import Question
from grader.questions.shapes import about_shapes
from grader.questions.study import Study
from grader.questions.texts import line_of
from grader.questions.traces import about_parts

MOST_TRIED = 8  # changes that are run for a set of questions; more if too few replies differ
RUNNABLE: Sequence[Callable[[Study, random.Random], Iterator[Question]]] = (
    about_shapes, about_parts,
)  # fmt: skip
SHARE_OF_LINES = 0.35
SPARE = 2  # changes of each kind to ask about: another run of one may not agree


def choose(study: Study, count: int, seed: str) -> list[Question]:
    """At most `count` questions: of two kinds at least if there are, with different replies.

    At most one of them can be answered by running the unchanged answer, and of at most one is the
    reply that nothing changes. The same seed gives the same questions.
    """
    chance = random.Random(f"{seed} {study.name}")
    found = _runnable(study, chance)[: count - 1]
    tried = _try(study, chance, count)
    if len(found) < count > 1 and chance.random() < SHARE_OF_LINES:
        found += [question for _, question in islice(about_lines(study, tried, chance), 1)]
    about = about_changes(study, tried, chance)
    # At first only about other lines than the questions before, and of two kinds.
    for new_line, new_kind in ((True, True), (False, True), (False, False)):
        for site, question in about:
            if len(found) >= count:
                break
            if new_kind and {one.kind for one in found} == {question.kind}:
                continue
            if not _adds(question, found, new_line=new_line) or not study.is_sure(site):
                continue
            if study.is_general(site, question.reply, question.choices):
                found.append(question)
    return found


def _try(study: Study, chance: random.Random, count: int) -> dict[wire.Site, Outcome]:
    """Changes of lines by chance, and what they do; the first of each line come first."""
    sites = [site for site in study.sites if site.kind != "value"]
    kinds = {site.kind for site in sites}
    chance.shuffle(sites)
    turns: dict[tuple[str, int, int], int] = {}
    order: dict[wire.Site, int] = {}
    for site in sites:
        line = line_of(site)
        order[site] = turns[line] = turns.get(line, -1) + 1
    tried: dict[wire.Site, Outcome] = {}
    for number, site in enumerate(sorted(sites, key=order.__getitem__)[: 3 * MOST_TRIED], start=1):
        if (outcome := study.outcome(site)) is not None:
            tried[site] = outcome
        if number % MOST_TRIED == 0:
            about = about_changes(study, tried, chance)
            replies = {question.reply for _, question in about}
            asked = Counter(site.kind for site in {site for site, _ in about})
            if len(replies) > count and all(asked[kind] >= SPARE for kind in kinds):
                break
    return tried


def _runnable(study: Study, chance: random.Random) -> list[Question]:
    """A question that running the answer would show, of a kind by chance."""
    for make in chance.sample(RUNNABLE, len(RUNNABLE)):
        if (question := next(make(study, chance), None)) is not None:
            return [question]
    return []


def _adds(question: Question, found: Sequence[Question], *, new_line: bool) -> bool:
    """Whether a question has another reply than those before.

    With `new_line`, it is also on another line, and has other choices: the reply to a question with
    the same choices would leave fewer of them.
    """
    lines = {(line.file, line.cell, line.line) for one in found for line in one.lines}
    own = {(line.file, line.cell, line.line) for line in question.lines}
    fresh = question.reply not in [one.reply for one in found]
    same_change = any(one.instead and one.instead == question.instead for one in found)
    same_choices = any({*one.choices} == {*question.choices} for one in found)
    new = own.isdisjoint(lines) and not same_choices
    return fresh and not same_change and (new or not new_line)
