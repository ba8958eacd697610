"""A submission: the text that a student or a group submitted, as all later rooms see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from grader.wire import SourceText


@dataclass(frozen=True)
class Submission:
    """The text that a student or a group submitted."""

    student: str
    sources: tuple[SourceText, ...]
    problems: tuple[str, ...] = ()  # a line for each unreadable file
    group: tuple[str, ...] = ()  # students who get the grade, unless it is `student` alone
    late: bool = False  # as the learning system marks it
    attempts: int = 1  # the number of submissions; this is the last of them
    submitted: datetime | None = None  # in UTC
    by_table: bool = False  # whether `submitted` is from the instructor's table of times
    earlier: bool = False  # whether the student submitted again later
    entry: str = ""  # the name of its newest file in a learning system's download

    @property
    def members(self) -> tuple[str, ...]:
        """The students who get the grade."""
        return self.group or (self.student,)

    def replaces(self, old: Submission) -> bool:
        """Whether this is a later submission than an `old` one of the same name.

        The same text at another time is one too, unless an instructor corrected the time.
        """
        if self.sources != old.sources:
            return True
        times = {self.submitted, old.submitted}
        return len(times - {None}) == 2 and not self.by_table

    @property
    def status(self) -> Literal["ready", "unreadable", "empty"]:
        """``ready`` to grade; ``empty`` without a file; ``unreadable`` if no file could be read."""
        if self.sources:
            return "ready"
        return "unreadable" if self.problems else "empty"
