"""Who of the absent a stranger may be, by names and numbers that are near: never a match."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from grader.intake.names import shown
from grader.records.rows import Person, spellings

CUTOFF = 0.8  # of difflib: "Diana Diaz" is near "Dana Diaz", and "Elif Diaz" is not
SHORTEST = 4  # letters of a name, or digits of a number, that tell something


class Absent:
    """Those who handed in nothing, as they may be spelled."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        """`people` by their keys."""
        self._spelled: dict[str, list[str]] = {}
        self._numbers: dict[str, list[str]] = {}
        for key, person in people.items():
            for name in _names(key, person):
                self._spelled.setdefault(name, []).append(key)
            for number in _numbers(key, person.id):
                self._numbers.setdefault(number, []).append(key)

    def near(self, student: str, person: Person) -> list[str]:
        """The keys of those whom a stranger may be; by the nearest name, or else by numbers.

        `student` is the stranger's key, and `person` what a download tells of them.
        """
        found = [
            (difflib.SequenceMatcher(None, own, name).ratio(), name)
            for own in _names(student, person)
            for name in difflib.get_close_matches(own, self._spelled, n=1, cutoff=CUTOFF)
        ]
        if found:
            return self._spelled[max(found)[1]]
        numbers = _numbers(student, person.id)
        slips = (keys for number, keys in self._numbers.items() if _slips(number, numbers))
        return [*dict.fromkeys(key for keys in slips for key in keys)]


def _names(key: str, person: Person) -> set[str]:
    """All that may be a name, spelled in letters alone, the last name first as well."""
    texts = (shown(text) for text in (key, person.name, person.email.partition("@")[0]))
    words = (re.sub(r"[\W\d_]+", " ", text).split() for text in texts)
    found = {one for own in words for some in _shorter(own) for one in spellings(" ".join(some))}
    return {name for name in found if len(name) >= SHORTEST}


def _shorter(words: list[str]) -> Iterator[list[str]]:
    """A name, and what is left of it where a system knows two of its words."""
    yield words
    if len(words) > 2:
        yield words[:2]
        yield [words[0], words[-1]]


def _numbers(*texts: str) -> set[str]:
    return {n for text in texts for n in re.findall(r"\d+", shown(text)) if len(n) >= SHORTEST}


def _slips(number: str, others: Iterable[str]) -> bool:
    """Whether a digit of one is missing, or two are swapped: with another it is a classmate's."""
    return any(
        (Counter(number) - Counter(other) + (Counter(other) - Counter(number))).total() <= 1
        for other in others
    )
