"""Audits a course: its tests must catch wrong answers, accept right answers, and all be needed.

The audit runs an exercise's tests on all known answers: the reference, the stub, accepted answers,
and known mistakes. It grades them in a jail, like submissions. It also runs hidden tests on mutants
of the reference. Mutants are the kit's own code, so they run in this process, in milliseconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import FrameType
from typing import Annotated, Any, Literal, get_args

import msgspec

from grader.author import wording
from grader.author.mutants import mutants_of
from grader.author.rules import Tried, doubts
from grader.author.slips import (
    refuse_idle_excuses,
    refuse_idle_tests,
    refuse_slips,
    refuse_slips_in_answers,
    refuse_unknown_operations,
)
from grader.course.collection import Test
from grader.course.course import COMMON, SOLUTIONS, Course
from grader.course.file import about, decode_table
from grader.course.statements import statement
from grader.grading.desk import Desk, Measured
from grader.grading.ladder import FOUNDATIONS, grade_alone
from grader.grading.order import Order
from grader.grading.play import replay
from grader.intake import Submission
from grader.mistakes import Library, Variant, load_library
from grader.records.faults import CallError
from grader.records.grade import ENGINE_CHECKS, OPERATIONS, SIGNATURE, ExerciseResult
from grader.records.rows import counted
from grader.run.workers import share
from grader.wire import SourceText

FindingKind = Literal[
    "exercise", "reference", "stub", "accepted", "mistake", "mutant", "test", "rule", "margin"
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
TOO_LONG = 3.0  # seconds: a variant that takes longer in a test counts as caught
EXCUSES = "audit.toml"  # a file in the folder of the mistakes


@dataclass(frozen=True)
class Audited:
    """A finding of the audit: whether an answer, test or rule of an exercise is in order."""

    exercise: str
    unit: str
    kind: FindingKind
    name: str
    well: bool
    text: str  # the fault, if any; else the first message, or the tests that catch a mutant
    named: bool | None = None  # whether the grading named a caught mistake rightly
    excused: bool = False  # whether the finding is `well` only because of `EXCUSES`
    points: float | None = None  # the points that a known answer earns
    given: tuple[str, ...] = ()  # the names of mistakes that the grading gave
    # Of the comparison nearest to its tolerance: the difference divided by the tolerance.
    ratio: float | None = None


class Excuses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults that an author accepts, each with the reason."""

    equivalent: Annotated[
        Mapping[str, str], about("Mutants that compute the same results as the reference.")
    ] = {}
    kept: Annotated[
        Mapping[str, str],
        about("Tests that catch only wrong answers that other tests catch too."),
    ] = {}
    undiagnosed: Annotated[
        Mapping[str, str], about("Mistakes that tests catch, but that cannot be named.")
    ] = {}
    near: Annotated[
        Mapping[str, str], about("Known answers whose results come near a tolerance.")
    ] = {}


def audit_course(
    course: Course,
    only: Sequence[str],
    jobs: int,
    report: Callable[[Sequence[Audited]], object] = lambda _: None,
    *,
    seed: str | None = None,
) -> list[Audited]:
    """Audit exercises; `report` gets the findings of each exercise as soon as they are known."""
    _refuse_unread(course)
    refuse_slips(course)
    excuses, own = _read_excuses(course)
    seed = seed or course.hidden_seed()
    order = Order(course, seed, course.tests_of(only), tuple(only), isolation="weak")
    findings: list[Audited] = []
    # Start with the exercises that take longest: then all processes end at about the same time.
    library = load_library(course)
    refuse_slips_in_answers(course, library, only)
    size = Counter(variant.exercise for variant in library.variants)
    names = sorted(only, key=lambda name: -size[name])
    for of_one in share(order, partial(_examine, excuses, own), names, jobs):
        findings += of_one
        report(of_one)
    place = {name: number for number, name in enumerate(course.exercises)}
    return sorted(findings, key=lambda f: (place[f.exercise], KINDS.index(f.kind)))


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


def _read_excuses(course: Course) -> tuple[Excuses, Excuses]:
    """All excuses, and this course's own, which must be needed.

    A private course need not need the excuses of its public course: its seed and tests may differ.
    """
    found = own = Excuses()
    for path in course.layers("mistakes", EXCUSES):
        read = decode_table(path, path.read_text("utf-8"), Excuses)
        refuse_idle_excuses(course, path, [*chain(*msgspec.structs.astuple(read))])
        pairs = (
            (name, getattr(found, name), getattr(read, name)) for name in Excuses.__struct_fields__
        )
        found = Excuses(**{name: {**before, **more} for name, before, more in pairs})
        if course.private is None or course.is_private(path):
            own = read
    return found, own


# --- one exercise --------------------------------------------------------------------------------


def _examine(excuses: Excuses, own: Excuses, desk: Desk, name: str) -> list[Audited]:
    refuse_unknown_operations(desk.course, name)
    refuse_idle_tests(desk.tests[name])
    findings = list(_findings(excuses, desk, name))
    return findings + list(_unneeded(own, name, findings))


def _findings(excuses: Excuses, desk: Desk, name: str) -> Iterator[Audited]:
    library, unit = desk.replays.library, desk.course.unit_of[name]
    # This loop also makes torch load its lazy parts: otherwise the first mutant might time out.
    for test in desk.tests[name]:
        if not all(replay(desk, desk.definitions, test, case).passed for case in test.cases):
            text = "the reference fails this test outside a jail"
            yield Audited(name, unit, "exercise", f"{name}/{test.name}", False, text)
    for fault in _faults(desk, name):
        yield Audited(name, unit, "exercise", f"{name}/{fault}", False, fault)
    catchers: dict[str, frozenset[str]] = {}  # the hidden tests that catch each wrong answer
    tried: list[Tried] = []
    with desk.measuring() as measured:
        result = _graded(desk, name, library.submission(name))
        yield _margin(measured, unit, f"{name}/reference", excuses)
        yield _known(unit, "reference", f"{name}/reference", result, result.solved)
        stub = desk.course.stub_file(unit).read_text("utf-8")
        result = _graded(desk, name, (SourceText(f"{unit}.py", (stub,)),))
        missing = {test.status for test in result.tests} == {"missing"} and result.points == 0
        yield _known(unit, "stub", f"{name}/stub", result, missing)
        for variant in library.of(name, "accepted"):
            result = _graded(desk, name, library.submission(name, variant))
            yield _margin(measured, unit, variant.id, excuses)
            yield _known(unit, "accepted", variant.id, result, result.solved)
        for variant in (*library.of(name, "mistake"), *library.of(name, "pair")):
            result = _graded(desk, name, library.submission(name, variant))
            yield _margin(measured, unit, variant.id, excuses)
            yield _mistake(library, variant, result, excuses)
            catchers[variant.id] = _catchers(desk, variant, result)
            tried.append(Tried(variant, result, catchers[variant.id]))
    for mutant in mutants_of(library.sources[unit], name):
        variant = Variant(name, mutant.id, "mistake", mutant.description, "", mutant.definition)
        catchers[mutant.id] = killers = _killers(desk, variant)
        excuse = None if killers else excuses.equivalent.get(mutant.id)
        text = ", ".join(sorted(killers)) or excuse or f"survives: {mutant.description}"
        yield Audited(
            name, unit, "mutant", mutant.id, bool(killers or excuse), text, excused=bool(excuse)
        )
    yield from _tests(desk, name, catchers, excuses)
    stated, heart = statement(desk.course, name), desk.course.exercises[name].heart
    for key, doubt in doubts(stated, desk.tests[name], tried, heart) if stated.formal else ():
        yield Audited(name, unit, "rule", f"{name}/{key}", not doubt, doubt or "proved")


def _unneeded(excuses: Excuses, exercise: str, findings: Sequence[Audited]) -> Iterator[Audited]:
    """Findings about needless excuses: for answers or tests that are in order or do not exist."""
    needed = {finding.name for finding in findings if finding.excused or not finding.well}
    kinds: tuple[tuple[FindingKind, Mapping[str, str]], ...] = (
        ("mutant", excuses.equivalent),
        ("test", excuses.kept),
        ("mistake", excuses.undiagnosed),
        ("margin", excuses.near),
    )
    for kind, names in kinds:
        for name in names:
            if name.partition("/")[0] == exercise and name not in needed:
                text = f"{EXCUSES} excuses this, but no excuse is needed"
                yield Audited(exercise, findings[0].unit, kind, name, False, text)


def _faults(desk: Desk, name: str) -> Iterator[str]:
    """Faults in an exercise's hints, tests and statement."""
    exercise, contract = desk.course.exercises[name], desk.oracle.contracts[name]
    if len(exercise.hints) != 3:
        yield f"has {counted(len(exercise.hints), 'hint')}, not three"
    for hidden, kind in ((False, "public"), (True, "hidden")):
        if not any(test.hidden is hidden for test in desk.tests[name]):
            yield f"has no {kind} test"
    yield from wording.faults(
        statement(desk.course, name), contract, bool(exercise.forbidden), exercise.heart
    )
    if _memory_suffices(desk, name):
        yield "is solved by remembering the answers of the public checks"


def _known(unit: str, kind: FindingKind, id: str, result: ExerciseResult, well: bool) -> Audited:
    return Audited(
        result.name,
        unit,
        kind,
        id,
        well,
        _first_message(result),
        points=result.points,
        given=_names_given(result),
    )


def _names_given(result: ExerciseResult) -> tuple[str, ...]:
    return tuple(sorted({test.mistake for test in result.tests if test.mistake}))


def _mistake(
    library: Library, variant: Variant, result: ExerciseResult, excuses: Excuses
) -> Audited:
    alike = {v.title for v in library.of(variant.exercise, "mistake") if v.slug in variant.same_as}
    caught = result.points < result.max
    names = {*_names_given(result)}
    named = bool(names) and names <= {variant.title, *alike}
    # The messages of these checks say exactly what is wrong, so the mistake needs no name.
    engine = (SIGNATURE, OPERATIONS)
    exact = any(test.name in engine and test.status == "failed" for test in result.tests)
    excuse = None if names or exact else excuses.undiagnosed.get(variant.id)
    text = _first_message(result)
    if not caught:
        text = "keeps its points"
    elif names and not named:
        text = f"gets the name of another mistake: {', '.join(sorted(names))}"
    elif not (named or exact):
        text = excuse or f"not named: {text}"
    return Audited(
        variant.exercise,
        library.unit_of[variant.exercise],
        "mistake",
        variant.id,
        caught and (named or (not names and (exact or excuse is not None))),
        text,
        named if caught else None,
        excused=caught and excuse is not None,
        points=result.points,
        given=_names_given(result),
    )


def _tests(
    desk: Desk, name: str, catchers: Mapping[str, frozenset[str]], excuses: Excuses
) -> Iterator[Audited]:
    """Findings about hidden tests: each must catch a wrong answer that no other test catches."""
    unit = desk.course.unit_of[name]
    for test in desk.tests[name]:
        if not test.hidden:
            continue
        id = f"{name}/{test.name}"
        caught = [variant for variant, tests in catchers.items() if test.name in tests]
        alone = [variant for variant in caught if len(catchers[variant]) == 1]
        # A test that catches no wrong answer has no excuse: it may have lost its assertions.
        excuse = excuses.kept.get(id) if caught and not alone else None
        if alone:
            text = f"alone catches {counted(len(alone), 'wrong answer')}, like {alone[0]}"
        elif caught:
            text = excuse or f"catches {len(caught)} wrong answers, but other tests catch each too"
        else:
            text = "catches no wrong answer"
        yield Audited(name, unit, "test", id, bool(alone or excuse), text, excused=bool(excuse))


def _margin(measured: list[Measured], unit: str, id: str, excuses: Excuses) -> Audited:
    """A finding about the comparison of a known answer that came nearest to its tolerance.

    `measured` has the margins of this answer, and is emptied for the next answer.
    """
    near = min(measured, key=lambda one: one[2].distance, default=None)
    measured.clear()
    if near is None:
        return Audited(id.partition("/")[0], unit, "margin", id, True, "nothing is compared")
    test, case, margin = near
    excuse = excuses.near.get(id) if margin.doubtful else None
    text = f"{margin.ratio:.3g} of the tolerance, in {test.name}[{case.label}]"
    return Audited(
        test.exercise,
        unit,
        "margin",
        id,
        not margin.doubtful or excuse is not None,
        excuse or text,
        excused=excuse is not None,
        ratio=margin.ratio,
    )


# --- running tests -------------------------------------------------------------------------------


def _graded(desk: Desk, exercise: str, sources: tuple[SourceText, ...]) -> ExerciseResult:
    """Grade an exercise in a jail, like a submission."""
    with desk.seat(Submission(exercise, sources), [exercise]) as seat:
        return grade_alone(desk, seat, exercise)


def _first_message(result: ExerciseResult) -> str:
    """The points, and the first message that a student would read, in a line."""
    for test in result.tests:
        if test.status not in ("passed", "skipped"):
            text = " ".join((test.mistake or test.message_with_case or "").split())
            return f"{result.points:g} of {result.max:g}: {test.name} {test.status}: {text[:160]}"
    return f"{result.points:g} of {result.max:g}"


class _Late(BaseException):
    """Raised in a known answer or mutant that takes too long."""


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, stop)
    # CPU time: unlike time on the clock, it does not depend on how busy the machine is.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _catchers(desk: Desk, variant: Variant, result: ExerciseResult) -> frozenset[str]:
    """The hidden tests that would catch a mistake if the exercise had no public checks."""
    rungs = {test.name: test.rung for test in desk.tests[variant.exercise]}
    failed = [t for t in result.tests if t.status not in ("passed", "skipped", "missing")]
    if any(not t.hidden and rungs.get(t.name) in FOUNDATIONS for t in failed):
        return _killers(desk, variant)  # the failed public check may have skipped hidden tests
    return frozenset(test.name for test in failed if test.hidden and test.name not in ENGINE_CHECKS)


def _killers(desk: Desk, variant: Variant) -> frozenset[str]:
    """The hidden tests that catch a variant; they run in this process."""
    tests = [test for test in desk.tests[variant.exercise] if test.hidden]
    try:
        definitions = desk.replays.definitions(variant)
    except Exception:  # executing the variant's definition raises an exception
        return frozenset(test.name for test in tests)
    killers: set[str] = set()
    failed_at: str | None = None
    for test in tests:
        # As in a grading, tests are skipped if a foundation of a lower rung failed.
        if failed_at in (None, test.rung) and not _passes(desk, definitions, test):
            killers.add(test.name)
            failed_at = test.rung if test.rung in FOUNDATIONS else None
    return frozenset(killers)


def _passes(desk: Desk, definitions: Mapping[str, Any], test: Test) -> bool:
    try:
        with _no_longer_than(TOO_LONG):
            return all(replay(desk, definitions, test, case).passed for case in test.cases)
    except _Late:
        return False


def _memory_suffices(desk: Desk, name: str) -> bool:
    """Whether a table of the public checks' inputs and results passes all hidden tests."""
    reference = desk.definitions[name]
    if isinstance(reference, type):
        return False  # a module's results depend on its weights, which differ in hidden tests
    remembered: dict[str, Any] = {}

    def learn(*arguments: Any, **by_name: Any) -> Any:
        value = reference(*arguments, **by_name)
        remembered[repr((arguments, by_name))] = value
        return value

    def recall(*arguments: Any, **by_name: Any) -> Any:
        return remembered[repr((arguments, by_name))]

    for test in desk.tests[name]:
        if not test.hidden:
            _passes(desk, {**desk.definitions, name: learn}, test)
    paid = (test for test in desk.tests[name] if test.hidden and test.weight > 0)
    return all(_passes(desk, {**desk.definitions, name: recall}, test) for test in paid)


# --- counting ------------------------------------------------------------------------------------


def audit_totals(findings: Sequence[Audited]) -> dict[str, dict[str, tuple[int, int]]]:
    """For each unit and kind of finding: the number of findings in order, and of all findings.

    Excused findings, such as a surviving mutant, do not count as in order. For mistakes, the first
    number is the number of caught mistakes. The entry "named" counts the mistakes that were named
    rightly.
    """
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for unit in dict.fromkeys(finding.unit for finding in findings):
        row: dict[str, tuple[int, int]] = {}
        for kind in KINDS:
            own = [f for f in findings if (f.unit, f.kind) == (unit, kind)]
            row[kind] = sum(f.well and not f.excused for f in own), len(own)
            if kind == "mistake":
                row[kind] = sum(f.named is not None for f in own), len(own)
                row["named"] = sum(f.named is True for f in own), len(own)
        counted[unit] = row
    return counted


def nearest_margins(findings: Sequence[Audited]) -> list[Audited]:
    """The findings nearest to a tolerance: the largest ratio up to 1, and the smallest above 1."""
    measured = [(f.ratio, f) for f in findings if f.ratio is not None]
    below = max((m for m in measured if m[0] <= 1), key=lambda m: m[0], default=None)
    above = min((m for m in measured if m[0] > 1), key=lambda m: m[0], default=None)
    return [one[1] for one in (below, above) if one is not None]


# --- machines ------------------------------------------------------------------------------------
#
# Verdicts must not depend on the processor. Results are rounded differently on other processors,
# since torch's libraries choose kernels that suit the processor. Environment variables can make
# these libraries choose kernels as on an older processor. The libraries read the variables only
# when a process starts, so each setting is audited in a process of its own.


_SCALAR = {"ATEN_CPU_CAPABILITY": "default"}
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    _SCALAR,
    {**_SCALAR, "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
)


class NotAudited(Exception):
    """Raised if an audit's process failed, with its exit code; the process printed the reason."""


@dataclass(frozen=True)
class SettingVerdict:
    """The part of a finding that must not depend on the processor."""

    well: bool
    excused: bool
    points: float | None
    given: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """A finding with different verdicts under different settings.

    A verdict is None if the audit under that setting lacks the finding.
    """

    kind: FindingKind
    name: str
    verdicts: tuple[SettingVerdict | None, ...]


def label(setting: Mapping[str, str]) -> str:
    """A setting as one would type it in a shell: ``NAME=value NAME=value``."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "as it is"


def audited(setting: Mapping[str, str], arguments: Sequence[str]) -> list[Audited]:
    """Run `grader audit` under a setting with these arguments, and return its findings."""
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "grader", "audit", "--json", *arguments],
        env={**os.environ, **setting},
        stdout=subprocess.PIPE,
        check=False,
    )
    if ran.returncode not in (0, 1):
        raise NotAudited(ran.returncode)
    return msgspec.json.decode(ran.stdout, type=list[Audited])


def differences(audits: Sequence[Sequence[Audited]]) -> Iterator[Difference]:
    """The findings whose verdicts differ between these audits, one audit for each setting."""
    tables = [
        {(f.kind, f.name): SettingVerdict(f.well, f.excused, f.points, f.given) for f in findings}
        for findings in audits
    ]
    for kind, name in dict.fromkeys(case for table in tables for case in table):
        verdicts = tuple(table.get((kind, name)) for table in tables)
        if len({*verdicts}) > 1:
            yield Difference(kind, name, verdicts)
