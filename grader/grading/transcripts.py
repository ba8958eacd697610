"""What one case of a test said and heard, and how it ended; and what need not be run again for it.

A test is a function of its seeded inputs and of a student's answers. One that gets the same
answers to the same questions, byte by byte, as in an earlier submission, ends as it did then:
nothing is decoded, no reference computed, nothing compared. The student's code is called all the
same. Where an answer differs, the test is run, and what was answered so far is not asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import msgspec

from grader import wire
from grader.course.references import Consulted
from grader.feedback.margins import Margin
from grader.grading.diagnosis import kept, weight
from grader.grading.replays import Given
from grader.proxies.calls import Calls, Seen
from grader.records.grade import WRONG, Picture, TestStatus
from grader.sandbox.session import Asked

MOST_BYTES = 2**28  # in all, about; then what is known stays, and nothing is added
MOST_OF_ONE = 2**24  # of one submission: right answers to the whole course ask less than half
A_MOMENT = 500  # bytes that it takes by itself
MOST_ANSWERS = 64  # to one question
LASTING = ("passed", *WRONG)  # what depends on answers alone


Said = Asked | Consulted


@dataclass(frozen=True)
class Transcript:
    """One case of a test on one answer, played to its end."""

    status: TestStatus
    message: str | None = None
    picture: Picture | None = None
    seen: Seen = field(default_factory=Seen)
    # What was asked of the answer and of the references, in that order; only where one listens.
    said: tuple[Said, ...] = ()
    margin: Margin | None = None  # the nearest to a verdict's edge, where they are asked for
    misshapen: bool = False  # a result was not of the shape and dtype that `Returns` says
    recalled: bool = False  # it was run on an earlier answer, and not on this one

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.status == "passed"

    @property
    def given(self) -> Given:
        """What calls gave, for a diagnosis; what depends on more than answers names no mistake."""
        counts = self.status in WRONG
        heard = kept(self.seen.gave()) if counts else ()
        return Given(self.passed, heard, self.seen.used())


CaseKey = tuple[str, str, str, str]  # seed, exercise, the test's key, the case's label


@dataclass
class _Moment:
    """A moment in a case: what it asks now, and what follows; or how it has ended."""

    question: bytes | None = None
    answers: dict[bytes, _Moment] = field(default_factory=dict)  # by digest
    transcript: Transcript | None = None


class Transcripts:
    """The transcripts of a batch's cases, as trees of questions and answers."""

    def __init__(self) -> None:
        # By the exercises that the case asked for, and by what could be known of them.
        self._cases: dict[CaseKey, dict[frozenset[str], dict[Hashable, _Moment]]] = {}
        self._questions: dict[bytes, bytes] = {}  # one copy of each
        self._bytes = 0
        self._latest: Calls | None = None  # a submission's, which has added so many bytes
        self._of_latest = 0

    def find(self, key: CaseKey, calls: Calls) -> Transcript | None:
        """Ask what was asked before; the transcript of the case if all answers are known.

        If not, they stand ready in the session: the case has to be run. Raises `StudentLost`.
        """
        moment, said = self._beginning(key, calls), []
        if moment is None or not calls.session.on_wire:
            return None
        while moment is not None and moment.question is not None:
            answer = calls.session.ask(moment.question)
            said.append((moment.question, answer))
            moment = moment.answers.get(_digest(answer))
        if moment is None or moment.transcript is None:
            calls.session.recall(said)
            return None
        return moment.transcript

    def keep(self, key: CaseKey, calls: Calls, transcript: Transcript) -> None:
        """Remember a case that was run, before it counts among the cases that have ended."""
        if transcript.status not in LASTING or not self._has_room(calls):
            return
        names = frozenset(transcript.seen.asked)
        moments = self._cases.setdefault(key, {}).setdefault(names, {})
        moment = moments.setdefault(_at_the_start(calls, names), _Moment())
        for question, answer in calls.session.tape:
            moment.question = self._kept(question)
            digest = _digest(answer)
            if digest not in moment.answers:
                if len(moment.answers) >= MOST_ANSWERS:
                    return
                moment.answers[digest] = _Moment()
                self._bytes += A_MOMENT
            moment = moment.answers[digest]
        # A copy: what a diagnosis does not need is not kept for a whole batch.
        seen = transcript.seen
        gave = [] if transcript.passed else [*kept(seen.gave())]
        bare = replace(seen, heard=gave, made={})
        moment.transcript = replace(transcript, seen=bare, said=(), recalled=True)
        self._bytes += len(transcript.message or "") + sum(map(weight, gave))

    def _has_room(self, calls: Calls) -> bool:
        """Whether what was asked now may be kept: a module may have weights by the million."""
        if calls is not self._latest:
            self._latest, self._of_latest = calls, 0
        asked = {question for question, _ in calls.session.tape}
        # A difference of sets would go through all that is kept, at each case.
        self._of_latest += sum(len(one) for one in asked if one not in self._questions)
        return self._bytes <= MOST_BYTES and self._of_latest <= MOST_OF_ONE

    def _beginning(self, key: CaseKey, calls: Calls) -> _Moment | None:
        for names, moments in self._cases.get(key, {}).items():
            if (moment := moments.get(_at_the_start(calls, names))) is not None:
                return moment
        return None

    def _kept(self, question: bytes) -> bytes:
        kept = self._questions.setdefault(question, question)
        self._bytes += len(question) if kept is question else 0
        return kept


def _at_the_start(calls: Calls, names: frozenset[str]) -> Hashable:
    """All that a case which asks for these exercises could know of them when it begins."""
    before = calls.before
    return tuple(
        (
            _looks(calls.found.get(name)),
            frozenset(before.changed.get(name, ())),
            before.habits.get(name),
        )
        for name in sorted(names)
    )


def _looks(found: wire.Found | None) -> bytes:
    """What decides how an exercise is called."""
    return b"" if found is None else msgspec.msgpack.encode((found.arguments, found.forward))


def _digest(answer: bytes) -> bytes:
    return hashlib.blake2b(answer, digest_size=16).digest()
