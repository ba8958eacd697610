"""Proof of a course: its tests catch what is wrong, accept what is right, and each is needed.

Whatever is known of an exercise is tried on its tests: the reference and the stub, right answers in
other forms, mistakes that people make, mechanical mutants of the reference. Known answers are
graded in a jail like any submission. Mutants are tried in this process, where one takes
milliseconds; they are our own code.
"""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Literal, get_args

import msgspec

from grader.author import wording
from grader.author.mutants import mutants_of
from grader.author.rules import Tried, doubts
from grader.course.collection import Test
from grader.course.contract import Contract
from grader.course.course import Course
from grader.course.statements import statement
from grader.grading.desk import Desk, Measured
from grader.grading.ladder import FOUNDATIONS, grade_alone
from grader.grading.order import Order
from grader.grading.play import replay
from grader.intake import Submission
from grader.mistakes import Library, Variant, load_library
from grader.records.faults import CallError
from grader.records.grade import FIRSTS, OPERATIONS, SIGNATURE, ExerciseResult
from grader.records.rows import counted
from grader.run.workers import share
from grader.wire import SourceText

FindingKind = Literal[
    "exercise", "reference", "stub", "accepted", "mistake", "mutant", "test", "rule", "margin"
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
TOO_LONG = 3.0  # seconds for one variant on all tests of its exercise
EXCUSES = "audit.toml"  # beside the library


@dataclass(frozen=True)
class Audited:
    """One case: what was tried on which exercise, and what came of it."""

    exercise: str
    unit: str
    kind: FindingKind
    name: str
    well: bool
    text: str  # what is wrong; else what a student would be told, or who caught it
    named: bool | None = None  # a mistake that was caught: whether as what it is
    excused: bool = False  # well only because `EXCUSES` says why
    points: float | None = None  # what a submission earned
    given: tuple[str, ...] = ()  # the mistakes by whose names it was called
    ratio: float | None = None  # of what was measured to what is allowed, nearest to 1


class Excuses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What cannot be proved, each with the reason."""

    equivalent: Mapping[str, str] = {}  # mutants that compute the same
    kept: Mapping[str, str] = {}  # tests that tell of nothing that no other test tells of
    undiagnosed: Mapping[str, str] = {}  # mistakes that are caught, and cannot be named
    near: Mapping[str, str] = {}  # known answers that come near a tolerance


def audit_course(
    course: Course,
    only: Sequence[str],
    jobs: int,
    report: Callable[[Sequence[Audited]], object] = lambda _: None,
    *,
    seed: str | None = None,
) -> list[Audited]:
    """Try everything on these exercises; `report` hears of each exercise as it is done."""
    excuses = _read_excuses(course)
    seed = seed or course.hidden_seed()
    order = Order(course, seed, course.tests_of(only), tuple(only), isolation="weak")
    findings: list[Audited] = []
    # Those known best take longest, and the last to end should be a short one.
    size = Counter(variant.exercise for variant in load_library(course).variants)
    names = sorted(only, key=lambda name: -size[name])
    for of_one in share(order, partial(_examine, excuses), names, jobs):
        findings += of_one
        report(of_one)
    place = {name: number for number, name in enumerate(course.exercises)}
    return sorted(findings, key=lambda f: (place[f.exercise], KINDS.index(f.kind)))


def _read_excuses(course: Course) -> Excuses:
    path = course.solution("mistakes", EXCUSES)
    if not path.is_file():
        return Excuses()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Excuses)
    except msgspec.MsgspecError as error:
        raise CallError(f"{path}: {error}") from None


# --- one exercise --------------------------------------------------------------------------------


def _examine(excuses: Excuses, desk: Desk, name: str) -> list[Audited]:
    findings = list(_findings(excuses, desk, name))
    return findings + list(_stale(excuses, name, findings))


def _findings(excuses: Excuses, desk: Desk, name: str) -> Iterator[Audited]:
    library, unit = desk.live.library, desk.course.unit_of[name]
    # Some calls load a part of torch when they are first made: that is no mistake's time.
    for test in desk.tests[name]:
        if not all(replay(desk, desk.definitions, test, case).passed for case in test.cases):
            text = "the reference fails it outside a jail"
            yield Audited(name, unit, "exercise", f"{name}/{test.name}", False, text)
    for fault in _faults(desk, name):
        yield Audited(name, unit, "exercise", f"{name}/{fault}", False, fault)
    tellers: dict[str, frozenset[str]] = {}
    tried: list[Tried] = []
    with desk.measuring() as measured:
        result = _graded(desk, name, library.submission(name))
        yield _margin(measured, unit, f"{name}/reference", excuses)
        yield _known(unit, "reference", f"{name}/reference", result, result.solved)
        result = _graded(desk, name, _stub(desk.course, unit))
        missing = {test.status for test in result.tests} == {"missing"} and result.points == 0
        yield _known(unit, "stub", f"{name}/stub", result, missing)
        for variant in library.of(name, "accepted"):
            result = _graded(desk, name, library.submission(name, variant))
            yield _margin(measured, unit, variant.id, excuses)
            yield _known(unit, "accepted", variant.id, result, result.solved)
        for variant in library.of(name, "mistake"):
            result = _graded(desk, name, library.submission(name, variant))
            yield _margin(measured, unit, variant.id, excuses)
            yield _mistake(library, variant, result, excuses)
            tellers[variant.id] = _tellers(desk, variant, result)
            tried.append(Tried(variant, result, tellers[variant.id]))
    for mutant in mutants_of(library.sources[unit], name):
        variant = Variant(name, mutant.id, "mistake", mutant.description, "", mutant.definition)
        tellers[mutant.id] = killers = _killers(desk, variant)
        excuse = None if killers else excuses.equivalent.get(mutant.id)
        text = ", ".join(sorted(killers)) or excuse or f"survives: {mutant.description}"
        yield Audited(
            name, unit, "mutant", mutant.id, bool(killers or excuse), text, excused=bool(excuse)
        )
    yield from _tests(desk, name, tellers, excuses)
    stated, heart = statement(desk.course, name), desk.course.exercises[name].heart
    for key, doubt in doubts(stated, desk.tests[name], tried, heart) if stated.formal else ():
        yield Audited(name, unit, "rule", f"{name}/{key}", not doubt, doubt or "proved")


def _stale(excuses: Excuses, exercise: str, findings: Sequence[Audited]) -> Iterator[Audited]:
    """Excuses for what needs none, or is not there any more."""
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
                text = f"{EXCUSES} excuses it without need"
                yield Audited(exercise, findings[0].unit, kind, name, False, text)


def _faults(desk: Desk, name: str) -> Iterator[str]:
    """What an exercise lacks besides its answers."""
    exercise, contract = desk.course.exercises[name], desk.oracle.contracts[name]
    if len(exercise.hints) != 3:
        yield f"has {counted(len(exercise.hints), 'hint')}, not three"
    for hidden, kind in ((False, "public"), (True, "hidden")):
        if not any(test.hidden is hidden for test in desk.tests[name]):
            yield f"has no {kind} test"
    yield from wording.faults(
        statement(desk.course, name), contract, bool(exercise.forbidden), exercise.heart
    )
    text = desk.course.stub_file(desk.course.unit_of[name]).read_text("utf-8")
    stub: dict[str, Any] = {}
    exec(compile(text, "stub", "exec", dont_inherit=True), stub)
    yield from _signature_differs(stub[name], contract)
    if _memory_suffices(desk, name):
        yield "is solved by remembering the answers of the public checks"


def _signature_differs(stub: Any, contract: Contract) -> Iterator[str]:
    """Whether a stub and its reference take the same arguments."""
    parts = (
        [(stub, contract.call)]
        if contract.forward is None
        else [(stub.__init__, contract.call), (stub.forward, contract.forward)]
    )
    for function, signature in parts:
        theirs = [p for p in inspect.signature(function).parameters if p != "self"]
        ours = [parameter.name for parameter in signature.parameters]
        if theirs != ours:
            yield f"stub takes ({', '.join(theirs)}), and the reference ({', '.join(ours)})"


def _stub(course: Course, unit: str) -> tuple[SourceText, ...]:
    return (SourceText(f"{unit}.py", (course.stub_file(unit).read_text("utf-8"),)),)


def _known(unit: str, kind: FindingKind, id: str, result: ExerciseResult, well: bool) -> Audited:
    return Audited(
        result.name,
        unit,
        kind,
        id,
        well,
        _first_said(result),
        points=result.points,
        given=_given(result),
    )


def _given(result: ExerciseResult) -> tuple[str, ...]:
    return tuple(sorted({test.mistake for test in result.tests if test.mistake}))


def _mistake(
    library: Library, variant: Variant, result: ExerciseResult, excuses: Excuses
) -> Audited:
    alike = {v.title for v in library.of(variant.exercise, "mistake") if v.slug in variant.same_as}
    caught = result.points < result.max
    names = {*_given(result)}
    named = bool(names) and names <= {variant.title, *alike}
    # The engine's own checks say exactly what they saw.
    engine = (SIGNATURE, OPERATIONS)
    exact = any(test.name in engine and test.status == "failed" for test in result.tests)
    excuse = None if names or exact else excuses.undiagnosed.get(variant.id)
    text = _first_said(result)
    if not caught:
        text = "keeps its points"
    elif names and not named:
        text = f"is given another's name: {', '.join(sorted(names))}"
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
        given=_given(result),
    )


def _tests(
    desk: Desk, name: str, tellers: Mapping[str, frozenset[str]], excuses: Excuses
) -> Iterator[Audited]:
    """Each hidden test must tell of something that no other hidden test tells of."""
    unit = desk.course.unit_of[name]
    for test in desk.tests[name]:
        if not test.hidden:
            continue
        id = f"{name}/{test.name}"
        told = [variant for variant, tests in tellers.items() if test.name in tests]
        alone = [variant for variant in told if len(tellers[variant]) == 1]
        # Without its assertions, a test would tell of nothing at all: that has no excuse.
        excuse = excuses.kept.get(id) if told and not alone else None
        if alone:
            text = f"alone tells of {len(alone)} wrong answers, like {alone[0]}"
        elif told:
            text = excuse or f"tells of {len(told)} wrong answers, as other tests do of each"
        else:
            text = "tells of no wrong answer"
        yield Audited(name, unit, "test", id, bool(alone or excuse), text, excused=bool(excuse))


def _margin(measured: list[Measured], unit: str, id: str, excuses: Excuses) -> Audited:
    """How near the comparisons of one known answer came to a verdict's edge.

    What was `measured` is emptied, for the next answer.
    """
    near = min(measured, key=lambda one: one[2].distance, default=None)
    measured.clear()
    if near is None:
        return Audited(id.partition("/")[0], unit, "margin", id, True, "nothing is compared")
    test, case, margin = near
    excuse = excuses.near.get(id) if margin.doubtful else None
    told = f"{margin.ratio:.3g} of what is allowed, in {test.name}[{case.label}]"
    return Audited(
        test.exercise,
        unit,
        "margin",
        id,
        not margin.doubtful or excuse is not None,
        excuse or told,
        excused=excuse is not None,
        ratio=margin.ratio,
    )


# --- trying --------------------------------------------------------------------------------------


def _graded(desk: Desk, exercise: str, sources: tuple[SourceText, ...]) -> ExerciseResult:
    """Grade one exercise of a submission, in a jail as any other."""
    with desk.seat(Submission(exercise, sources), [exercise]) as seat:
        return grade_alone(desk, seat, exercise)


def _first_said(result: ExerciseResult) -> str:
    """The points, and the first thing that a student would read."""
    for test in result.tests:
        if test.status not in ("passed", "skipped"):
            said = " ".join((test.mistake or test.told or "").split())
            return f"{result.points:g} of {result.max:g}: {test.name} {test.status}: {said[:160]}"
    return f"{result.points:g} of {result.max:g}"


class _Late(BaseException):
    """A variant that does not end."""


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time: a busy machine changes nothing
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _tellers(desk: Desk, variant: Variant, result: ExerciseResult) -> frozenset[str]:
    """The hidden tests that tell of a mistake in a grading, were there no public ones."""
    rungs = {test.name: test.rung for test in desk.tests[variant.exercise]}
    told = [t for t in result.tests if t.status not in ("passed", "skipped", "missing")]
    if any(not t.hidden and rungs.get(t.name) in FOUNDATIONS for t in told):
        return _killers(desk, variant)  # hidden tests may have been skipped for a public one
    return frozenset(test.name for test in told if test.hidden and test.name not in FIRSTS)


def _killers(desk: Desk, variant: Variant) -> frozenset[str]:
    """The hidden tests that would tell of a variant in a grading."""
    tests = [test for test in desk.tests[variant.exercise] if test.hidden]
    try:
        definitions = desk.live.definitions(variant)
    except Exception:  # it cannot even be defined
        return frozenset(test.name for test in tests)
    killers: set[str] = set()
    failed_at: str | None = None
    for test in tests:
        # As in a grading, what stands on a rung that broke is not asked.
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
    """Whether an answer that only remembers what the public checks ask earns every point."""
    reference = desk.definitions[name]
    if isinstance(reference, type):
        return False  # its answers hang on weights that are drawn anew
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
    """By unit, and by what was counted: how many are as they should be, of how many.

    What is excused counts as not proved: a mutant that lives, a test that tells of nothing alone.
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
    """The known answers that come nearest to a tolerance: from below, and from above."""
    measured = [(f.ratio, f) for f in findings if f.ratio is not None]
    below = max((m for m in measured if m[0] <= 1), key=lambda m: m[0], default=None)
    above = min((m for m in measured if m[0] > 1), key=lambda m: m[0], default=None)
    return [one[1] for one in (below, above) if one is not None]


# --- machines ------------------------------------------------------------------------------------
#
# The same verdicts on every processor: an audit with less and less of this one.
#
# Processors round differently, since the libraries below torch choose their kernels by what a
# processor can do. Those read their settings once, when they start: each audit is a process of
# its own, and hands its settings on to its jails.


_SCALAR = {"ATEN_CPU_CAPABILITY": "default"}
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    _SCALAR,
    {**_SCALAR, "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
)


class NotAudited(Exception):
    """An audit did not come to its end, and has said why; with its exit code."""


@dataclass(frozen=True)
class SettingVerdict:
    """What must not depend on the processor: how a case ended, its points and its names."""

    well: bool
    excused: bool
    points: float | None
    given: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """One case, and its verdict in each setting; none where there was no such case."""

    kind: FindingKind
    name: str
    verdicts: tuple[SettingVerdict | None, ...]


def label(setting: Mapping[str, str]) -> str:
    """A setting as one would type it."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "as it is"


def audited(setting: Mapping[str, str], arguments: Sequence[str]) -> list[Audited]:
    """What `grader audit` finds in a setting; `arguments` are those of the command."""
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
    """The cases whose verdicts are not the same in all of these audits."""
    tables = [
        {(f.kind, f.name): SettingVerdict(f.well, f.excused, f.points, f.given) for f in findings}
        for findings in audits
    ]
    for kind, name in dict.fromkeys(case for table in tables for case in table):
        verdicts = tuple(table.get((kind, name)) for table in tables)
        if len({*verdicts}) > 1:
            yield Difference(kind, name, verdicts)
