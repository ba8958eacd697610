"""What a test asked before, what it was answered, and how it ended then.

A test is a function of its seeded inputs and of a student's answers. One that gets the same
answers to the same questions, byte by byte, as in an earlier submission, ends as it did then:
nothing is decoded, no reference computed, nothing compared. The student's code is called all the
same. Where an answer differs, the test is run, and what was answered so far is not asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from grader import wire
from grader.grading.diagnosis import weight
from grader.proxies.calls import Calls, Heard
from grader.records.grade import Picture, TestStatus

MOST_BYTES = 2**28  # in all, about; then what is known stays, and nothing is added
A_MOMENT = 500  # bytes that it takes by itself
MOST_ANSWERS = 64  # to one question
LASTING = ("passed", "failed", "error")  # what depends on answers alone


@dataclass(frozen=True)
class Ending:
    """How one case of a test ended, and what its calls gave, for a diagnosis."""

    status: TestStatus
    message: str | None = None
    picture: Picture | None = None
    heard: tuple[Heard, ...] = ()


Key = tuple[str, str, str]  # of a case: the exercise, the test's key, the case's label


class Memory:
    """What `Calls` knows of a submission from the tests before, at one moment."""

    def __init__(self, calls: Calls) -> None:
        self._found = calls.found
        self._uses = {name: len(uses) for name, uses in calls.uses.items()}
        self._changed = {name: frozenset(places) for name, places in calls.changed.items()}
        self._habits = dict(calls.habits)

    def of(self, names: frozenset[str]) -> Hashable:
        """All that a test which asks for these exercises could know of them."""
        return tuple(
            (_looks(self._found.get(name)), self._changed.get(name), self._habits.get(name))
            for name in sorted(names)
        )

    def added(self, calls: Calls) -> _Traces:
        """What has come since."""
        uses = {name: tuple(told[self._uses.get(name, 0) :]) for name, told in calls.uses.items()}
        changed = {name: frozenset(places) for name, places in calls.changed.items()}
        return _Traces(
            calls.session.printed,
            {name: new for name, new in uses.items() if new},
            {name: new for name, new in changed.items() if new != self._changed.get(name)},
            {name: new for name, new in calls.habits.items() if new != self._habits.get(name)},
        )


@dataclass(frozen=True)
class _Traces:
    """What a case leaves behind, besides its ending."""

    printed: str
    uses: Mapping[str, Sequence[wire.Use]]
    changed: Mapping[str, frozenset[int]]
    habits: Mapping[str, tuple[object, ...]]

    def leave(self, calls: Calls) -> None:
        calls.session.printed = self.printed
        for name, uses in self.uses.items():
            calls.uses.setdefault(name, []).extend(uses)
        for name, places in self.changed.items():
            calls.changed.setdefault(name, set()).update(places)
        calls.habits.update(self.habits)


@dataclass
class _Moment:
    """A moment in a case: what it asks now, and what follows; or how it has ended."""

    question: bytes | None = None
    answers: dict[bytes, _Moment] = field(default_factory=dict)  # by digest
    ending: tuple[Ending, _Traces] | None = None


class Transcripts:
    """The questions and answers of a batch's tests."""

    def __init__(self) -> None:
        # By the exercises that the case asked for, and by what could be known of them.
        self._cases: dict[Key, dict[frozenset[str], dict[Hashable, _Moment]]] = {}
        self._questions: dict[bytes, bytes] = {}  # one copy of each
        self._bytes = 0

    def ending(self, key: Key, calls: Calls, memory: Memory) -> Ending | None:
        """Ask what was asked before, and tell how the case ends if all answers are known.

        If not, they stand ready in the session: the case has to be run. Raises `StudentLost`.
        """
        if not calls.session.on_wire:
            return None
        moment, said = self._beginning(key, memory), []
        while moment is not None and moment.question is not None:
            answer = calls.session.ask(moment.question)
            said.append((moment.question, answer))
            moment = moment.answers.get(_digest(answer))
        if moment is None or moment.ending is None:
            calls.session.recall(said)
            return None
        ending, traces = moment.ending
        traces.leave(calls)
        return ending

    def keep(self, key: Key, calls: Calls, memory: Memory, ending: Ending) -> None:
        """Remember a case that was run; `memory` is what was known before."""
        if ending.status not in LASTING or self._bytes > MOST_BYTES:
            return
        names = frozenset(calls.asked)
        moments = self._cases.setdefault(key, {}).setdefault(names, {})
        moment = moments.setdefault(memory.of(names), _Moment())
        for question, answer in calls.session.tape:
            moment.question = self._kept(question)
            digest = _digest(answer)
            if digest not in moment.answers:
                if len(moment.answers) >= MOST_ANSWERS:
                    return
                moment.answers[digest] = _Moment()
                self._bytes += A_MOMENT
            moment = moment.answers[digest]
        moment.ending = ending, memory.added(calls)
        self._bytes += len(ending.message or "") + sum(map(weight, ending.heard))

    def _beginning(self, key: Key, memory: Memory) -> _Moment | None:
        for names, moments in self._cases.get(key, {}).items():
            if (moment := moments.get(memory.of(names))) is not None:
                return moment
        return None

    def _kept(self, question: bytes) -> bytes:
        kept = self._questions.setdefault(question, question)
        self._bytes += len(question) if kept is question else 0
        return kept


def _looks(found: wire.Found | None) -> bytes:
    """What decides how an exercise is called."""
    return b"" if found is None else msgspec.msgpack.encode((found.arguments, found.forward))


def _digest(answer: bytes) -> bytes:
    return hashlib.blake2b(answer, digest_size=16).digest()
