"""Records the outcomes of public checks, which replace the solutions in a student's bundle.

Each public check runs on the references and on every known mistake, unless the sheet in the user's
cache already has the outcome. The sheet's public rows are the recording. A recording contains no
code of a reference or a mistake, and no hidden test.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from grader.author.examples import wrong_examples
from grader.course.collection import Case, Test
from grader.course.course import Course
from grader.grading.asking import asked_in
from grader.grading.behaviour import Behaviour, right_behaviour
from grader.grading.desk import Desk
from grader.grading.diagnosis import shows_numbers
from grader.grading.order import Order, basis
from grader.grading.recorded import Asked, asked_key
from grader.grading.replays import Given
from grader.grading.rows import Key, Rows, cache, kept_under, stored_size, write_rows
from grader.grading.sheet import Entry, NamedMistake, Sheet
from grader.mistakes import Variant, load_library
from grader.records.faults import CallError
from grader.run.workers import share
from grader.sandbox.session import Nowhere


def record_course(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
    most: int | None = None,
) -> None:
    """Write a course's recordings and untouched stubs into the folder `to`.

    Calls `report` with each exercise that is completely recorded. If the results of known mistakes
    take more than `most` bytes, those of the largest exercises are left out: checks then work as
    before, but name no mistake there. Raises `CallError` if an example or a check is wrong of the
    reference, or if a check passes a student's result on to the reference.
    """
    course.require_solutions("release")
    (to / "stubs").mkdir(parents=True, exist_ok=True)
    for unit in course.units:
        shutil.copyfile(course.stub_file(unit.name), to / "stubs" / f"{unit.name}.py")
    files = dict.fromkeys(course.check_files(), False)
    order = Order(
        course,
        course.seed,
        files,
        isolation="weak",
        backend=nullcontext(Nowhere()),
        keeps_sheet=True,
    )
    with kept_under(basis(order)) as rows:
        lacking = [name for name in course.exercises if _entry(rows, name) is None]
        for name in course.exercises:
            if name not in lacking:
                report(name)
        # Begin with the later exercises, which take longer, so that the last to end are short.
        for name in share(order, _find_out, lacking[::-1], jobs):
            report(name)
        single = {variant.id for variant in load_library(course).variants}
        public = {name: _public(rows, course, name, single) for name in course.exercises}
        if most is not None:
            public = _within(public, most)
        write_rows(to / course.sheet.name, dict(chain(*(own.items() for own in public.values()))))


def _entry(rows: Rows, exercise: str) -> Entry | None:
    return rows.get(Key("exercise", exercise), Entry)


def _public(rows: Rows, course: Course, name: str, single: Collection[str]) -> dict[Key, bytes]:
    """An exercise's rows that a student may have; they do not depend on earlier gradings.

    `single` are the ids of the course's known mistakes, without pairs.
    """
    public: dict[Key, bytes] = {}
    entry = _entry(rows, name)
    if entry is None:
        raise CallError(
            f"the recordings of {name} could not be kept in {cache()}: is there room, and can you "
            "write there?"
        )
    public[Key("exercise", name)] = msgspec.msgpack.encode(entry)
    if (behaviour := rows.get(Key("facts", name), Behaviour)) is not None:
        public[Key("facts", name)] = msgspec.msgpack.encode(behaviour)
    answers = {"", *(f"{name}/{mistake.slug}" for mistake in entry.mistakes)}
    for test in entry.tests:
        found = dict(rows.public(test))
        for key, value in found.items():
            if (
                key.kind == "asked"
                or (key.kind == "gave" and key.name in answers)
                or (key.name in single and _may_follow(course, name, key, found))
            ):
                public[key] = value
    return public


def _within(public: Mapping[str, dict[Key, bytes]], most: int) -> dict[str, dict[Key, bytes]]:
    """The rows, without the mistakes of the largest exercises if these exceed `most` bytes."""
    left = most
    sizes = {name: stored_size(map(own.__getitem__, _known(own))) for name, own in public.items()}
    fitting = dict(public)
    for name in sorted(sizes, key=sizes.__getitem__):
        left -= sizes[name]
        if left < 0:
            fitting[name] = _without_mistakes(name, public[name])
    return fitting


def _known(rows: Iterable[Key]) -> list[Key]:
    """The keys of results of known mistakes."""
    return [key for key in rows if key.kind == "built" or (key.kind == "gave" and key.name)]


def _without_mistakes(name: str, rows: Mapping[Key, bytes]) -> dict[Key, bytes]:
    entry = msgspec.msgpack.decode(rows[Key("exercise", name)], type=Entry)
    bare = msgspec.structs.replace(entry, mistakes=[])
    known = {*_known(rows)}
    kept = {key: value for key, value in rows.items() if key not in known}
    return kept | {Key("exercise", name): msgspec.msgpack.encode(bare)}


def _may_follow(course: Course, exercise: str, key: Key, found: Mapping[Key, bytes]) -> bool:
    """Whether a mistake in a required exercise gives wrong numbers in this case.

    A case in which the mistake raises an exception does not count: see `Diagnosis.follows`. The
    text of the exception would also tell students how to fake the mistake.
    """
    if key.kind != "built":
        return False
    base = key.name.partition("/")[0]
    gone = found.get(key._replace(name=_gone(base).id))
    if base not in course.exercises[exercise].requires or gone is None or _given(gone).passed:
        return False
    given = _given(found[key])
    return not given.passed and shows_numbers(given.results)


def _given(value: bytes) -> Given:
    return msgspec.msgpack.decode(value, type=Given)


def _gone(exercise: str) -> Variant:
    """A version of an exercise that always raises; it shows which cases use the exercise."""
    text = f"def {exercise}(*_): raise RuntimeError"
    return Variant(exercise, "(gone)", "mistake", "", "", text)


# --- at a desk -----------------------------------------------------------------------------------


def _find_out(desk: Desk, name: str) -> str:
    """Add all public rows of an exercise to the desk's sheet; return the exercise's name."""
    sheet = desk.sheet
    assert sheet is not None
    for example in wrong_examples(desk.course, name, desk.definitions):
        raise CallError(str(example))
    tests = desk.tests[name]
    cases = [(test, case) for test in tests for case in test.cases]
    for test, case in cases:
        make = desk.make_for(test, case)
        for exercise, asked in asked_in(desk, test, case).items():
            sheet.once(asked_key(make, exercise), Asked, partial(Asked, asked.made, asked.calls))
        sheet.given(None, test.key, case.label)
    caught = list(_caught(sheet, name, cases))
    # Only direct prerequisites are needed: the checks of the exercises in between name the mistakes
    # of earlier prerequisites.
    for base in desk.course.exercises[name].requires:
        using = [
            at for at in cases if not sheet.built_on(_gone(base), at[0].key, at[1].label).passed
        ]
        for mistake in sheet.mistakes(base):
            for test, case in using:
                sheet.built_on(mistake, test.key, case.label)
    right_behaviour(desk, name)
    entry = Entry(desk.oracle.contracts[name], [test.key for test in tests], caught)
    sheet.once(Key("exercise", name), Entry, lambda: entry)
    return name


def _caught(sheet: Sheet, name: str, cases: Sequence[tuple[Test, Case]]) -> Iterator[NamedMistake]:
    """The mistakes, and pairs of mistakes, that fail a public check with results to compare."""
    pairs = sheet.pairs(name)
    for variant in (*sheet.mistakes(name), *pairs):
        givens = [sheet.given(variant, test.key, case.label) for test, case in cases]
        if any(given.results for given in givens):  # a case that passes has no results
            yield NamedMistake(
                variant.slug,
                variant.title,
                variant.hint,
                variant in pairs,
                tuple(variant.same_as),
                variant.breaks,
            )
