"""Turns the results of an exercise's tests on known answers and mutants into findings.

Each finding about a fault says how to correct the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from grader.author.counterexamples import Shown
from grader.author.findings import EXCUSES, Audited, Excuses
from grader.author.mutants import Mutant
from grader.author.trials import UNPROVED, Crash
from grader.course.collection import Test
from grader.grading.desk import Measured
from grader.mistakes import Library, Variant
from grader.records.faults import CallError
from grader.records.grade import OPERATIONS, SIGNATURE, ExerciseResult
from grader.records.rows import counted


def unfit(test: Test, unit: str) -> Audited:
    """The finding that the reference fails a test in this process."""
    text = f"the reference fails {test.name} outside a jail"
    advice = "correct the test or the reference; both must work without a jail, too"
    name = f"{test.exercise}/{test.name}"
    return Audited(test.exercise, unit, "exercise", name, False, text, test.place, advice=advice)


def unrecordable(test: Test, unit: str, why: CallError) -> Audited:
    """The finding that `grader release student` would refuse a public check."""
    text = str(why).removeprefix(f"{test.place}: ")
    name = f"{test.exercise}/{test.name}"
    return Audited(test.exercise, unit, "exercise", name, False, text, test.place)


def crash(crash: Crash, unit: str) -> Audited:
    """The finding that a test raised an exception by its own fault."""
    test = crash.test
    name = f"{test.exercise}/{test.name}{'' if test.hidden else ' (public)'}"
    text = f"crashes on {crash.answer}, which proves nothing: {crash.text}"
    advice = "correct the test: only an answer may raise, or an assertion fail"
    return Audited(test.exercise, unit, "test", name, False, text, test.place, advice=advice)


def right(kind: Literal["reference", "accepted"], id: str, result: ExerciseResult) -> Audited:
    """The finding about the reference or another right answer, which must pass all tests."""
    advice = {
        "reference": f"correct solutions/{result.unit}.py, or the test",
        "accepted": "if it is right, loosen the test, as with `within=` for another rounding; "
        "else declare it as a mistake",
    }
    return _known(kind, id, result, result.solved, advice[kind])


def stub(id: str, result: ExerciseResult) -> Audited:
    """The finding about the stub, which must count as missing."""
    missing = {test.status for test in result.tests} == {"missing"} and result.points == 0
    advice = f"end it with `raise NotImplementedError` in exercises/{result.unit}.py"
    return _known("stub", id, result, missing, advice)


def _known(
    kind: Literal["reference", "accepted", "stub"],
    id: str,
    result: ExerciseResult,
    well: bool,
    advice: str,
) -> Audited:
    return Audited(
        result.name,
        result.unit,
        kind,
        id,
        well,
        _first_message(result),
        points=result.points,
        given=_names_given(result),
        advice="" if well else advice,
    )


def _first_message(result: ExerciseResult) -> str:
    """The points, and the first message that a student would read, in a line."""
    points = _points(result)
    for test in result.tests:
        if test.status == "grader_error":
            return f"{points}: {test.name} crashes"
        if test.status not in ("passed", "skipped"):
            text = " ".join((test.mistake or test.message_with_case or "").split())
            return f"{points}: {test.name} {test.status}: {text}"
    return points


def _points(result: ExerciseResult) -> str:
    return f"{result.points:g} of {result.max:g}"


def _names_given(result: ExerciseResult) -> tuple[str, ...]:
    return tuple(sorted({test.mistake for test in result.tests if test.mistake}))


def mistake(
    library: Library, variant: Variant, result: ExerciseResult, excuses: Excuses
) -> Audited:
    """The finding about a mistake, which tests must catch, and the grading must name rightly."""
    alike = {v.title for v in library.of(variant.exercise, "mistake") if v.slug in variant.same_as}
    # A crash costs points, too, but proves nothing.
    caught = result.points < result.max and (
        not result.faulty or any(test.status not in UNPROVED for test in result.tests)
    )
    names = {*_names_given(result)}
    named = bool(names) and names <= {variant.title, *alike}
    # The messages of these checks say exactly what is wrong, so the mistake needs no name.
    engine = (SIGNATURE, OPERATIONS)
    exact = any(test.name in engine and test.status == "failed" for test in result.tests)
    excuse = None if names or exact else excuses.undiagnosed.get(variant.id)
    text, advice = f"keeps {_first_message(result)}", ""
    if not caught:
        text = "keeps its points"
        advice = "add a hidden test that it fails; or declare it with `accepted`, if it is right"
    elif names and not named:
        others = ", ".join(sorted(names))
        text = f"keeps {_points(result)}, and gets the name of another mistake: {others}"
        advice = (
            "add an input on which the two differ; if there is none, declare "
            'same_as={"the-other": "the reason"} for both'
        )
    elif not (named or exact):
        text = excuse or f"not named: {text}"
        advice = (
            "does another mistake give the same results? then add an input on which they differ, "
            f"or declare same_as=; else name it in {EXCUSES} under [undiagnosed], with the reason"
        )
    well = caught and (named or (not names and (exact or excuse is not None)))
    return Audited(
        variant.exercise,
        library.unit_of[variant.exercise],
        "mistake",
        variant.id,
        well,
        text,
        named=named if caught else None,
        excused=caught and excuse is not None,
        points=result.points,
        given=_names_given(result),
        advice="" if well else advice,
    )


def mutant(
    exercise: str,
    mutant: Mutant,
    unit: str,
    killers: frozenset[str],
    excuse: str | None,
    shown: Shown | None,
) -> Audited:
    """The finding about a mutant, which a hidden test must catch.

    `shown` says on which input a surviving mutant differs from the reference.
    """
    well = bool(killers or excuse)
    text = ", ".join(sorted(killers)) or excuse or f"survives: {mutant.description}"
    advice = (
        "add such an input to a hidden test; --suggest proposes a mistake for it"
        if shown is not None and shown.found
        else f"if it computes the same, name it in {EXCUSES} under [equivalent], with the reason; "
        "else add a hidden test that it fails"
    )
    return Audited(
        exercise,
        unit,
        "mutant",
        mutant.id,
        well,
        text,
        excused=bool(excuse),
        witness=shown.text if shown is not None else "",
        differs=shown.found if shown is not None else None,
        advice="" if well else advice,
    )


def test(
    test: Test, unit: str, catchers: Mapping[str, frozenset[str]], excuses: Excuses
) -> Audited:
    """The finding about a hidden test, which must catch a wrong answer that no other test catches.

    `catchers` are the hidden tests that catch each wrong answer.
    """
    id = f"{test.exercise}/{test.name}"
    caught = [variant for variant, tests in catchers.items() if test.name in tests]
    alone = [variant for variant in caught if len(catchers[variant]) == 1]
    # A test that catches no wrong answer has no excuse: it may have lost its assertions.
    excuse = excuses.kept.get(id) if caught and not alone else None
    advice = (
        f"declare a mistake that only it catches, in solutions/mistakes/{unit}.py; or remove it"
    )
    if alone:
        text, advice = f"alone catches {counted(len(alone), 'wrong answer')}, like {alone[0]}", ""
    elif caught:
        text = excuse or f"catches {len(caught)} wrong answers, but other tests catch each too"
        advice = (
            "" if excuse else f"{advice}; or name it in {EXCUSES} under [kept], with the reason"
        )
    else:
        text = "catches no wrong answer"
    well = bool(alone or excuse)
    return Audited(
        test.exercise, unit, "test", id, well, text, test.place, excused=bool(excuse), advice=advice
    )


def margin(measured: list[Measured], unit: str, id: str, excuses: Excuses) -> Audited:
    """A finding about the comparison of a known answer that came nearest to its tolerance.

    `measured` has the margins of this answer, and is emptied for the next answer.
    """
    near = min(measured, key=lambda one: one[2].distance, default=None)
    measured.clear()
    if near is None:
        return Audited(id.partition("/")[0], unit, "margin", id, True, "nothing is compared")
    test, case, margin = near
    excuse = excuses.near.get(id) if margin.doubtful else None
    well = not margin.doubtful or excuse is not None
    text = f"{margin.ratio:.3g} times the tolerance, in {test.name}[{case.label}]"
    advice = (
        "another processor may decide otherwise: choose inputs on which wrong answers differ more, "
        "or another `within=`, or "
        f"name it in {EXCUSES} under [near], with the reason"
    )
    return Audited(
        test.exercise,
        unit,
        "margin",
        id,
        well,
        excuse or text,
        excused=excuse is not None,
        ratio=margin.ratio,
        advice="" if well else advice,
    )
