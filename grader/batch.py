"""Many submissions into one gradebook, each grade committed as it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from grader.grade import Grade
from grader.gradebook import Gradebook, open_gradebook, refuse_loss, refuse_strangers
from grader.intake import Submission
from grader.rows import Person, Row
from grader.workers import Order, share

if TYPE_CHECKING:
    from grader.desk import Desk


def grade_into(
    folder: Path,
    order: Order,
    submissions: Sequence[Submission],
    jobs: int,
    report: Callable[[Grade], object] = id,
    *,
    replace: bool = False,
    people: Mapping[str, Person] | None = None,
) -> list[Row]:
    """Grade a batch into a gradebook, by student; `report` hears of each grade once committed.

    Nothing is written before the course's tests are collected, so that bad input leaves no trace.
    Grades of an earlier run that this one would lose are lost only with `replace`. `people` says
    who the students are, those who handed in nothing among them.
    """
    students = [student for submission in submissions for student in submission.members]
    handed_in = {submission.student: submission for submission in submissions}
    exercises = order.course.select(order.only)
    refuse_strangers(folder, order.course.name)
    if not replace:
        refuse_loss(folder, students, exercises)
    with closing(share(order, _grade, submissions, jobs)) as grades, ExitStack() as stack:
        book: Gradebook | None = None
        for grade in grades:
            if book is None:
                book = stack.enter_context(open_gradebook(folder, order.course.name))
            book.record(grade, handed_in[grade.submission])
            report(grade)
        assert book is not None
        book.keep_only(students)
        book.set_people(people or {})
        book.exercises = exercises
        book.write_files()
        return book.rows()


def _grade(desk: Desk, submission: Submission) -> Grade:
    from grader.grading import grade  # torch is loaded where the work is done

    return grade(desk, submission)
