"""A student's own check: the public tests on a folder of answers, once or after every save."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.course import Course, below
from grader.grading.order import Order
from grader.intake.own import read_answers
from grader.records.faults import CallError
from grader.records.grade import UNWELL, WRONG, ExerciseResult
from grader.sandbox.session import Device
from grader.student.progress import read_progress
from grader.unsandboxed import worker

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.intake import Submission


class Checker:
    """An open desk for one student's answers; each check reads the files anew."""

    def __init__(self, desk: Desk, names: Sequence[str], answers: Path) -> None:
        self._desk = desk
        self._names = names
        self._answers = answers

    def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
        """The public tests of these exercises or units (all that it was opened for, if none).

        Raises `CallError` where there is nothing to check.
        """
        submission = read_answers(self._answers, self._desk.course)
        chosen = self._desk.course.select(names or self._names)
        return check_exercises(self._desk, submission, chosen, self._solved())

    def _solved(self) -> frozenset[str]:
        """What this student has solved before, as far as that is known."""
        folder = self._desk.course.folder
        if self._answers.resolve() == folder:
            with suppress(CallError):  # a file that cannot be read costs no verdict
                return read_progress(folder).solved
        return frozenset()


def check_exercises(
    desk: Desk, submission: Submission, names: Sequence[str], solved: Collection[str] = ()
) -> list[ExerciseResult]:
    """Grade these exercises; where one is wrong, it is graded again beside what it stands on.

    That is what the answer uses, and what the exercise requires and is not among the `solved`: what
    is wrong may follow from there.
    """
    from grader.grading.ladder import grade_exercises

    names = [name for name in names if name in desk.tests]
    with desk.seat(submission, names) as seat:
        results = grade_exercises(desk, seat, names, solved)
        found = seat.calls.found
    bases: dict[str, set[str]] = {}  # of each exercise that is wrong
    for result in results:
        ends = {test.status for test in result.tests}
        if ends & {*UNWELL}:
            used = found[result.name].bases.items()
            bases[result.name] = {base for base, there in used if there in ("found", "broken")}
        if ends & {*WRONG}:
            bases[result.name] |= {*below(desk.course, result.name)}.difference(solved)
    more = desk.tests.keys() & set().union(*bases.values())
    if more <= {*names}:
        return results
    with desk.seat(submission, [*bases, *more]) as seat:
        both = grade_exercises(desk, seat, [*bases, *more], solved)
    again = {one.name: one for one in both}
    return [again.get(one.name, one) for one in results]


@contextmanager
def open_checker(
    course: Course,
    names: Sequence[str] = (),
    folder: Path | None = None,
    backend: worker.BackendName = "auto",
    device: Device = "cpu",
) -> Iterator[Checker]:
    """Load torch and the public checks of these exercises (all if none are named).

    `folder` holds the answers; without it they stand in the course's own files. Student code runs
    where `backend` says, and computes on `device`.
    """
    chosen = course.select(names)
    answers = folder or course.folder
    if not answers.exists():
        raise CallError(f"there is no such file or folder: {answers}")
    course.require_answers()

    asked = {*chosen, *(base for name in chosen for base in below(course, name))}
    order = Order(
        course,
        course.seed,
        course.checks_of(asked),
        tuple(asked),
        course.has_stubs_beside(answers),
        isolation="weak",
        backend=worker.backend(backend, device),
        device=device,
        remembers=True,
    )
    with order.desk() as desk:
        yield Checker(desk, chosen, answers)
