"""The list of exercises, with the state of each, and the next exercise to solve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from grader.feedback.verdict import WORDINGS
from grader.student.standing import Standing, State

EXERCISE_COLUMN = 36  # where the titles begin
NEXT = "next: {}, in {}"
UNSURE = "?", "yellow"  # for an answer that was not checked since its last change
SIGNS: Mapping[State, tuple[str, str]] = {
    "solved": (WORDINGS["passed"].sign, WORDINGS["passed"].color),
    "failing": (WORDINGS["failed"].sign, WORDINGS["failed"].color),
    "changed": UNSURE,
    "unchecked": UNSURE,
    "unwritten": (WORDINGS["missing"].sign, WORDINGS["missing"].color),
}
NOTES: Mapping[State, str] = {
    "solved": "",
    "failing": "fails now",
    "changed": "changed since it was checked",
    "unchecked": "not checked yet",
    "unwritten": "",
}
BEFORE: Mapping[State, str] = {  # notes on exercises that were solved before
    **NOTES,
    "failing": "solved before, fails now",
    "unwritten": "solved before, a stub now",
}


def listed(names: Sequence[str], standing: Standing) -> Iterator[Text]:
    """Lines with these exercises by unit, each with a sign; then the next exercise to solve."""
    course = standing.course
    for count, unit in enumerate(course.units, start=1):
        chosen = [exercise for exercise in unit.exercise if exercise.name in names]
        if not chosen:
            continue
        solved = sum(standing.is_solved(exercise.name) for exercise in chosen)
        yield Text()
        yield Text.assemble(
            f"{count} ",
            (unit.name, "bold"),
            f": {unit.title}",
            (f"  {solved}/{len(chosen)}", "dim"),
        )
        for exercise in chosen:
            sign, color = SIGNS[standing.state(exercise.name)]
            note = note_of(exercise.name, standing)
            read = standing.progress.hints.get(exercise.name, 0)
            hints = f"  (hints: {read} of {len(exercise.hints)})" if read else ""
            if (asked := standing.progress.asked.get(exercise.name)) is not None:
                hints += f"  (questions: {asked.right} of {asked.of})"
            other = "" if exercise.name in course.asked else "  (not asked)"
            yield Text.assemble(
                (f" {sign} ", color),
                f"{exercise.name:32} {exercise.title}",
                (f"  ({note})" if note else "", "yellow"),
                (other + hints, "dim"),
            )
    todo = standing.next
    if todo is not None:
        yield Text()
        yield Text(NEXT.format(todo, course.stub_file(course.unit_of[todo]).name))


def note_of(name: str, standing: Standing) -> str:
    """The state of an exercise in words; empty if the sign in the list is enough."""
    return (BEFORE if name in standing.progress.solved else NOTES)[standing.state(name)]


def as_text(parts: Iterable[Text]) -> str:
    """Styled lines as plain text."""
    return "\n".join(part.plain for part in parts).strip("\n")
