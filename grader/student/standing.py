"""The standing of a student: what is solved now, and what comes next. Both are decided here alone.

The last check of an exercise counts while the answer's text is the same. A stub is never solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.course.course import Course
from grader.student.answers import UNKNOWN, Digests, digests_of
from grader.student.progress import Progress, read_progress

State = Literal["solved", "failing", "changed", "unchecked", "unwritten"]


@dataclass(frozen=True)
class Standing:
    """The state of each exercise: what was recorded of it, compared with today's text."""

    course: Course
    progress: Progress
    digests: Digests

    def state(self, name: str) -> State:
        """The state of an exercise as it is written now."""
        if name not in self.digests:
            return "unwritten"
        last = self.progress.checked.get(name)
        if last is None:  # solved on another computer, or never checked
            return "solved" if name in self.progress.solved else "unchecked"
        if last.digest != self.digests[name] and UNKNOWN not in (last.digest, self.digests[name]):
            return "changed"
        return "solved" if last.passed else "failing"

    def is_solved(self, name: str) -> bool:
        """Whether an exercise is solved as it is written now, as far as that is known."""
        return self.state(name) == "solved"

    @property
    def next(self) -> str | None:
        """The next exercise: the first that fails, or else is not solved; None if all are solved.

        The search begins after the exercise last checked, for students who begin in the middle.
        """
        names = self.course.asked
        *_, last = ["", *self.progress.checked]
        begin = names.index(last) + 1 if last in names else 0
        ordered = [*names[begin:], *names[:begin]]
        failing = (name for name in names if self.state(name) == "failing")
        return next(failing, next((n for n in ordered if not self.is_solved(n)), None))


def standing_of(course: Course) -> Standing:
    """Where a student stands, by what is saved; raises `CallError` if progress cannot be read."""
    return Standing(course, read_progress(course.folder), digests_of(course))
