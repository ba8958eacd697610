"""The exercises as a list: which are solved, which fail now, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from grader.course.course import Course
from grader.feedback.verdict import WORDINGS
from grader.student.progress import Progress


def listed(course: Course, names: Sequence[str], progress: Progress) -> Iterator[Text]:
    """The exercises by unit, each with a sign, and the next one to solve."""
    for count, unit in enumerate(course.units, start=1):
        chosen = [exercise for exercise in unit.exercise if exercise.name in names]
        if not chosen:
            continue
        solved = sum(exercise.name in progress.solved - progress.failing for exercise in chosen)
        yield Text.assemble(
            f"\n{count} ",
            (unit.name, "bold"),
            f": {unit.title}",
            (f"  {solved}/{len(chosen)}", "dim"),
        )
        for exercise in chosen:
            fails = exercise.name in progress.failing
            passed = exercise.name in progress.solved
            wording = WORDINGS["failed" if fails else "passed" if passed else "missing"]
            read = progress.hints.get(exercise.name, 0)
            hints = f"  (hints: {read} of {len(exercise.hints)})" if read else ""
            other = "" if exercise.name in course.asked else "  (not asked)"
            yield Text.assemble(
                (f" {wording.sign} ", wording.color),
                f"{exercise.name:32} {exercise.title}",
                ("  (solved before, fails now)" if fails else "", "yellow"),
                (other + hints, "dim"),
            )
    todo = progress.first_unsolved(course.asked)
    if todo is not None:
        yield Text(f"\nnext: {todo}, in {course.stub_file(course.unit_of[todo]).name}")


def as_text(parts: Iterable[Text]) -> str:
    """The list without its colours."""
    return "\n".join(part.plain for part in parts).strip("\n")
