"""Texts to read after an exercise is solved, from ``afterwards/UNIT.toml`` next to the stubs.

The texts explain the solved exercise. They contain no code of a solution, since students can read
them before they solve the exercise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from grader.course.course import Course
from grader.records.faults import CallError


class Afterwards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The three short texts to read after an exercise is solved."""

    why: str  # why the solution works
    another_way: str  # another way to the same result, without code: words, names of functions
    try_it: str  # a change to make, with the effect to expect

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Pairs of heading and text, in reading order; each text is a paragraph."""
        texts = (self.why, self.another_way, self.try_it)
        return tuple(zip(HEADINGS, (" ".join(text.split()) for text in texts), strict=True))


HEADINGS = ("Why it works", "Another way", "Try it")


def afterwards(course: Course, name: str) -> Afterwards | None:
    """The texts to read after this exercise, or None if its course has none.

    Raises `CallError` if the file exists but cannot be read.
    """
    return _texts(course.afterwards_file(course.unit_of[name])).get(name)


def _texts(path: Path) -> Mapping[str, Afterwards]:
    if not path.is_file():
        return {}
    try:
        texts: Mapping[str, Afterwards] = msgspec.toml.decode(
            path.read_bytes(), type=Mapping[str, Afterwards]
        )
    except (OSError, msgspec.DecodeError) as error:
        raise CallError(f"{path}: {error}") from None
    return texts
