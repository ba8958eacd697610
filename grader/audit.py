"""Proof of a course: its tests catch what is wrong, accept what is right, and each is needed.

Whatever is known of an exercise is tried on its tests: the reference and the stub, right answers in
other forms, mistakes that people make, mechanical mutants of the reference. Known answers are
graded in a jail like any submission. Which test catches what is found out in this process, where a
variant takes milliseconds; it is all our own code.
"""

from __future__ import annotations

import inspect
import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, get_args

import msgspec

from grader.collection import Test
from grader.contract import Contract
from grader.course import Course
from grader.faults import CallError
from grader.grade import ExerciseResult
from grader.grading import Desk, grade_exercise, open_desk, replay
from grader.intake import Submission
from grader.jail.wire import SourceText
from grader.mistakes import Variant
from grader.mutants import mutants_of

Kind = Literal["exercise", "reference", "stub", "accepted", "mistake", "mutant", "test"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TOO_LONG = 3.0  # seconds for one variant on all tests of its exercise
EXCUSES = "audit.toml"  # beside the library


@dataclass(frozen=True)
class Finding:
    """One case: what was tried on which exercise, and what came of it."""

    exercise: str
    unit: str
    kind: Kind
    name: str
    well: bool
    text: str  # what is wrong; else what a student would be told, or who caught it
    diagnosed: bool | None = None  # a mistake: whether it was named as what it is
    excused: bool = False  # well only because `EXCUSES` says why


class Excuses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What cannot be proved, each with the reason."""

    equivalent: Mapping[str, str] = {}  # mutants that compute the same
    kept: Mapping[str, str] = {}  # tests that catch nothing that no other test catches
    undiagnosed: Mapping[str, str] = {}  # mistakes that are caught, and cannot be named


def audit(
    course: Course, only: Sequence[str], jobs: int, report: Callable[[Finding], object] = id
) -> list[Finding]:
    """Try everything on these exercises; `report` hears of each finding as it comes."""
    excuses = _read_excuses(course)
    findings: list[Finding] = []
    for finding in _all(course, tuple(only), jobs, excuses):
        findings.append(finding)
        report(finding)
    findings += _stale(excuses, findings)
    return sorted(findings, key=lambda finding: (finding.exercise, KINDS.index(finding.kind)))


def _all(
    course: Course, only: tuple[str, ...], jobs: int, excuses: Excuses
) -> Generator[Finding]:  # fmt: skip
    if jobs == 1 or len(only) == 1:
        with _open(course, only) as desk:
            for name in desk.tests:
                yield from _examine(desk, name, excuses)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_start, initargs=(course, only, excuses)
    ) as pool:
        for done in as_completed([pool.submit(_examine_here, name) for name in only]):
            yield from done.result()


def _open(course: Course, only: Sequence[str]) -> Any:
    files = course.test_files()
    return open_desk(course, seed=course.hidden_seed(), files=files, only=only)


_desk: Desk
_excuses: Excuses


def _start(course: Course, only: Sequence[str], excuses: Excuses) -> None:
    import atexit

    global _desk, _excuses
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    opening = _open(course, only)
    _desk, _excuses = opening.__enter__(), excuses
    atexit.register(opening.__exit__, None, None, None)


def _examine_here(name: str) -> list[Finding]:
    return list(_examine(_desk, name, _excuses))


def _read_excuses(course: Course) -> Excuses:
    path = course.solutions / "mistakes" / EXCUSES
    if not path.is_file():
        return Excuses()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Excuses)
    except msgspec.MsgspecError as error:
        raise CallError(f"{path}: {error}") from None


def _stale(excuses: Excuses, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Excuses for what needs none, or is not there any more."""
    seen = {finding.name: finding for finding in findings}
    exercises = {finding.exercise: finding.unit for finding in findings}
    kinds: tuple[tuple[Kind, Mapping[str, str]], ...] = (
        ("mutant", excuses.equivalent), ("test", excuses.kept), ("mistake", excuses.undiagnosed),
    )  # fmt: skip
    for kind, names in kinds:
        for name in names:
            exercise = name.partition("/")[0]
            if exercise in exercises and not (name in seen and seen[name].excused):
                text = f"{EXCUSES} excuses it without need"
                yield Finding(exercise, exercises[exercise], kind, name, False, text)


# --- one exercise --------------------------------------------------------------------------------


def _examine(desk: Desk, name: str, excuses: Excuses) -> Iterator[Finding]:
    assert desk.library is not None
    library, unit = desk.library, desk.course.unit_of[name]
    for fault in _faults(desk, name):
        yield Finding(name, unit, "exercise", f"{name}/{fault}", False, fault)
    result = _graded(desk, name, library.submission())
    yield Finding(name, unit, "reference", f"{name}/reference", result.solved, _told(result))
    result = _graded(desk, name, _stubs(desk.course))
    missing = {test.status for test in result.tests} == {"missing"} and result.points == 0
    yield Finding(name, unit, "stub", f"{name}/stub", missing, _told(result))
    for variant in library.of(name, "accepted"):
        result = _graded(desk, name, library.submission(variant))
        yield Finding(name, unit, "accepted", variant.id, result.solved, _told(result))
    catchers: dict[str, frozenset[str]] = {}
    for variant in library.of(name, "mistake"):
        result = _graded(desk, name, library.submission(variant))
        yield _mistake(unit, variant, result, excuses)
        catchers[variant.id] = _catchers(desk, variant)
    for mutant in mutants_of(library.sources[unit], name):
        variant = Variant(name, mutant.id, "mistake", mutant.description, "", mutant.definition)
        catchers[mutant.id] = _catchers(desk, variant)
        excuse = excuses.equivalent.get(mutant.id)
        caught = bool(catchers[mutant.id])
        text = ", ".join(sorted(catchers[mutant.id])) or f"survives: {mutant.description}"
        yield Finding(
            name, unit, "mutant", mutant.id, caught or excuse is not None,
            text if caught else excuse or text, excused=not caught and excuse is not None,
        )  # fmt: skip
    yield from _tests(desk, name, catchers, excuses)


def _faults(desk: Desk, name: str) -> Iterator[str]:
    """What an exercise lacks besides its answers."""
    exercise, contract = desk.course.exercises[name], desk.oracle.contracts[name]
    if len(exercise.hints) != 3:
        yield f"has {len(exercise.hints)} hints, not three"
    for hidden, kind in ((False, "public"), (True, "hidden")):
        if not any(test.hidden is hidden for test in desk.tests[name]):
            yield f"has no {kind} test"
    text = desk.course.stub_file(desk.course.unit_of[name]).read_text("utf-8")
    stub: dict[str, Any] = {}
    exec(compile(text, "stub", "exec", dont_inherit=True), stub)
    if not (stub[name].__doc__ or "").strip():
        yield "has no statement"
    yield from _signature_differs(stub[name], contract)
    if _memory_suffices(desk, name):
        yield "is solved by remembering the answers of the public checks"


def _signature_differs(stub: Any, contract: Contract) -> Iterator[str]:
    """Whether a stub and its reference take the same arguments."""
    parts = [(stub, contract.call)] if contract.forward is None else [
        (stub.__init__, contract.call), (stub.forward, contract.forward)
    ]  # fmt: skip
    for function, signature in parts:
        theirs = [p for p in inspect.signature(function).parameters if p != "self"]
        ours = [parameter.name for parameter in signature.parameters]
        if theirs != ours:
            yield f"stub takes ({', '.join(theirs)}), and the reference ({', '.join(ours)})"


def _stubs(course: Course) -> tuple[SourceText, ...]:
    return tuple(
        SourceText(f"{unit.name}.py", (course.stub_file(unit.name).read_text("utf-8"),))
        for unit in course.units
    )


def _mistake(unit: str, variant: Variant, result: ExerciseResult, excuses: Excuses) -> Finding:
    caught = result.points < result.max
    named = {test.mistake for test in result.tests if test.mistake}
    diagnosed = named == {variant.title}
    # A forbidden operation is told by the check for those, with its line.
    by_operation = any(t.name == "operations" and t.status == "failed" for t in result.tests)
    declared = bool(variant.same_as) or by_operation
    excuse = excuses.undiagnosed.get(variant.id)
    text = _told(result) if caught else "keeps its points"
    if caught and not diagnosed and not declared and excuse is None:
        text = f"not named: {text}" if not named else f"named {named.pop()!r}"
    well = caught and (diagnosed or declared or (excuse is not None and not named))
    excused = well and not diagnosed and not declared
    return Finding(
        variant.exercise, unit, "mistake", variant.id, well, text, diagnosed, excused=excused
    )


def _tests(
    desk: Desk, name: str, catchers: Mapping[str, frozenset[str]], excuses: Excuses
) -> Iterator[Finding]:  # fmt: skip
    """Each test that carries points must catch something that no other such test does."""
    paid = {test.name for test in desk.tests[name] if test.hidden and test.weight > 0}
    alone: dict[str, list[str]] = {test: [] for test in paid}
    for variant, tests in catchers.items():
        if len(tests & paid) == 1:
            alone[next(iter(tests & paid))].append(variant)
    for test, variants in sorted(alone.items()):
        id, unit = f"{name}/{test}", desk.course.unit_of[name]
        excuse = excuses.kept.get(id)
        text = f"alone catches {len(variants)}: {variants[0]}" if variants else excuse
        yield Finding(
            name, unit, "test", id, bool(text), text or "catches nothing that no other test does",
            excused=not variants and excuse is not None,
        )  # fmt: skip


# --- trying --------------------------------------------------------------------------------------


def _graded(desk: Desk, exercise: str, sources: tuple[SourceText, ...]) -> ExerciseResult:
    """Grade one exercise of a submission, in a jail as any other."""
    with desk.seat(Submission(exercise, sources)) as seat:
        return grade_exercise(desk, seat, exercise)


def _told(result: ExerciseResult) -> str:
    """The points, and the first thing that a student would read."""
    for test in result.tests:
        if test.status not in ("passed", "skipped"):
            said = " ".join((test.mistake or test.message or "").split())
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


def _catchers(desk: Desk, variant: Variant) -> frozenset[str]:
    """The hidden tests that a variant does not pass, whatever other tests say."""
    try:
        assert desk.diagnosis is not None
        definitions = desk.diagnosis.definitions(variant)
    except Exception:  # it cannot even be defined
        return frozenset(test.name for test in desk.tests[variant.exercise] if test.hidden)
    return _failed(desk, definitions, desk.tests[variant.exercise], hidden=True)


def _failed(
    desk: Desk, definitions: Mapping[str, Any], tests: Sequence[Test], hidden: bool
) -> frozenset[str]:  # fmt: skip
    failed = set()
    for test in tests:
        if test.hidden is hidden:
            try:
                with _no_longer_than(TOO_LONG):
                    passed = all(replay(desk, definitions, test, case)[0] for case in test.cases)
            except _Late:
                passed = False
            if not passed:
                failed.add(test.name)
    return frozenset(failed)


def _memory_suffices(desk: Desk, name: str) -> bool:
    """Whether an answer that only remembers what the public checks ask earns every point."""
    reference = desk.oracle.definitions[name]
    if isinstance(reference, type):
        return False  # its answers hang on weights that are drawn anew
    remembered: dict[str, Any] = {}

    def learn(*arguments: Any, **by_name: Any) -> Any:
        value = reference(*arguments, **by_name)
        remembered[repr((arguments, by_name))] = value
        return value

    def recall(*arguments: Any, **by_name: Any) -> Any:
        return remembered[repr((arguments, by_name))]

    tests = desk.tests[name]
    _failed(desk, {**desk.oracle.definitions, name: learn}, tests, hidden=False)
    paid = {test.name for test in tests if test.hidden and test.weight > 0}
    return not paid & _failed(desk, {**desk.oracle.definitions, name: recall}, tests, hidden=True)


# --- counting ------------------------------------------------------------------------------------


def totals(findings: Sequence[Finding]) -> dict[str, dict[str, tuple[int, int]]]:
    """By unit, and by what was counted: how many are as they should be, of how many."""
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for unit in dict.fromkeys(finding.unit for finding in findings):
        own = [finding for finding in findings if finding.unit == unit]
        wells = Counter(finding.kind for finding in own if finding.well)
        kinds = Counter(finding.kind for finding in own)
        row: dict[str, tuple[int, int]] = {
            kind: (wells[kind], kinds[kind]) for kind in KINDS if kind != "exercise"
        }
        row["diagnosed"] = (sum(bool(finding.diagnosed) for finding in own), kinds["mistake"])
        counted[unit] = row
    return counted
