"""Describes how a wrong answer behaves, if no known mistake explains it.

A verdict says how the answer differs from right answers: it sees the future, its weights do not sum
to one, it ignores an argument. Authors write no tests for this. `grader.proxies.facts` determines
facts about an answer's behaviour. A fact is reported if the reference and all accepted answers
agree on the fact, and the student's answer differs. Facts change no points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from grader import wire
from grader.course.collection import rung
from grader.course.tensors import Make
from grader.feedback.behaviour import sentences_on
from grader.grading.desk import Desk, Seat
from grader.grading.play import play, seat_of
from grader.grading.rows import Key
from grader.proxies.calls import Seen
from grader.proxies.facts import (
    Example,
    Fact,
    Facts,
    examples,
    facts,
    most_informative,
    uncontradicted,
)
from grader.sandbox.session import StudentCall, StudentLost
from grader.unsandboxed.in_process import unseen_prints

MOST_OTHERS = 2  # other examples on which the reference confirms its facts
# The rungs of the checks that give the example: the first group that has one.
PREFERRED = ({"value"}, {*rung.order} - {"value", "shape"}, {"shape"})


class Behaviour(msgspec.Struct, frozen=True):
    """An example input, and the facts on which all right answers agree for this input.

    `example` is None if no call of a public check can serve as an example.
    """

    example: Example | None
    facts: list[tuple[Fact, bool]]


@dataclass(frozen=True)
class Observed:
    """Sentences on an answer's behaviour, and the public check whose input showed it."""

    sentences: tuple[str, ...]
    test: str  # the check's key
    case: str  # the check's case, in words


def behaves(desk: Desk, seat: Seat, exercise: str) -> Observed | None:
    """How a student's answer behaves differently from right answers; None if nothing is known.

    The answer is called with an input of a public check. Forbidden operations in these calls do not
    count.
    """
    known = right_behaviour(desk, exercise)
    if known is None or known.example is None:
        return None
    make = _make(desk, exercise)
    try:
        theirs = facts(seat.begin(make), exercise, known.example, make)
    except StudentLost:
        return None
    finally:
        seat.calls.seen = Seen()
    said = sentences_on(desk.oracle.contracts[exercise], dict(known.facts), theirs)
    return Observed(tuple(said), known.example.test, known.example.case)


def right_behaviour(desk: Desk, exercise: str) -> Behaviour | None:
    """The facts on which all right answers agree; None if the sheet cannot determine them.

    The facts are about one example, an input of a public check, and other examples do not
    contradict them.
    """
    if desk.sheet is None:
        return None
    live = desk.sheet.replays is not None
    return desk.sheet.once(
        Key("facts", exercise), Behaviour, lambda: _found(desk, exercise) if live else None
    )


def _make(desk: Desk, exercise: str) -> Make:
    return Make(desk.course.seed, exercise, "behaviour")


def _found(desk: Desk, exercise: str) -> Behaviour:
    # Most wrong answers fail a check of values, and pass the checks of shapes.
    found = list(_examples(desk, exercise))
    preferred = ([one for of, one in found if of in rungs] for rungs in PREFERRED)
    example = next(filter(None, map(most_informative, preferred)), None)
    if example is None:
        return Behaviour(None, [])
    right = _true(desk, desk.definitions, exercise, example)
    for accepted in desk.replays.library.of(exercise, "accepted"):
        other = _true(desk, desk.replays.definitions(accepted), exercise, example)
        right = uncontradicted(right, other)
    # Two standardized rows are 1 and -1 whatever they were, which more rows contradict.
    like = [one for _, one in found if one != example and _options(one) == _options(example)]
    for one in like[:MOST_OTHERS]:
        right = uncontradicted(right, _true(desk, desk.definitions, exercise, one))
    return Behaviour(example, sorted(right.items()))


def _examples(desk: Desk, exercise: str) -> Iterator[tuple[str, Example]]:
    """The inputs that public checks pass to the reference, each with the check's rung."""
    for test in desk.tests[exercise]:
        for case in () if test.hidden else test.cases:
            seat = seat_of(desk, desk.definitions)
            seat.session.listens = True
            with warnings.catch_warnings(action="ignore"), unseen_prints():
                calls = play(desk, seat, test, case, words=False).calls
            made = [one.call for one in calls if isinstance(one, StudentCall)]
            for example in examples(exercise, made):
                yield test.rung, msgspec.structs.replace(example, test=test.key, case=case.words)


def _options(example: Example) -> list[Any]:
    """What decides facts beside numbers and sizes: axes, masks, and a module's own arguments."""
    return [example.made_with] + [
        len(value.shape)
        if isinstance(value, wire.TensorData) and value.dtype == "float32"
        else value
        for value in example.arguments
    ]


def _true(desk: Desk, definitions: Mapping[str, Any], exercise: str, example: Example) -> Facts:
    make = _make(desk, exercise)
    with warnings.catch_warnings(action="ignore"), unseen_prints():
        return facts(seat_of(desk, definitions).begin(make), exercise, example, make)
