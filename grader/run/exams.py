"""Finds the questions of oral exams on many submissions, in processes or on a cluster."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

from grader.course.course import Course
from grader.grading.order import Order
from grader.questions.exam import Candidate, Exam, examine
from grader.run.distribution import distribute
from grader.run.workers import FEW, default_jobs
from grader.sandbox.jails import Isolation


def hold_exams(
    course: Course,
    candidates: Sequence[Candidate],
    count: int,
    secrets: tuple[Path, ...],
    jobs: int | None = None,
    cluster: str | None = None,
    isolation: Isolation = "strong",
) -> Generator[Exam]:
    """Yield each candidate's exam of at most `count` questions as soon as it is found.

    No hidden test is loaded, and the hidden seed is not used for inputs: a question may show them.
    Raises `CallError` if submissions could read `secrets` or the solutions; see `Order`.
    """
    solved = {name for one in candidates for name in one.solved}
    for one in candidates:
        if not one.solved:
            yield Exam(one.student)
    if not solved:
        return
    exercises = tuple(name for name in course.exercises if name in solved)
    order = Order(
        course,
        course.seed,
        course.checks_of(exercises),
        exercises,
        isolation=isolation,
        secrets=secrets,
        keeps_sheet=True,
    )
    some = [one for one in candidates if one.solved]
    # An exam takes as long as several gradings, so a process is worth its start for a single one.
    yield from distribute(
        order,
        partial(examine, count),
        some,
        Exam,
        jobs=jobs or default_jobs(len(some) * FEW),
        cluster=cluster,
    )
