"""A student's own check: the public tests on a folder of answers, once or after every save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader import backends
from grader.course import Course
from grader.faults import CallError
from grader.grade import ExerciseResult
from grader.workers import Order

if TYPE_CHECKING:  # it loads torch, which takes seconds
    from grader.desk import Desk
    from grader.intake import Submission


class Checker:
    """An open desk for one student's answers; each check reads the files anew."""

    def __init__(self, desk: Desk, answers: Path) -> None:
        self._desk = desk
        self._answers = answers

    def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
        """The public tests of these exercises or units (all that it was opened for, if none).

        Raises `CallError` where there is nothing to check.
        """
        from grader.grading import grade_exercises

        chosen = [name for name in self._desk.course.select(names) if name in self._desk.tests]
        with self._desk.seat(self._read(), chosen) as seat:
            return grade_exercises(self._desk, seat, chosen)

    def _read(self) -> Submission:
        from grader.intake import find_submissions

        (submission,) = find_submissions([self._answers], self._desk.course, single=True)
        if not submission.sources:
            why = "; ".join(submission.problems)
            raise CallError(why or f"there is no .py file and no notebook in {self._answers}")
        return submission


@contextmanager
def open_checker(
    course: Course, names: Sequence[str] = (), folder: Path | None = None,
    backend: backends.Name = "auto",
) -> Iterator[Checker]:  # fmt: skip
    """Load torch and the public checks of these exercises (all if none are named).

    `folder` holds the answers; without it they stand in the course's own files. Student code runs
    where `backend` says.
    """
    chosen = course.select(names)
    answers = folder or course.folder
    if not answers.exists():
        raise CallError(f"there is no such file or folder: {answers}")
    course.require_answers()

    wanted = {course.unit_of[name] for name in chosen}
    files = {
        path: False
        for unit, path in zip(course.units, course.check_files(), strict=True)
        if unit.name in wanted
    }
    # Where answers are written into the only copy of the stubs, there is nothing to compare with.
    stubs = course.recorded.is_dir() or answers.resolve() != course.folder
    order = Order(
        course, course.seed, files, chosen, stubs, isolation="weak",
        backend=backends.backend(backend),
    )  # fmt: skip
    with order.desk() as desk:
        yield Checker(desk, answers)
