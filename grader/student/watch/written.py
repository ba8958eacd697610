"""Which answers a save has changed: each exercise's definitions, before and after it.

Texts only, read line by line: a file that does not parse says which definition was written in, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from grader.course.course import Course
from grader.intake.files import read_files
from grader.intake.own import own_files
from grader.student.resetting import NOT_INDENTED

OPENING = re.compile(r"(?:async\s+def|def|class)\s+(\w+)")

Written = Mapping[str, tuple[str, ...]]  # by exercise: its definitions, in all files of the student


class AnswersWritten:
    """What the student has written so far."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._seen = _written(course)

    def changed(self) -> tuple[str, ...]:
        """The exercises whose definitions changed since the last time, in the course's order."""
        before, self._seen = self._seen, _written(self._course)
        return tuple(
            name for name in self._course.exercises if before.get(name) != self._seen.get(name)
        )


def _written(course: Course) -> Written:
    found: dict[str, tuple[str, ...]] = {}
    sources, _ = read_files(own_files(course))
    for source in sources:
        for cell in source.cells:
            for name, text in _definitions(cell):
                found[name] = (*found.get(name, ()), text)
    return found


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    """The name and the lines of each definition that is not indented, without what follows it."""
    name, lines = "", list[str]()
    for line in (*text.splitlines(), "end"):
        if not NOT_INDENTED.match(line):
            lines.append(line)
            continue
        if name:
            while not lines[-1].strip() or lines[-1].startswith("#"):  # it belongs to what follows
                del lines[-1]
            yield name, "\n".join(lines)
        opening = OPENING.match(line)
        name, lines = (opening[1] if opening else ""), [line]
