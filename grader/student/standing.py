"""Where a student stands: what is solved now, and what comes next. The one place that decides both.

What was recorded of an answer is believed while its text is the same. A stub is never solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from grader.course.course import Course
from grader.student.answers import UNKNOWN, Digests, digests_of
from grader.student.progress import Progress, last_checks, read_progress

if TYPE_CHECKING:
    from grader.records.grade import ExerciseResult

State = Literal["solved", "failing", "changed", "unchecked", "unwritten"]


@dataclass(frozen=True)
class Standing:
    """What is known of each exercise, held against what is written now."""

    course: Course
    progress: Progress
    digests: Digests

    def state(self, name: str) -> State:
        """What is known of an exercise as it is written now."""
        if name not in self.digests:
            return "unwritten"
        last = self.progress.checked.get(name)
        if last is None:  # solved on another computer, or never checked
            return "solved" if name in self.progress.solved else "unchecked"
        if last.digest != self.digests[name] and UNKNOWN not in (last.digest, self.digests[name]):
            return "changed"
        return "solved" if last.passed else "failing"

    def is_solved(self, name: str) -> bool:
        """Whether it is solved as it is written now, as far as that is known."""
        return self.state(name) == "solved"

    @property
    def next(self) -> str | None:
        """What to do next: what fails, or else what is not solved; None once all is.

        What follows the exercise last checked comes first: who begins in the middle goes on there.
        """
        names = self.course.asked
        *_, last = ["", *self.progress.checked]
        begin = names.index(last) + 1 if last in names else 0
        ordered = [*names[begin:], *names[:begin]]
        failing = (name for name in names if self.state(name) == "failing")
        return next(failing, next((n for n in ordered if not self.is_solved(n)), None))


def standing_of(course: Course, cells: Sequence[str] = ()) -> Standing:
    """Where a student stands, by what is saved, and by the cells that ran in a kernel."""
    return Standing(course, read_progress(course.folder), digests_of(course, cells))


def standing_after(
    course: Course, before: Progress, results: Iterable[ExerciseResult], digests: Digests
) -> Standing:
    """Where a student stands after these checks, whether or not they could be recorded."""
    return Standing(course, before.with_(checked=last_checks(results, digests)), digests)
