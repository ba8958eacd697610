"""What a student reads once an exercise is solved: ``afterwards/UNIT.toml`` beside the stubs.

It explains what was just written, and holds no code of a solution: a bundle gives it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from grader.course.course import Course
from grader.records.faults import CallError


class Afterwards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Three short texts about one exercise."""

    why: str  # why it works
    another_way: str  # other roads to the same result, in words and names of functions
    try_it: str  # one change to make, and what to watch for

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Heading and text of each, in reading order; a text is one paragraph."""
        texts = (self.why, self.another_way, self.try_it)
        return tuple(zip(HEADINGS, (" ".join(text.split()) for text in texts), strict=True))


HEADINGS = ("Why it works", "Another way", "Try it")


def afterwards(course: Course, name: str) -> Afterwards | None:
    """What there is to read after this exercise, or None where its course has no such text.

    Raises `CallError` for a file that is there and not right.
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
