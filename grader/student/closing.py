"""What is said below the verdicts of a check, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.course import Course
from grader.feedback.terminal import all_asked
from grader.intake.own import NOTEBOOKS
from grader.records.grade import ExerciseResult
from grader.student.standing import Standing

HIDDEN = "hidden tests look at the same rules on other inputs"


@dataclass(frozen=True)
class Closing:
    """Lines below verdicts; one that is empty is not shown."""

    count: str
    hidden: str
    next: str


def closing(
    course: Course,
    results: Sequence[ExerciseResult],
    standing: Standing | None,
    *,
    named: bool,
    in_cells: bool = False,
) -> Closing:
    """What to say of these results: of exercises that were `named`, or of all there are.

    Without a `standing`, of answers that live elsewhere, nobody knows what else is solved.
    """
    solved = [result.name for result in results if result.solved]
    of = len(results) if named or in_cells else all_asked(course)
    wrong = next((result.name for result in results if not result.solved), None)
    todo = None
    if wrong is None or not named:
        todo = standing.next if standing is not None else wrong
    return Closing(
        f"{len(solved)} of {of} pass the public checks",
        HIDDEN if wrong is None else "",
        f"next: {todo}, in {_file_of(course, todo, in_cells)}" if todo is not None else "",
    )


def _file_of(course: Course, name: str, in_cells: bool) -> str:
    unit = course.unit_of[name]
    notebook = course.folder.parent / NOTEBOOKS / f"{unit}.ipynb"
    return notebook.name if in_cells and notebook.is_file() else course.stub_file(unit).name
