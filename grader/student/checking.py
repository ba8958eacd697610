"""A student's own checks: the public tests of exercises, run on a folder of answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.course import Course, below
from grader.grading.order import Order
from grader.intake.own import read_answers
from grader.records.faults import CallError, HostFault
from grader.records.grade import NOT_PASSED, WRONG, ExerciseResult
from grader.sandbox.session import Device, StudentLost
from grader.student.answers import Digests, digests_of
from grader.student.progress import read_progress
from grader.unsandboxed import worker

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.intake import Submission

UNREADABLE = "Your answers cannot be loaded: {}"
FAULT = "The grader itself failed, which is not your fault: {}\nSave to try again."


class Checker:
    """Runs public tests on one student's answers; each check reads the files again."""

    def __init__(self, desk: Desk, names: Sequence[str], answers: Path) -> None:
        self.desk = desk
        self._names = names
        self._answers = answers

    def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
        """Run the public tests of these exercises or units; by default, of the checker's exercises.

        Raises `CallError` if there is nothing to check.
        """
        submission = read_answers(self._answers, self.desk.course)
        chosen = self.desk.course.select(names or self._names)
        return check_exercises(self.desk, submission, chosen, self._solved())

    def _solved(self) -> frozenset[str]:
        """The exercises that the student has solved before; none for answers in another folder."""
        folder = self.desk.course.folder
        if self._answers.resolve() == folder:
            with suppress(CallError):  # without progress, checks still work
                return read_progress(folder).solved
        return frozenset()


def check_exercises(
    desk: Desk, submission: Submission, names: Sequence[str], solved: Collection[str] = ()
) -> list[ExerciseResult]:
    """Grade these exercises; a wrong exercise is graded again together with its prerequisites.

    The mistake may be in a prerequisite: an exercise that the answer uses, or an exercise that the
    course requires first. Required exercises in `solved` are not graded again.
    """
    from grader.grading.ladder import grade_exercises

    names = [name for name in names if name in desk.tests]
    with desk.seat(submission, names) as seat:
        results = grade_exercises(desk, seat, names, solved)
        found = seat.calls.found
    bases: dict[str, set[str]] = {}  # prerequisites, by exercise that did not pass
    for result in results:
        ends = {test.status for test in result.tests}
        if ends & {*NOT_PASSED}:
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
    """Load torch and the public checks of these exercises; by default of all exercises.

    `folder` contains the answers; by default it is the course's own folder. `backend` chooses the
    process in which student code runs, and `device` chooses CPU or GPU.
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
        keeps_sheet=True,
    )
    with order.desk() as desk:
        yield Checker(desk, chosen, answers)


class Checks:
    """Runs checks for a student: opens a `Checker` at the first check, and a new one after a fault.

    Call all methods in the same thread, because a `Checker` requires that.
    """

    def __init__(
        self, course: Course, open_one: Callable[[], AbstractContextManager[Checker]]
    ) -> None:
        self._course = course
        self._open = open_one
        self._stack = ExitStack()
        self._checker: Checker | None = None

    @property
    def ready(self) -> bool:
        """Whether a checker is open; if so, torch is loaded."""
        return self._checker is not None

    def check(self, names: Sequence[str]) -> tuple[list[ExerciseResult], Digests]:
        """The results of these exercises, and the digests of the answers that were checked.

        Raises `CallError` or `HostFault`, with a message for the student.
        """
        # Compute digests before the check: a save in between then makes an answer "changed".
        digests = digests_of(self._course)
        try:
            return self.checker().check(names), digests
        except CallError:
            raise
        except StudentLost as error:
            raise CallError(UNREADABLE.format(error)) from None
        except (Exception, SystemExit) as error:
            self.close()
            what = (
                str(error) if isinstance(error, HostFault) else f"{type(error).__name__}: {error}"
            )
            raise HostFault(FAULT.format(what)) from None

    def checker(self) -> Checker:
        """The open checker; opens it at the first call."""
        if self._checker is None:
            self._checker = self._stack.enter_context(self._open())
        return self._checker

    def close(self) -> None:
        """Close the checker, if one is open."""
        self._checker = None
        self._stack.close()
