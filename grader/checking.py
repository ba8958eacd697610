"""A student's own check: the public tests on a folder of answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.course import Course
from grader.faults import CallError
from grader.grade import ExerciseResult


def check_folder(
    course: Course, names: Sequence[str], folder: Path | None
) -> list[ExerciseResult]:  # fmt: skip
    """Run the public checks of these exercises (all if none are named), with the public seed."""
    chosen = course.select(names)
    answers = folder or course.folder
    if not answers.exists():
        raise CallError(f"there is no such file or folder: {answers}")
    course.require_solutions("check")

    from grader.desk import open_desk
    from grader.grading import grade_exercises
    from grader.intake import find_submissions

    (submission,) = find_submissions([answers], course, single=True)
    if not submission.sources:
        why = "; ".join(submission.problems)
        raise CallError(why or f"there is no .py file and no notebook in {answers}")
    wanted = {course.unit_of[name] for name in chosen}
    files = {
        path: False
        for unit, path in zip(course.units, course.check_files(), strict=True)
        if unit.name in wanted
    }
    with (
        open_desk(
            course,
            seed=course.seed,
            files=files,
            only=chosen,
            stubs=answers.resolve() != course.folder,
        ) as desk,
        desk.seat(submission) as seat,
    ):
        return grade_exercises(desk, seat)
