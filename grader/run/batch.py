"""Many submissions into one gradebook, each grade committed as it ends.

A grade in the gradebook that would come out the same is reused: so a grading that was stopped goes
on where it stopped, and a late hand-in costs no more than itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from grader.grades.gradebook import (
    DATABASE,
    GRADING,
    REGRADING,
    Gradebook,
    alone,
    existing_gradebook,
    open_gradebook,
    refuse_strangers,
)
from grader.grades.lookup import refuse_another_seed
from grader.grading.order import Order, deciding, keys
from grader.intake import NOBODY, Arrivals, Roster, Submission
from grader.records.faults import CallError
from grader.records.grade import Grade
from grader.records.rows import Person, Row, counted
from grader.run.workers import default_jobs, share

if TYPE_CHECKING:
    from grader.grading.desk import Desk


@dataclass(frozen=True)
class BookedGrade:
    """A grade that is in the gradebook: found out now, or reused."""

    grade: Grade
    reused: bool = False


Report = Callable[[BookedGrade], object]


def grade_into(
    folder: Path,
    order: Order,
    arrivals: Arrivals,
    jobs: int | None = None,
    report: Report = lambda _: None,
    *,
    cluster: str | None = None,
    replace: bool = False,
    fresh: bool = False,
    roster: Roster = NOBODY,
    assignment: str = "",
) -> list[Row]:
    """Grade a batch into a gradebook, by student; `report` hears of each grade once committed.

    Nothing is written before the course's tests are collected, so that bad input leaves no trace.
    Grades of an earlier run that this one would lose are lost only with `replace`; none is reused
    where all are to be `fresh`. The `roster` and the name of the `assignment` are kept for the next
    call. The work is done in `jobs` processes, or by the workers of a `cluster`: an address. Raises
    `CallError` while another grading is at work on the folder.
    """
    students = [student for one in arrivals.submissions for student in one.members]
    kept = [*students, *arrivals.conflicts]  # a conflict loses no earlier grade
    exercises = order.course.select(order.only)
    refuse_strangers(folder, order.course.name)
    with ExitStack() as stack:
        book: Gradebook | None = None
        if (folder / DATABASE).is_file():
            book = stack.enter_context(_sole(folder, order))
            if not replace:
                _refuse_loss(book, [*kept, *_renamed(book, arrivals, roster)], exercises)
        plan = _planned(order, arrivals.submissions, None if fresh else book)
        grades = _begun(stack.enter_context(closing(_shared(order, plan.todo, jobs, cluster))))
        book = book or stack.enter_context(_sole(folder, order))
        book.unfinished = GRADING
        book.exercises, book.assignment, book.roster = exercises, assignment, roster
        _record(book, plan, grades, report)
        book.keep_only(kept)
        book.set_people(arrivals.people)
        book.conflicts = arrivals.conflicts
        return _finished(book)


def grade_again(
    folder: Path,
    order: Order,
    jobs: int | None = None,
    report: Report = lambda _: None,
    *,
    cluster: str | None = None,
    another_seed: bool = False,
    fresh: bool = False,
) -> list[Row]:
    """Grade the texts in a gradebook once more, and keep the old grades as those of a run.

    Raises `CallError` where the seed is another one, unless `another_seed` is meant, and while
    another grading is at work on the folder. `report` and `fresh` are those of `grade_into`.
    """
    with existing_gradebook(folder, order.course.name, again=True) as book, alone(folder):
        if not another_seed:
            refuse_another_seed(book, order.seed, "the new seed")
        handed_in = [*book.submissions()]
        if not handed_in:
            raise CallError(f"{folder} holds no submissions to grade again: name them")
        plan = _planned(order, handed_in, None if fresh else book)
        with closing(_shared(order, plan.todo, jobs, cluster)) as shared:
            grades = _begun(shared)
            if book.unfinished != REGRADING:
                book.put_aside()
                book.unfinished = REGRADING
            _record(book, plan, grades, report)
        return _finished(book)


def grade_arrivals(
    folder: Path,
    order: Order,
    arrivals: Iterable[Arrivals],
    *,
    replace: bool = False,
    fresh: bool = False,
    roster: Roster = NOBODY,
    assignment: str = "",
) -> Generator[list[Row]]:
    """Grade what is new at each look at a folder of submissions; the rows that changed.

    Nobody is forgotten whose file is gone. `replace`, `fresh`, `roster` and `assignment` are those
    of `grade_into`. Between two looks the gradebook is one of a grading that has ended. Raises
    `CallError` while another grading is at work on the gradebook's folder.
    """
    with order.desk() as desk, _sole(folder, order) as book:
        exercises = order.course.select(order.only)
        if not replace:
            _refuse_loss(book, [grade.student for grade in book.grades()], exercises)
        book.exercises, book.assignment, book.roster = exercises, assignment, roster
        key = keys(order)
        before = set() if fresh else book.reusable()
        graded = {o.student: o for o in book.submissions() if (o.student, key(o)) in before}
        for seen in arrivals:
            if seen.refused:  # the gradebook stays as it is until the folder can be read again
                yield []
                continue
            book.unfinished = GRADING
            new = [one for one in seen.submissions if graded.get(one.student) != one]
            for submission in new:
                book.record(_grade(desk, submission), submission, key(submission))
                graded[submission.student] = submission
            if renamed := _renamed(book, seen, roster):
                book.keep_only([g.student for g in book.grades() if g.student not in renamed])
            book.set_people(_with_gone(seen.people, book))
            settled = book.conflicts.keys() - seen.conflicts.keys()
            book.conflicts = seen.conflicts
            rows = _finished(book)
            changed = settled.union(*(one.members for one in new))
            yield [row for row in rows if row.student in changed and row.grade is not None]


def _renamed(book: Gradebook, seen: Arrivals, roster: Roster) -> set[str]:
    """Names of earlier grades whose students get one under another: a conflict is settled."""

    def key(student: str, people: Mapping[str, Person]) -> str | None:
        return roster.find(people.get(student, Person()), student)

    graded = {student for one in seen.submissions for student in one.members}
    settled = book.conflicts.keys() - seen.conflicts.keys() - graded
    if not settled:
        return set()
    keys_of_graded = {key(student, seen.people) for student in graded} - {None}
    before = book.people()
    return {student for student in settled if key(student, before) in keys_of_graded}


def _with_gone(people: Mapping[str, Person], book: Gradebook) -> dict[str, Person]:
    """The people of this look, and those who have a grade of what is gone: they are not absent."""
    graded = {grade.student for grade in book.grades()} - people.keys()
    gone = {who: person for who, person in book.people().items() if who in graded}
    return gone | {who: person for who, person in people.items() if person not in gone.values()}


def _refuse_loss(book: Gradebook, students: Sequence[str], exercises: Sequence[str]) -> None:
    """Raise `CallError` if replacing the grades in a gradebook would lose some of them."""
    kept, folder = set(students), book.folder
    gone: list[str] = []
    graded: set[str] = set()
    for grade in book.grades():
        gone += [grade.student] if grade.student not in kept else []
        graded |= {exercise.name for exercise in grade.exercises}
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise CallError(
            f"{folder} holds grades of {gone[0]}{more}, not in this run: name what they handed in "
            "as well, or another --out; --replace would lose them"
        )
    if left_out := len(graded - set(exercises)):
        raise CallError(
            f"{folder} holds grades of {counted(left_out, 'exercise')} that this run "
            "leaves out: choose another --out, or pass --replace to lose them"
        )


# --- what is left to do --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What has to be graded, and what has been."""

    todo: Sequence[Submission]
    graded: Sequence[Submission]
    keys: Mapping[str, str]  # by the submission's name


def _planned(order: Order, submissions: Sequence[Submission], book: Gradebook | None) -> _Plan:
    """Reuse what is in the gradebook, if there is one to look into."""
    key = keys(order)
    by_name = {one.student: key(one) for one in submissions}
    before = book.reusable() if book is not None else set()
    todo: list[Submission] = []
    graded: list[Submission] = []
    for one in submissions:
        (graded if (one.student, by_name[one.student]) in before else todo).append(one)
    return _Plan(todo, graded, by_name)


def _shared(
    order: Order, submissions: Sequence[Submission], jobs: int | None, cluster: str | None
) -> Generator[Grade]:
    set_aside = partial(_ungraded, order)
    if cluster is None:
        jobs = jobs or default_jobs(len(submissions))
        return share(order, _grade, submissions, jobs, set_aside)
    from grader.run import cluster as machines  # it needs Dask, which few have

    return machines.share_on_cluster(cluster, order, _grade, submissions, set_aside)


def _ungraded(order: Order, submission: Submission, isolation: tuple[str, ...], why: str) -> Grade:
    """The grade of a submission that cannot be graded here: of no points that anybody knows."""
    must = deciding(order.course)
    return Grade(
        student=submission.student,
        submission=submission.student,
        status="grader_error",
        total=0.0,
        max=order.course.most(order.course.select(order.only)),
        seed=order.seed,
        course=must.course,
        isolation=isolation,
        torch=must.torch,
        seconds=0.0,
        message=why,
        notes=submission.problems,
        device=order.device,
        late=submission.late,
        attempts=submission.attempts,
    )


def _begun(grades: Iterator[Grade]) -> Iterator[Grade]:
    """The same grades, once the first is there: then the course is fit, and may leave traces."""
    return chain([*islice(grades, 1)], grades)


def _record(book: Gradebook, plan: _Plan, grades: Iterable[Grade], report: Report) -> None:
    handed_in = {one.student: one for one in plan.todo}
    book.record_all(_reused(book, plan, report))
    for grade in grades:
        book.record(grade, handed_in[grade.submission], plan.keys[grade.submission])
        report(BookedGrade(grade))


def _reused(
    book: Gradebook, plan: _Plan, report: Report
) -> Iterator[tuple[Grade, Submission, str]]:
    """What is graded, for those who are its students today; one by one, since grades are large."""
    for one in plan.graded:
        key = plan.keys[one.student]
        grade = book.grade(one.student, key)
        today = msgspec.structs.replace(grade, late=one.late, attempts=one.attempts)
        report(BookedGrade(today, reused=True))
        yield today, one, key


def _finished(book: Gradebook) -> list[Row]:
    # The files come first: who stops in between is told to go on, and finds them written then.
    book.write_files()
    book.unfinished = ""
    return book.rows()


@contextmanager
def _sole(folder: Path, order: Order) -> Iterator[Gradebook]:
    """The gradebook, with no other grading at work on it."""
    with alone(folder), open_gradebook(folder, order.course.name) as book:
        yield book


def _grade(desk: Desk, submission: Submission) -> Grade:
    from grader.grading.ladder import grade_submission  # torch is loaded where the work is done

    return grade_submission(desk, submission)
