"""Audits a course: its tests must catch wrong answers, accept right answers, and all be needed.

The audit runs an exercise's tests on all known answers: the reference, the stub, accepted answers,
and known mistakes. It grades them in a jail, like submissions. It also runs hidden tests on mutants
of the reference. Mutants are the kit's own code, so they run in this process, in milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import cache, partial

from grader.author import judgements
from grader.author.counterexamples import Search, Shown
from grader.author.findings import KINDS, Audited, Excuses, read_excuses, unneeded
from grader.author.mutants import mutants_of
from grader.author.parts import faults
from grader.author.rules import Tried, doubts
from grader.author.slips import (
    refuse_idle_tests,
    refuse_slips,
    refuse_slips_in_answers,
    refuse_unknown_operations,
)
from grader.author.suggestions import suggestion
from grader.author.trials import Trials
from grader.author.wording import TODO
from grader.course.course import COMMON, SOLUTIONS, Course, place_of
from grader.course.statements import statement
from grader.grading.asking import asked_in
from grader.grading.desk import Desk
from grader.grading.opening import sheet_of
from grader.grading.order import Order
from grader.intake import Submission
from grader.mistakes import Variant, load_library
from grader.questions.choice import choose
from grader.questions.study import Unfit, study
from grader.records.faults import CallError
from grader.records.rows import counted
from grader.run.workers import share
from grader.sandbox.session import Backend
from grader.wire import SourceText


def audit_course(
    course: Course,
    only: Sequence[str],
    jobs: int,
    report: Callable[[Sequence[Audited]], object] = lambda _: None,
    *,
    seed: str | None = None,
    seeds: int = 1,
    backend: AbstractContextManager[Backend] | None = None,
    asks: bool = False,
) -> list[Audited]:
    """Audit exercises; `report` gets the findings of each exercise as soon as they are known.

    Tests run with `seed`, by default the course's hidden seed, and with further seeds that are
    derived from it, `seeds` in all. If `backend` is given, jails come from there, and `jobs` is 1.
    With `asks`, questions about the references are sought, too.
    """
    _refuse_unread(course)
    refuse_slips(course)
    excuses, own = read_excuses(course)
    seed = seed or course.hidden_seed()
    order = Order(
        course, seed, course.tests_of(only), tuple(only), isolation="weak", backend=backend
    )
    findings: list[Audited] = []
    # Start with the exercises that take longest: then all processes end at about the same time.
    library = load_library(course)
    refuse_slips_in_answers(course, library, only)
    size = Counter(variant.exercise for variant in library.variants)
    names = sorted(only, key=lambda name: -size[name])
    for of_one in share(order, partial(_examine, excuses, own, seeds, asks), names, jobs):
        findings += of_one
        report(of_one)
    place = {name: number for number, name in enumerate(course.exercises)}
    return sorted(findings, key=lambda f: (f.seed, place[f.exercise], KINDS.index(f.kind)))


def _refuse_unread(course: Course) -> None:
    """Raise `CallError` for a file of tests or mistakes that no unit reads."""
    units = {unit.name for unit in course.units}
    tests = {f"test_{unit}.py" for unit in units}
    mistakes = {f"{unit}.py" for unit in units} | {COMMON}
    read = {*course.check_files(), *course.grader_files()}
    folders = [(course.folder / "checks", "test_*.py", tests)]
    private = [course.private / SOLUTIONS] if course.private is not None else []
    for solutions in (course.solutions, *private):
        folders.append((solutions / "graders", "test_*.py", tests))
        folders.append((solutions / "mistakes", "*.py", mistakes))
    for folder, pattern, known in folders:
        for path in sorted(folder.glob(pattern)):
            if path.name not in known and path not in read and not path.name.startswith("_"):
                raise CallError(
                    f"{path}: no unit of course.toml is called "
                    f"{path.stem.removeprefix('test_')!r}, so this file is never read: rename it, "
                    "or move its content to a unit's file"
                )


# --- one exercise --------------------------------------------------------------------------------


def _examine(
    excuses: Excuses, own: Excuses, seeds: int, asks: bool, desk: Desk, name: str
) -> list[Audited]:
    """All findings about an exercise; faults of its parts and its stub depend on no seed."""
    refuse_unknown_operations(desk.course, name)
    refuse_idle_tests(desk.tests[name])
    unit = desk.course.unit_of[name]
    findings = [
        Audited(name, unit, "exercise", f"{name}/{fault}", False, fault, place, advice=advice)
        for place, fault, advice in faults(desk, name)
    ]
    stub = SourceText(f"{unit}.py", (desk.course.stub_file(unit).read_text("utf-8"),))
    id = f"{name}/stub"
    findings.append(judgements.stub(id, Trials(desk, name).graded(id, (stub,))))
    findings += _unrecordable(desk, name)
    shown = _search(desk, name)
    for number in range(1, seeds + 1):
        with _reseeded(desk, number) as other:
            findings += (replace(f, seed=number) for f in _findings(excuses, other, name, shown))
    if asks and (most := desk.course.file.questions):
        findings.append(_asked(desk, name, most))
    findings += unneeded(desk.course, own, name, findings)
    return list(_placed(desk, name, findings))


def _placed(desk: Desk, name: str, findings: Sequence[Audited]) -> Iterator[Audited]:
    """The findings; those without a place get that of the known answer, stub or reference."""
    course, unit, known = desk.course, desk.course.unit_of[name], desk.replays.library.variants
    places = {variant.id: variant.place for variant in known if variant.exercise == name}
    stub = place_of(course.stub_file(unit), name)
    reference = place_of(course.reference_file(unit), name)
    for finding in findings:
        own = stub if finding.kind in ("stub", "rule") else reference
        yield replace(finding, place=finding.place or places.get(finding.name, own))


def _unrecordable(desk: Desk, name: str) -> Iterator[Audited]:
    """The public checks that `grader release student` would refuse; their seed is always the same.

    A check that the reference fails or that crashes is a finding of its own.
    """
    trials, unit = Trials(desk, name), desk.course.unit_of[name]
    for test in desk.tests[name]:
        if test.hidden or trials.outcome("reference", desk.definitions, test) != "passed":
            continue
        try:
            for case in test.cases:
                asked_in(desk, test, case)
        except CallError as error:
            yield judgements.unrecordable(test, unit, error)


def _asked(desk: Desk, name: str, most: int) -> Audited:
    """The finding on the questions that `grader ask` has about the reference."""
    why = ""
    try:
        reference = desk.replays.library.submission(name)
        found = choose(study(desk, Submission(name, reference), name), most, desk.course.seed)
    except Unfit as unfit:
        found, why = [], f": {unfit}"
    text = f"{len(found)} of {counted(most, 'question')}{why}"
    unit, id = desk.course.unit_of[name], f"{name}/questions"
    return Audited(name, unit, "question", id, True, text, excused=len(found) < most)


@contextmanager
def _reseeded(desk: Desk, number: int) -> Iterator[Desk]:
    """The desk with another seed; it has the same references, tests and known answers."""
    if number == 1:
        yield desk
        return
    other = replace(desk, seed=f"{desk.seed} {number}", sheet=None)
    with closing(other):
        other.sheet = sheet_of(other, desk.replays.library)
        yield other


def _search(desk: Desk, name: str) -> Callable[[Variant], Shown]:
    """A function that searches for an input on which an answer differs from the reference."""
    search = cache(lambda: Search(desk, name))  # most courses need none
    known: dict[str, Shown] = {}

    def shown(variant: Variant) -> Shown:
        if variant.id not in known:
            answer = desk.replays.definitions(variant)[name]
            known[variant.id] = search().difference(answer, passes=variant.kind != "accepted")
        return known[variant.id]

    return shown


def _findings(
    excuses: Excuses, desk: Desk, name: str, shown: Callable[[Variant], Shown]
) -> Iterator[Audited]:
    """Run an exercise's tests on all known answers and mutants."""
    library, unit = desk.replays.library, desk.course.unit_of[name]
    trials = Trials(desk, name)
    # This loop also makes torch load its lazy parts: otherwise the first mutant might time out.
    for test in desk.tests[name]:
        if trials.outcome("reference", desk.definitions, test) == "failed":
            yield judgements.unfit(test, unit)
    catchers: dict[str, frozenset[str]] = {}  # the hidden tests that catch each wrong answer
    tried: list[Tried] = []
    with desk.measuring() as measured:
        id = f"{name}/reference"
        result = trials.graded(id, library.submission(name))
        yield judgements.margin(measured, unit, id, excuses)
        yield judgements.right("reference", id, result)
        for variant in library.of(name, "accepted"):
            result = trials.graded(variant.id, library.submission(name, variant))
            yield judgements.margin(measured, unit, variant.id, excuses)
            finding = judgements.right("accepted", variant.id, result)
            yield finding if finding.well else _with(finding, shown(variant))
        for variant in (*library.of(name, "mistake"), *library.of(name, "pair")):
            result = trials.graded(variant.id, library.submission(name, variant))
            yield judgements.margin(measured, unit, variant.id, excuses)
            finding = judgements.mistake(library, variant, result, excuses)
            caught = finding.named is not None
            yield finding if caught else _with(finding, shown(variant))
            catchers[variant.id] = trials.catchers(variant, result)
            tried.append(Tried(variant, result, catchers[variant.id]))
    taken = {variant.slug for variant in library.variants if variant.exercise == name}
    for mutant in mutants_of(library.sources[unit], name):
        variant = Variant(name, mutant.id.partition("/")[2], "mistake", "", "", mutant.definition)
        catchers[mutant.id] = killers = trials.killers(variant)
        excuse = None if killers else excuses.equivalent.get(mutant.id)
        found = None if killers or excuse else shown(variant)
        finding = judgements.mutant(name, mutant, unit, killers, excuse, found)
        if not finding.well:
            text = suggestion(library.sources[unit], name, mutant, taken)
            finding = replace(finding, suggestion=text)
        yield replace(finding, place=f"{desk.course.reference_file(unit)}:{mutant.line}")
    for test in desk.tests[name]:
        crash = trials.crashes.get(test.key)
        if crash is not None:
            yield judgements.crash(crash, unit)
        elif test.hidden:
            yield judgements.test(test, unit, catchers, excuses)
    stated, heart = statement(desk.course, name), desk.course.exercises[name].heart
    for key, doubt in doubts(stated, desk.tests[name], tried, heart) if stated.formal else ():
        if key != TODO:
            yield Audited(name, unit, "rule", f"{name}/{key}", not doubt, doubt or "proved")


def _with(finding: Audited, shown: Shown) -> Audited:
    return replace(finding, witness=shown.text, differs=shown.found)
