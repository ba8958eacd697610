"""Grades many submissions into one gradebook, and commits each grade as soon as it is computed.

A grade is reused if nothing that decides it has changed. An interrupted grading therefore continues
where it stopped, and after a late submission only that submission is graded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from grader.course.course import Course
from grader.grades.database import DATABASE, refuse_strangers
from grader.grades.decided import keeps_versions
from grader.grades.gradebook import (
    GRADING,
    REGRADING,
    Gradebook,
    alone,
    existing_gradebook,
    open_gradebook,
)
from grader.grades.lookup import refuse_another_seed
from grader.grading.order import Order, deciding, keys
from grader.intake import NO_ROSTER, NO_TIMES, Arrivals, Roster, Submission, Times
from grader.intake.arrivals import as_earlier
from grader.records.faults import CallError
from grader.records.grade import Grade
from grader.records.rows import Person, Row, counted
from grader.records.times import written_time
from grader.run.distribution import distribute
from grader.run.workers import default_jobs

if TYPE_CHECKING:
    from grader.grading.desk import Desk


@dataclass(frozen=True)
class BookedGrade:
    """A grade that is stored in the gradebook, either computed now or reused."""

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
    roster: Roster = NO_ROSTER,
    times: Times = NO_TIMES,
    assignment: str = "",
    adding: str = "",
) -> list[Row]:
    """Grade submissions into a folder's gradebook, and return the gradebook's rows.

    `report` is called with each committed grade. With `fresh`, no earlier grade is reused. The
    gradebook stores `roster`, `times` and `assignment`. The work is done in `jobs` processes, or by
    the workers of the Dask scheduler at the address `cluster`. With the command `adding`, these are
    not all of the class's submissions: everything about other students stays, and only the same
    command continues after an interruption.

    Raises `CallError` if grades of an earlier grading would be lost and `replace` is not set, or if
    another grading into the folder is running. An error in the course or the call is raised before
    the gradebook changes.
    """
    students = [student for one in arrivals.submissions for student in one.members]
    kept = [*students, *arrivals.conflicts]  # a student in a conflict keeps an earlier grade
    exercises = order.course.select(order.only)
    refuse_strangers(folder, order.course.identity)
    with ExitStack() as stack:
        book: Gradebook | None = None
        if (folder / DATABASE).is_file():
            book = stack.enter_context(_sole(folder, order))
            if not replace and not adding:
                _refuse_another(book, assignment)
                _refuse_loss(book, [*kept, *_renamed(book, arrivals, roster)], exercises)
        submissions = arrivals.submissions
        if keeps_versions(order.course.policy(assignment)):
            submissions += _versions(order, arrivals, kept, book)
        plan = _planned(order, submissions, None if fresh else book)
        grades = _started(stack.enter_context(closing(_shared(order, plan.todo, jobs, cluster))))
        book = book or stack.enter_context(_sole(folder, order))
        book.unfinished = adding or GRADING
        _describe(book, order.course, exercises, assignment, roster)
        book.times = _joined_times(book, arrivals, times) if adding else times
        _record(book, plan, grades, report)
        renamed = _renamed(book, arrivals, roster)
        people, conflicts = arrivals.people, arrivals.conflicts
        if adding:
            kept = [*(book.graded - renamed.keys())]
            people, conflicts = _joined(book, arrivals, roster)
        book.rename(renamed)
        book.keep_only(kept)
        book.set_people(people)
        book.conflicts = conflicts
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
    """Grade all submissions in a gradebook again, and store the replaced grades as an earlier run.

    `report` and `fresh` are as for `grade_into`. Raises `CallError` if the hidden seed has changed
    and `another_seed` is not set, or if another grading into the folder is running.
    """
    with (
        existing_gradebook(folder, order.course.identity, continues=REGRADING) as book,
        alone(folder),
    ):
        if not another_seed:
            refuse_another_seed(book, order.seed, "the new seed")
        submissions = [*book.submissions()]
        if not submissions:
            raise CallError(f"{folder} holds no submissions to grade again: name them")
        plan = _planned(order, submissions, None if fresh else book)
        with closing(_shared(order, plan.todo, jobs, cluster)) as shared:
            grades = _started(shared)
            if book.unfinished != REGRADING:
                book.put_aside()
                book.unfinished = REGRADING
            _describe(book, order.course, book.exercises, book.assignment, book.roster)
            _record(book, plan, grades, report)
        return _finished(book)


def grade_arrivals(
    folder: Path,
    order: Order,
    arrivals: Iterable[Arrivals],
    *,
    replace: bool = False,
    fresh: bool = False,
    roster: Roster = NO_ROSTER,
    times: Times = NO_TIMES,
    assignment: str = "",
) -> Generator[list[Row]]:
    """Grade the new submissions each time a folder is read, and yield the changed rows.

    `arrivals` yields the folder's submissions at each reading. If a student's file disappears, the
    grade stays. Between two readings the gradebook is complete.
    The other parameters are as for `grade_into`. Raises `CallError` if another grading into the
    gradebook's folder is running.
    """
    with order.desk() as desk, _sole(folder, order) as book:
        exercises = order.course.select(order.only)
        if not replace:
            _refuse_another(book, assignment)
            _refuse_loss(book, [grade.student for grade in book.grades()], exercises)
        _describe(book, order.course, exercises, assignment, roster)
        book.times = times
        key = keys(order)
        before = set() if fresh else book.reusable()
        graded = {o.student: o for o in book.submissions() if (o.student, key(o)) in before}
        for look in arrivals:
            if look.refused:  # the folder could not be read: change nothing until it can
                yield []
                continue
            book.unfinished = GRADING
            new = [one for one in look.submissions if graded.get(one.student) != one]
            for submission in new:
                book.record(_grade(desk, submission), submission, key(submission))
                graded[submission.student] = submission
            if new:  # a group's submission may have replaced another of the group
                book.drop_orphans()
            if renamed := _renamed(book, look, roster):
                book.rename(renamed)
                book.keep_only([*(book.graded - renamed.keys())])
            book.set_people(_with_gone(look.people, book))
            settled = book.conflicts.keys() - look.conflicts.keys()
            book.conflicts = look.conflicts
            rows = _finished(book)
            changed = settled.union(*(one.members for one in new))
            names = {one.student for one in new}
            yield [
                row
                for row in rows
                if row.grade is not None
                and (row.student in changed or row.grade.submission in names)
            ]


def _renamed(book: Gradebook, look: Arrivals, roster: Roster) -> dict[str, str]:
    """The new name of each student on the roster who is now graded under another name.

    This happens after a conflict, after an absence, or if another member submits for a group.
    """

    def key(student: str, people: Mapping[str, Person]) -> str | None:
        return roster.find(people.get(student, Person()), student)

    graded = {student for one in look.submissions for student in one.members}
    before = book.people()
    # An absent student has the roster's name until a submission arrives.
    gone = (book.conflicts.keys() | book.graded | before.keys()) - look.conflicts.keys() - graded
    if not gone:
        return {}
    names = {key(student, look.people): student for student in graded}
    found = {student: key(student, before) for student in gone}
    return {student: names[k] for student, k in found.items() if k is not None and k in names}


def _joined(
    book: Gradebook, arrivals: Arrivals, roster: Roster
) -> tuple[dict[str, Person], dict[str, str]]:
    """All people and conflicts of a gradebook after some submissions were added to it."""
    added = {student for one in arrivals.submissions for student in one.members}
    added |= arrivals.conflicts.keys()
    before, now = book.people(), arrivals.people

    def key(student: str, people: Mapping[str, Person]) -> str:
        return roster.find(people.get(student, Person()), student) or student

    keys = {key(student, now) for student in added}
    people = {who: person for who, person in before.items() if key(who, before) not in keys}
    people |= {who: now[who] for who in added if who in now}
    conflicts = {who: why for who, why in book.conflicts.items() if key(who, before) not in keys}
    return people, conflicts | {**arrivals.conflicts}


def _joined_times(book: Gradebook, arrivals: Arrivals, times: Times) -> Times:
    """The gradebook's table of times, with that of these submissions for their students."""
    there = book.times
    for one in arrivals.submissions:
        for name in one.members:
            there = there.without([one.student, name], arrivals.people.get(name, Person()))
    return Times((*there.entries, *times.entries))


def _with_gone(people: Mapping[str, Person], book: Gradebook) -> dict[str, Person]:
    """The people found in the folder now, and those whose file disappeared but who have a grade."""
    graded = {grade.student for grade in book.grades()} - people.keys()
    gone = {who: person for who, person in book.people().items() if who in graded}
    return gone | {who: person for who, person in people.items() if person not in gone.values()}


def _refuse_another(book: Gradebook, assignment: str) -> None:
    """Raise `CallError` if a gradebook is of another assignment, with other rules and questions."""
    if book.assignment and book.assignment != assignment:
        raise CallError(
            f"{book.folder} holds grades of the assignment {book.assignment}: pass --assignment "
            f"{book.assignment}, or choose another --out; --replace would drop its due time and "
            "questions"
        )


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
            f"{folder} holds grades of {gone[0]}{more}, who are not in this run: name their "
            "submissions too, or another --out; --replace would delete their grades"
        )
    if left_out := len(graded - set(exercises)):
        raise CallError(
            f"{folder} holds grades of {counted(left_out, 'exercise')} that this run "
            "leaves out: choose another --out, or pass --replace to delete them"
        )


# --- one grading ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The submissions to grade, and those whose grades are reused."""

    todo: Sequence[Submission]
    reused: Sequence[Submission]
    keys: Mapping[str, str]  # the key of each submission's grade, by the submission's name


def _versions(
    order: Order, arrivals: Arrivals, kept: Collection[str], book: Gradebook | None
) -> tuple[Submission, ...]:
    """The submissions that their students replaced, in this run or in earlier ones.

    Those whose grade is in use until this run need no grading: `Gradebook.record` keeps the grade.
    """
    found = {one.student: one for one in arrivals.earlier}
    if book is not None:
        key, reusable = keys(order), book.reusable()
        new = {one.student: one for one in arrivals.submissions}
        for old in book.submissions():
            if old.earlier:
                if not {*kept}.isdisjoint(old.members):
                    found.setdefault(old.student, old)
            elif (
                old.student in new
                and new[old.student].replaces(old)
                and (old.student, key(old)) not in reusable
            ):
                replaced = as_earlier(old)
                found.setdefault(replaced.student, replaced)
    return tuple(found.values())


def _planned(order: Order, submissions: Sequence[Submission], book: Gradebook | None) -> _Plan:
    """Divide submissions into those to grade and those whose grade in `book` can be reused."""
    key = keys(order)
    by_name = {one.student: key(one) for one in submissions}
    before = book.reusable() if book is not None else set()
    todo: list[Submission] = []
    reused: list[Submission] = []
    for one in submissions:
        (reused if (one.student, by_name[one.student]) in before else todo).append(one)
    return _Plan(todo, reused, by_name)


def _shared(
    order: Order, submissions: Sequence[Submission], jobs: int | None, cluster: str | None
) -> Generator[Grade]:
    return distribute(
        order,
        _grade,
        submissions,
        Grade,
        partial(_ungraded, order),
        jobs=jobs or default_jobs(len(submissions)),
        cluster=cluster,
    )


def _ungraded(order: Order, submission: Submission, isolation: tuple[str, ...], why: str) -> Grade:
    """The grade of a submission on which the grader failed: its points are unknown."""
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
        submitted=_time(submission),
    )


def _started(grades: Iterator[Grade]) -> Iterator[Grade]:
    """Wait for the first grade, which proves that the course can be graded; return all grades."""
    return chain([*islice(grades, 1)], grades)


def _describe(
    book: Gradebook, course: Course, exercises: Sequence[str], assignment: str, roster: Roster
) -> None:
    """Store what is graded, with the course's rule for late work and questions without code."""
    book.exercises, book.assignment, book.roster = tuple(exercises), assignment, roster
    book.belongs_to(course.identity)
    book.policy, book.questions = course.policy(assignment), course.questions_of(assignment)


def _record(book: Gradebook, plan: _Plan, grades: Iterable[Grade], report: Report) -> None:
    submissions = {one.student: one for one in plan.todo}
    book.record_all(_reused(book, plan, report))
    for grade in grades:
        book.record(grade, submissions[grade.submission], plan.keys[grade.submission])
        report(BookedGrade(grade))


def _reused(
    book: Gradebook, plan: _Plan, report: Report
) -> Iterator[tuple[Grade, Submission, str]]:
    """Yield each reused grade as it is to be stored, with its submission and key.

    The grades are read from the gradebook one at a time, because they are large.
    """
    for one in plan.reused:
        key = plan.keys[one.student]
        grade = book.grade(one.student, key)
        today = msgspec.structs.replace(
            grade, late=one.late, attempts=one.attempts, submitted=_time(one)
        )
        report(BookedGrade(today, reused=True))
        yield today, one, key


def _time(submission: Submission) -> str:
    return written_time(submission.submitted) if submission.submitted is not None else ""


def _finished(book: Gradebook) -> list[Row]:
    # Write the files before the grading counts as complete: if this process stops in between, the
    # next call continues the grading, and writes the files again.
    book.write_files()
    book.unfinished = ""
    return book.rows()


@contextmanager
def _sole(folder: Path, order: Order) -> Iterator[Gradebook]:
    """Lock a folder against other gradings, and open or create its gradebook."""
    with alone(folder), open_gradebook(folder, order.course.identity) as book:
        yield book


def _grade(desk: Desk, submission: Submission) -> Grade:
    from grader.grading.ladder import grade_submission  # loads torch, in the worker only

    return grade_submission(desk, submission)
