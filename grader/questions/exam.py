"""Chooses the questions of an oral exam on one submission, over exercises and kinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader import wire
from grader.intake import Submission
from grader.questions.question import Question
from grader.records.rows import Row

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.questions.study import Study

EACH = 2  # questions on an exercise, if there are enough exercises
LONG = 8  # lines of an answer; longer answers are asked about no more often
SPREAD = 0.5  # an answer may come before another one that has up to twice as many lines
SPARE = 1  # questions that are found beside those that are asked, to choose the better ones
NONE_FOUND = "no question was found"


@dataclass(frozen=True)
class Candidate:
    """A student to examine, the graded text, and the exercises that it solves."""

    student: str
    submission: Submission
    solved: tuple[str, ...]
    seed: str

    def __str__(self) -> str:
        return self.student


@dataclass(frozen=True)
class Exam:
    """The questions for a student, in the order of the exercises."""

    student: str
    questions: tuple[Question, ...] = ()
    unasked: Mapping[str, str] = field(default_factory=dict)  # exercises, and why none was found


def candidate_of(row: Row, submission: Submission | None, exercises: Collection[str]) -> Candidate:
    """The candidate whose row this is, to be examined on some exercises.

    The seed is secret: a student could otherwise find out the questions in advance. It is that of
    the grading, and the student's name.
    """
    assert row.grade is not None
    solved = [e.name for e in row.grade.exercises if e.solved and e.name in exercises]
    if submission is None:
        submission, solved = Submission(row.grade.submission, ()), []
    seed = f"{row.grade.seed} {row.student}"
    return Candidate(row.student, submission, tuple(solved), seed)


def examine(count: int, desk: Desk, candidate: Candidate) -> Exam:
    """At most `count` questions for a student; the same each time.

    Longer answers come first, in part by chance. Questions of different kinds are preferred. At
    most one question on each exercise can be answered by running the unchanged answer.
    """
    # Imported here: the process that hands out candidates to others needs no torch.
    from grader.questions.choice import choose
    from grader.questions.study import Unfit, study

    chance = random.Random(f"{candidate.seed} exam")
    lengths = _lengths(desk, candidate)
    ranks = {
        name: min(length, LONG) * chance.uniform(SPREAD, 1) for name, length in lengths.items()
    }
    each = max(EACH, -(-count // max(len(ranks), 1)))
    studies: dict[str, Study] = {}
    asked: dict[str, Sequence[Question]] = {}
    unasked: dict[str, str] = {}

    def left() -> int:
        return count - sum(map(len, asked.values()))

    def found(name: str, most: int) -> Sequence[Question]:
        questions = choose(studies[name], most + SPARE, candidate.seed)
        others = [one for other, some in asked.items() if other != name for one in some]
        return _best(questions, others, most)

    for name in sorted(ranks, key=ranks.__getitem__, reverse=True):
        if not left():
            break
        try:
            studies[name] = study(desk, candidate.submission, name)
        except Unfit as why:
            unasked[name] = str(why)
        else:
            asked[name] = found(name, min(each, left()))
    for name in studies:  # if there are too few exercises, ask more on each
        if left():
            asked[name] = max(asked[name], found(name, len(asked[name]) + left()), key=len)
    unasked |= {name: NONE_FOUND for name, some in asked.items() if not some}
    questions = [question for name in candidate.solved for question in asked.get(name, ())]
    return Exam(candidate.student, tuple(questions), unasked)


def _best(found: Sequence[Question], others: Sequence[Question], most: int) -> Sequence[Question]:
    """The best of the questions on an exercise, if `others` are asked on other exercises."""
    from grader.questions.outcomes import NUMBERS

    kinds = Counter(question.kind for question in others)
    # A reply that says what changes is better than one that says only that something does.
    return sorted(found, key=lambda one: (one.reply == NUMBERS, kinds[one.kind]))[:most]


def _lengths(desk: Desk, candidate: Candidate) -> dict[str, int]:
    """The number of lines of each solved answer that have something to ask about."""
    from grader.course.tensors import Make
    from grader.sandbox.session import StudentLost

    found: dict[str, int] = {}
    try:
        with desk.seat(candidate.submission, candidate.solved) as seat:
            for name in candidate.solved:
                seat.begin(Make(desk.course.seed, name, "exam"))
                outcome = seat.session.run(wire.Locate(name))[-1]
                sites = outcome.sites if isinstance(outcome, wire.Located) else []
                found[name] = len({(s.place.file, s.place.cell, s.place.line) for s in sites})
    except StudentLost:  # the answers that were read so far can be asked about
        pass
    return found
