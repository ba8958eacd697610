"""Checks the parts of an exercise: hints, tests, statement, examples, known answers."""

from __future__ import annotations

from collections.abc import Iterator

from grader.author import wording
from grader.author.examples import wrong_examples
from grader.author.trials import Trials
from grader.course.statements import statement
from grader.grading.desk import Desk
from grader.mistakes import VariantKind
from grader.records.rows import counted

KNOWN: tuple[tuple[VariantKind, str, str], ...] = (
    ("mistake", "no known mistake", "mistake"),
    ("accepted", "no second right answer", "accepted"),
)


def faults(desk: Desk, name: str) -> Iterator[tuple[str, str]]:
    """The faults of an exercise's parts, each with how to correct it."""
    course = desk.course
    exercise, contract = course.exercises[name], desk.oracle.contracts[name]
    unit = course.unit_of[name]
    if len(exercise.hints) != 3:
        yield (
            f"has {counted(len(exercise.hints), 'hint')}, not three",
            "write three sentences into `hints` in course.toml, from a nudge to nearly the answer",
        )
    title = next(one.title for one in course.units if one.name == unit)
    hints = sum(wording.TODO in hint for hint in exercise.hints)
    for slots, what in ((wording.TODO in title, "the unit's title"), (hints, f"{hints} hints")):
        if slots:
            yield f"left for a person: {what}", f"write in place of {wording.TODO} in course.toml"
    for hidden, kind, folder in (
        (False, "public", "exercises/checks"),
        (True, "hidden", "solutions/graders"),
    ):
        if not any(test.hidden is hidden for test in desk.tests[name]):
            yield f"has no {kind} test", f"add one to {folder}/test_{unit}.py"
    stub_file = course.stub_file(unit)
    for fault in wording.faults(
        statement(course, name), contract, bool(exercise.forbidden), exercise.heart
    ):
        yield fault, f"correct the docstring of {name} in {stub_file}"
    for example in wrong_examples(course, name, desk.definitions):
        yield str(example), "correct the example or the reference"
    for kind, lack, function in KNOWN:
        if not desk.replays.library.of(name, kind):
            yield (
                f"not proved: the tests have met {lack}",
                f"add {function}(…) to solutions/mistakes/{unit}.py",
            )
    if Trials(desk, name).memory_suffices():
        yield (
            "is solved by remembering the answers of the public checks",
            f"add a hidden test with other inputs to solutions/graders/test_{unit}.py",
        )
