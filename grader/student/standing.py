"""The standing of a student: the state of each exercise, and the next exercise to solve.

Only this module decides both. The last check of an exercise counts until the code of its answer
changes. A stub is never solved.
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
    """The state of each exercise, from its last check and the present text of the answer."""

    course: Course
    progress: Progress
    digests: Digests

    def state(self, name: str) -> State:
        """The state of the present answer to an exercise."""
        if name not in self.digests:
            return "unwritten"
        last = self.progress.checked.get(name)
        if last is None:  # solved on another computer, or never checked
            return "solved" if name in self.progress.solved else "unchecked"
        if last.digest != self.digests[name] and UNKNOWN not in (last.digest, self.digests[name]):
            return "changed"
        return "solved" if last.passed else "failing"

    def is_solved(self, name: str) -> bool:
        """Whether the present answer to an exercise is known to be right."""
        return self.state(name) == "solved"

    def was_asked(self, name: str) -> bool:
        """Whether questions about the present answer to an exercise were answered."""
        asked = self.progress.asked.get(name)
        return asked is not None and asked.digest in (UNKNOWN, self.digests.get(name))

    @property
    def next(self) -> str | None:
        """The next exercise: the first failing exercise, or else the next unsolved exercise.

        None if all are solved. The search for an unsolved exercise begins at the exercise that was
        last checked by name, for students who begin in the middle of the course. After a check of
        all exercises it begins at the first exercise.
        """
        names, place = self.course.asked, self.progress.place
        begin = names.index(place) if place in names else 0
        ordered = [*names[begin:], *names[:begin]]
        failing = (name for name in names if self.state(name) == "failing")
        return next(failing, next((n for n in ordered if not self.is_solved(n)), None))


def standing_of(course: Course) -> Standing:
    """The standing of the saved answers; raises `CallError` if the progress cannot be read."""
    return Standing(course, read_progress(course.folder), digests_of(course))
