"""Many submissions into one gradebook, each grade committed as it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from grader.faults import CallError
from grader.grade import Grade
from grader.gradebook import (
    Gradebook,
    existing_gradebook,
    open_gradebook,
    refuse_loss,
    refuse_strangers,
)
from grader.intake import NOBODY, Arrivals, Roster, Submission
from grader.rows import Person, Row
from grader.workers import Order, share

if TYPE_CHECKING:
    from grader.desk import Desk


def grade_into(
    folder: Path,
    order: Order,
    arrivals: Arrivals,
    jobs: int,
    report: Callable[[Grade], object] = id,
    *,
    cluster: str | None = None,
    replace: bool = False,
    roster: Roster = NOBODY,
    assignment: str = "",
) -> list[Row]:
    """Grade a batch into a gradebook, by student; `report` hears of each grade once committed.

    Nothing is written before the course's tests are collected, so that bad input leaves no trace.
    Grades of an earlier run that this one would lose are lost only with `replace`. The `roster` and
    the name of the `assignment` are kept for the next call. The work is done in `jobs` processes,
    or by the workers of a `cluster`: see `cluster.share`.
    """
    students = [student for one in arrivals.submissions for student in one.members]
    handed_in = {one.student: one for one in arrivals.submissions}
    exercises = order.course.select(order.only)
    refuse_strangers(folder, order.course.name)
    if not replace:
        refuse_loss(folder, students, exercises)
    with (
        closing(_shared(order, arrivals.submissions, jobs, cluster)) as grades,
        ExitStack() as stack,
    ):
        book: Gradebook | None = None
        for grade in grades:
            if book is None:
                book = stack.enter_context(open_gradebook(folder, order.course.name))
                book.unfinished = True
                book.exercises, book.assignment, book.roster = exercises, assignment, roster
            book.record(grade, handed_in[grade.submission])
            report(grade)
        assert book is not None
        book.keep_only(students)
        book.set_people(arrivals.people)
        book.unfinished = False
        book.write_files()
        return book.rows()


def grade_again(
    folder: Path, order: Order, jobs: int, report: Callable[[Grade], object] = id, *,
    cluster: str | None = None, another_seed: bool = False,
) -> list[Row]:  # fmt: skip
    """Grade the texts in a gradebook once more, and keep the old grades as those of a run.

    Raises `CallError` where the seed is another one, unless `another_seed` is meant. Nothing is
    written before all are graded.
    """
    with existing_gradebook(folder, order.course.name) as book:
        if order.seed not in {grade.seed for grade in book.grades()} and not another_seed:
            raise CallError(
                f"{folder} was graded with another hidden seed: name that course with --course, or "
                "the new seed with --seed"
            )
        handed_in = {one.student: one for one in book.submissions()}
        if not handed_in:
            raise CallError(f"{folder} holds no submissions to grade again: name them")
        with closing(_shared(order, [*handed_in.values()], jobs, cluster)) as grades:
            fresh = []
            for grade in grades:
                fresh.append(grade)
                report(grade)
        book.put_aside()
        for grade in fresh:
            book.record(grade, handed_in[grade.submission])
        book.write_files()
        return book.rows()


def grade_arrivals(
    folder: Path,
    order: Order,
    arrivals: Iterable[Arrivals],
    *,
    roster: Roster = NOBODY,
    assignment: str = "",
) -> Generator[list[Row]]:
    """Grade what is new at each look at a folder of submissions; the rows that changed.

    Nobody is forgotten whose file is gone. The `roster` and the name of the `assignment` are kept
    for the next call. Between two looks the gradebook is one of a grading that has ended.
    """
    with order.desk() as desk, open_gradebook(folder, order.course.name) as book:
        exercises = order.course.select(order.only)
        book.exercises, book.assignment, book.roster = exercises, assignment, roster
        known = {one.student: one for one in book.submissions()}
        for seen in arrivals:
            book.unfinished = True
            new = [one for one in seen.submissions if known.get(one.student) != one]
            for submission in new:
                book.record(_grade(desk, submission), submission)
                known[submission.student] = submission
            book.set_people(_with_gone(seen.people, book))
            book.unfinished = False
            book.write_files()
            changed = {student for one in new for student in one.members}
            yield [row for row in book.rows() if row.student in changed]


def _with_gone(people: Mapping[str, Person], book: Gradebook) -> dict[str, Person]:
    """The people of this look, and those who have a grade of what is gone: they are not absent."""
    graded = {grade.student for grade in book.grades()} - people.keys()
    gone = {who: person for who, person in book.people().items() if who in graded}
    return gone | {who: person for who, person in people.items() if person not in gone.values()}


def _shared(
    order: Order, submissions: Sequence[Submission], jobs: int, cluster: str | None
) -> Generator[Grade]:  # fmt: skip
    if cluster is None:
        return share(order, _grade, submissions, jobs)
    from grader import cluster as machines  # it needs Dask, which few have

    return machines.share(cluster, order, _grade, submissions)


def _grade(desk: Desk, submission: Submission) -> Grade:
    from grader.grading import grade  # torch is loaded where the work is done

    return grade(desk, submission)
