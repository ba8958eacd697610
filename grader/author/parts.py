"""Checks the parts of an exercise: hints, tests, statement, examples, known answers."""

from __future__ import annotations

from collections.abc import Iterator

from grader.author import wording
from grader.author.examples import wrong_examples
from grader.author.trials import Trials
from grader.course.course import place_of, place_of_key
from grader.course.statements import statement
from grader.grading.desk import Desk
from grader.mistakes import VariantKind
from grader.records.rows import counted

KNOWN: tuple[tuple[VariantKind, str, str], ...] = (
    ("mistake", "no known mistake", "mistake"),
    ("accepted", "no second right answer", "accepted"),
)


def faults(desk: Desk, name: str) -> Iterator[tuple[str, str, str]]:
    """The faults of an exercise's parts: each with its file and line, and how to correct it.

    The place of what is missing is the file in which to write it.
    """
    course = desk.course
    exercise, contract = course.exercises[name], desk.oracle.contracts[name]
    unit = course.unit_of[name]
    entry = place_of_key(course, name, "hints")
    if len(exercise.hints) != 3:
        yield (
            entry,
            f"has {counted(len(exercise.hints), 'hint')}, not three",
            "write three sentences into `hints` in course.toml, from a nudge to nearly the answer",
        )
    title = next(one.title for one in course.units if one.name == unit)
    hints = sum(wording.TODO in hint for hint in exercise.hints)
    for slots, what in ((wording.TODO in title, "the unit's title"), (hints, f"{hints} hints")):
        if slots:
            advice = f"write in place of {wording.TODO} in course.toml"
            yield entry, f"left for a person: {what}", advice
    graders = course.solution("graders", f"test_{unit}.py")
    for hidden, kind, folder, path in (
        (False, "public", "exercises/checks", course.folder / "checks" / graders.name),
        (True, "hidden", "solutions/graders", graders),
    ):
        if not any(test.hidden is hidden for test in desk.tests[name]):
            yield str(path), f"has no {kind} test", f"add one to {folder}/{path.name}"
    stub = place_of(course.stub_file(unit), name)
    for fault in wording.faults(
        statement(course, name), contract, bool(exercise.forbidden), exercise.heart
    ):
        yield stub, fault, "correct the docstring"
    for example in wrong_examples(course, name, desk.definitions):
        yield example.place, example.text, "correct the example or the reference"
    for kind, lack, function in KNOWN:
        if not desk.replays.library.of(name, kind):
            yield (
                str(course.solution("mistakes", f"{unit}.py")),
                f"not proved: the tests have met {lack}",
                f"add {function}(…) to solutions/mistakes/{unit}.py",
            )
    for variant in desk.replays.library.of(name, "mistake"):
        if wording.TODO in variant.title + variant.hint:
            advice = f"write in place of {wording.TODO}: students read it"
            yield variant.place, f"left for a person: title and hint of {variant.slug}", advice
    if Trials(desk, name).memory_suffices():
        yield (
            str(graders),
            "is solved by remembering the answers of the public checks",
            f"add a hidden test with other inputs to solutions/graders/test_{unit}.py",
        )
