"""Grading: one submission becomes one `Grade`.

The desk holds what all submissions of a batch share: the course, its tests (collected once), the
references, the warm process. A seat is one submission's place at it. Tests run in the order of
the ladder: exists → signature → shape → value → property → gradient → stability → efficiency.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from grader import messages
from grader.collection import Case, Test, collect
from grader.contract import Contract
from grader.course import Course
from grader.diagnosis import Answer, Diagnosis, kept
from grader.faults import CallError, HostFault
from grader.grade import (
    ExerciseResult,
    Grade,
    TestResult,
    TestStatus,
    from_thousandths,
    share_out,
)
from grader.intake import Submission
from grader.isolation import Isolation, shortfall
from grader.jail import wire
from grader.jail.definitions import skeletons
from grader.jail.guest import Prints
from grader.jail.local import Local
from grader.jail.remote import Calls, Heard, Student, StudentRaised
from grader.jail.session import Limits, Session, StudentLost, Warm
from grader.mistakes import Library, Variant, load_library
from grader.oracle import Oracle, Reference, open_oracle
from grader.tensors import Make
from grader.testing import Disagreement, rung

MAX_MESSAGE = 4_000  # characters: parts of it may be a submission's own
# A rung stands on those before it: when one of these fails, later rungs are skipped.
FOUNDATIONS = ("exists", "signature", "shape", "value")


@dataclass
class Desk:
    """What the submissions of one batch share."""

    course: Course
    oracle: Oracle
    warm: Warm
    seed: str
    tests: Mapping[str, Sequence[Test]]  # by exercise, in ladder order
    fingerprint: str
    stubs: Mapping[str, str] = field(default_factory=dict)  # skeletons by exercise
    library: Library | None = None  # of known mistakes
    isolation: tuple[str, ...] = ()  # layers of each jail, and "weak" where they are not enough

    def make(self, exercise: str, test: str, case: str) -> Make:
        """Seeded inputs for one case of one test."""
        return Make(self.seed, exercise, f"{test}[{case}]")

    def reference(self, make: Make) -> Reference:
        """The references, with weights drawn from `make`."""
        return Reference(self.oracle, make)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Names mistakes; what they give is computed when it is first asked for, and kept."""
        if self.library is None:
            return None
        cases = {
            (test.key, case.label): (test, case)
            for tests in self.tests.values() for test in tests for case in test.cases
        }  # fmt: skip

        return Diagnosis(
            self.library, self.oracle.definitions,
            lambda definitions, *which: replay(self, definitions, *cases[which]),
        )  # fmt: skip

    @contextmanager
    def seat(
        self, submission: Submission, exercises: Sequence[str] | None = None
    ) -> Iterator[Seat]:  # fmt: skip
        """Open a jail for a submission, and close it afterwards whatever happens.

        It is asked for these exercises only, where they are named.
        """
        limits = Limits(**{f: getattr(self.course.file.limits, f) for f in Limits.__annotations__})
        wanted = tuple(
            wire.Wanted(name, unit, self.stubs.get(name, ""))
            for name, unit in self.course.unit_of.items()
            if exercises is None or name in exercises
        )
        session = Session(
            lambda: self.warm.fork(limits), wire.Open(submission.sources, wanted), limits,
            {name: self.watch(name) for name in self.course.exercises},
        )  # fmt: skip
        try:
            yield Seat(self, session)
        finally:
            session.close()

    def watch(self, exercise: str) -> tuple[str, ...]:
        """The torch functions that an exercise forbids."""
        groups = self.course.exercises[exercise].forbidden
        operations = self.course.file.operations
        return tuple(name for group in groups for name in operations[group].functions)


class Seat:
    """One submission at the desk."""

    def __init__(self, desk: Desk, session: Session) -> None:
        self.session = session
        aliases = desk.course.file.aliases
        self.calls = Calls(
            session, desk.oracle.contracts, aliases.arguments, aliases.parameters,
            {name: desk.watch(name) for name in desk.course.exercises},
        )  # fmt: skip

    @property
    def listing(self) -> wire.Listing:
        """What stands under each exercise's name."""
        return self.session.listing

    def begin(self, make: Make) -> Student:
        """Begin a test: fresh handles, seeded generators, a new time limit.

        What the test's exercise forbids is not to be had in the process that answers.
        """
        self.session.begin_test(make.seed("guest"), make.exercise)
        self.calls.heard.clear()
        self.calls.made.clear()
        return Student(self.calls)

    def heard(self) -> tuple[Heard, ...]:
        """What the running test's calls gave; its modules, if it failed before it called one."""
        return tuple(self.calls.heard or self.calls.made)


@contextmanager
def open_desk(
    course: Course, *, seed: str, files: Mapping[Path, bool], only: Sequence[str] = (),
    stubs: bool = True, isolation: Isolation = "weak", secrets: Sequence[Path] = (),
) -> Iterator[Desk]:  # fmt: skip
    """Start the warm process, and meanwhile load references and tests.

    `files` are test files, each with whether its tests are hidden; `only` limits the exercises.
    Without `stubs`, answers are not compared with the stubs in the course's folder: a student
    writes the answers into these very files. With strong `isolation`, raises `CallError` unless
    submissions are sure to be kept from `secrets` (besides the solutions).
    """
    with Warm() as warm:  # loads torch in the background while this process does
        oracle = open_oracle(course)
        chosen = course.select(only)
        tests: list[Test] = []
        for hidden in (False, True):
            group = [path for path, is_hidden in files.items() if is_hidden is hidden]
            tests += collect(group, hidden, course) if group else []
        tests.sort(key=lambda test: rung.order.index(test.rung))
        if any(files.values()):
            _refuse_unpaid(chosen, tests)
        by_exercise = {name: [test for test in tests if test.exercise == name] for name in chosen}
        pristine: dict[str, str] = {}
        library = load_library(course) if course.solutions.is_dir() else None
        for unit in course.units if stubs else ():
            pristine |= skeletons(course.stub_file(unit.name).read_text("utf-8"))
        torch.set_num_threads(1)
        reach = shortfall(warm, [course.solutions, *secrets])
        if reach is not None and isolation == "strong":
            raise CallError(
                f"submissions are not isolated enough to be graded: {reach} (`grader doctor` "
                "lists the layers; --isolation=weak grades all the same, and says so in each grade)"
            )
        layers = (*warm.layers, "weak") if reach is not None else warm.layers
        yield Desk(
            course, oracle, warm, seed, by_exercise, course.fingerprint(), pristine, library, layers
        )


def _refuse_unpaid(exercises: Sequence[str], tests: Sequence[Test]) -> None:
    """An exercise without hidden tests would be a zero for everyone: refuse to grade it."""
    paid = {test.exercise for test in tests if test.hidden and test.weight > 0}
    for name in exercises:
        if name not in paid:
            raise CallError(f"no hidden test carries points for {name}: grading it makes no sense")


# --- one submission ------------------------------------------------------------------------------


def grade(desk: Desk, submission: Submission) -> Grade:
    """Grade one submission. Never raises for what a student did."""
    started = time.perf_counter()
    exercises: list[ExerciseResult] = []
    status, message, notes = "graded", None, list(submission.problems)
    if submission.status != "ready":
        status, notes = submission.status, []
        message = "; ".join(submission.problems) or "no .py file and no notebook was handed in"
        lost = StudentLost("crashed", message)
        exercises = [_all_missing(desk, name, lost, "missing") for name in desk.tests]
    else:
        try:
            with desk.seat(submission) as seat:
                notes += [note for found in seat.listing.found for note in found.notes]
                exercises = grade_exercises(desk, seat)
        except StudentLost as lost:  # its text alone brought the listing down
            exercises = [_all_missing(desk, name, lost, lost.status) for name in desk.tests]
        except HostFault as fault:
            status, message = "grader_error", str(fault)
        except Exception:  # ours: it must not end the batch, nor be anyone's zero
            status, message = "grader_error", traceback.format_exc(limit=-4)
    if any(test.status == "grader_error" for exercise in exercises for test in exercise.tests):
        status = "grader_error"
        message = "the grader itself failed in a test; its points are not known"
    return Grade(
        submission.student, submission.student, status,  # type: ignore[arg-type]
        _total(exercise.points for exercise in exercises),
        _total(desk.course.exercises[name].points for name in desk.tests),
        desk.seed, desk.fingerprint, desk.isolation, torch.__version__.partition("+")[0],
        round(time.perf_counter() - started, 3), tuple(exercises), message, tuple(notes),
    )  # fmt: skip


def _total(points: Iterator[float]) -> float:
    return from_thousandths(sum(round(part * 1000) for part in points))


def grade_exercises(desk: Desk, seat: Seat) -> list[ExerciseResult]:
    """Each exercise of the desk, in the course's order."""
    # Exercises that forbid the same are served by one process: those go together.
    tried = {name: _try(desk, seat, name) for name in sorted(desk.tests, key=desk.watch)}
    return [_scored(desk, name, *_following(desk, seat, name, tried)) for name in desk.tests]


def grade_exercise(desk: Desk, seat: Seat, name: str) -> ExerciseResult:
    """Run an exercise's tests along the ladder, and count its points."""
    tried = _try(desk, seat, name)
    return _scored(desk, name, tried.firsts, tried.results)


@dataclass(frozen=True)
class _Tried:
    """How the tests of one exercise ended."""

    firsts: list[TestResult]
    results: list[TestResult]
    answers: list[Answer] = field(default_factory=list)
    known: Variant | None = None  # the mistake that gives the same


def _try(desk: Desk, seat: Seat, name: str) -> _Tried:
    found = next(found for found in seat.listing.found if found.name == name)
    contract = desk.oracle.contracts[name]
    tests = desk.tests[name]
    first = _exists(found)
    if first.status != "passed":
        rest = first.status if first.status == "missing" else "skipped"
        results = [_result(test, rest) for test in tests]
        return _Tried([first], results)
    second = _signature(found, contract)
    failed_at: str | None = None if second.status == "passed" else "signature"
    results = []
    answers: list[Answer] = []
    for test in tests:
        if failed_at is not None and test.rung != failed_at:
            results.append(_result(test, "skipped"))
            continue
        status, message, of_test = _run(desk, seat, test)
        answers += of_test
        if test.rung == "efficiency" and status == "passed" and found.evasions:
            status, message = "failed", messages.uncounted(found.evasions[0])
        results.append(_result(test, status, message))
        if status == "timeout" and test.rung in FOUNDATIONS:
            failed_at = "timeout"  # no rung's name: what never ends would not end again
        elif status != "passed" and test.rung in FOUNDATIONS:
            failed_at = test.rung
    failed = any(result.status in ("failed", "error") for result in results)
    known = desk.diagnosis.name(name, answers) if desk.diagnosis and failed else None
    if known is not None:
        results = _named(results, known.title, known.hint)
    firsts = [first, second]
    forbidden = _forbidden(desk, seat, name)
    if forbidden is not None:
        firsts.append(forbidden)
    return _Tried(firsts, results, answers, known)


def _named(results: Sequence[TestResult], mistake: str, hint: str) -> list[TestResult]:
    """The results, with the mistake's name where it shows."""
    return [
        msgspec.structs.replace(result, mistake=mistake, hint=hint)
        if result.status in ("failed", "error")
        else result
        for result in results
    ]


def _following(
    desk: Desk, seat: Seat, name: str, tried: Mapping[str, _Tried]
) -> tuple[list[TestResult], list[TestResult], frozenset[str]]:
    """An exercise's results, and the tests that fail only since one before it was wrong."""
    own = tried[name]
    untold = own.firsts, own.results, frozenset[str]()
    if desk.diagnosis is None or all(answer.passed for answer in own.answers):
        return untold
    for base in _below(desk.course, name):
        known = tried[base].known if base in tried else None
        built = desk.diagnosis.built_on(name, known, own.answers) if known else None
        if known is None or built is None:
            continue
        title = f"Follows from {base}: {known.title}"
        results = _named(own.results, title, known.hint)
        if desk.course.exercises[name].costs_again:
            return own.firsts, results, frozenset()
        excused = frozenset(
            test.name
            for test in desk.tests[name]
            if not all(replay(desk, built, test, case)[0] for case in test.cases)
        )
        # What stood on a rung that broke for another's mistake can be asked after all.
        tests = {test.name: test for test in desk.tests[name]}
        asked = [
            _result(tests[result.name], *run_test(desk, seat, tests[result.name]))
            if result.status == "skipped" and result.name not in excused
            else result
            for result in results
        ]
        return own.firsts, asked, excused
    return untold


def _below(course: Course, name: str) -> list[str]:
    """What an exercise requires, and what that requires, nearest first."""
    found = list(course.exercises[name].requires)
    for base in found:  # grows meanwhile
        found += [more for more in course.exercises[base].requires if more not in found]
    return found


def run_test(desk: Desk, seat: Seat, test: Test) -> tuple[TestStatus, str | None]:
    """Run all cases of a test until one does not pass."""
    return _run(desk, seat, test)[:2]


def _run(desk: Desk, seat: Seat, test: Test) -> tuple[TestStatus, str | None, list[Answer]]:
    """Also tells how each case ended, for the diagnosis."""
    answers: list[Answer] = []
    for case in test.cases:
        status, message = _run_case(desk, seat, test, case)
        passed = status == "passed"
        heard = kept(seat.heard()) if status in ("failed", "error") else ()
        answers.append(Answer(test.key, case.label, passed, heard))
        if not passed:
            told = f"[{case.label}] {message}" if case.label else message
            # A hidden test's inputs are for no one to read back, and prints would hold them.
            shown = told if test.hidden else messages.with_prints(told, seat.session.printed)
            return status, shown, answers
    return "passed", None, answers


def replay(
    desk: Desk, definitions: Mapping[str, Any], test: Test, case: Case
) -> tuple[bool, tuple[Heard, ...]]:  # fmt: skip
    """Run one case of a test on definitions of our own, in this process.

    Tells whether it passed, and what its calls gave.
    """
    session = Session(lambda: Local(definitions), wire.Open((), ()), Limits())
    seat = Seat(desk, session)
    # What a mistake prints, or is warned of, concerns nobody.
    with warnings.catch_warnings(action="ignore"), redirect_stdout(Prints()):
        status, _ = _run_case(desk, seat, test, case)
    return status == "passed", seat.heard()


def _run_case(desk: Desk, seat: Seat, test: Test, case: Case) -> tuple[TestStatus, str | None]:
    make = desk.make(test.exercise, test.name, case.label)
    fixtures: dict[str, Callable[[], object]] = {
        "make": lambda: make,
        "reference": lambda: desk.reference(make),
        "student": lambda: seat.begin(make),
    }
    try:
        arguments = {name: fixtures[name]() for name in test.fixtures}
        test.function(**arguments, **case.parameters)
    except (AssertionError, pytest.fail.Exception) as error:
        message = str(error) or f"an assertion failed ({test.place})"
        if isinstance(error, Disagreement) and not test.hidden:
            picture = error.picture()  # shows all expected values: not those of a hidden test
            message += f"\n{picture}" if picture else ""
        return "failed", message
    except StudentRaised as raised:
        if raised.kind == "ForbiddenOperation" and desk.watch(test.exercise):
            # Told once, by the check for forbidden operations.
            use = wire.Use(raised.text[: wire.MAX_NAME], raised.place)
            seat.calls.uses.setdefault(test.exercise, []).append(use)
            return "skipped", None
        return "error", messages.raised(raised.kind, raised.text, raised.place)
    except StudentLost as lost:
        return lost.status, lost.text
    except KeyboardInterrupt:
        raise
    except BaseException:  # the author's fault or ours; pytest.skip and SystemExit among them
        return "grader_error", f"{test.place}: {traceback.format_exc(limit=-4)}"
    return "passed", None


# --- the rungs that the engine itself checks -----------------------------------------------------


def _exists(found: wire.Found) -> TestResult:
    match found.status:
        case "found":
            status, message = "passed", None
        case "stub":
            status, message = "missing", messages.UNTOUCHED
        case "missing":
            status, message = "missing", messages.MISSING
        case "broken":
            status, message = "error", messages.broken(found)
    return TestResult("exists", messages.EXISTS, status, hidden=False, message=message)  # type: ignore[arg-type]


def _signature(found: wire.Found, contract: Contract) -> TestResult:
    message = messages.signature(found, contract)
    return TestResult(
        "signature", messages.SIGNATURE, "failed" if message else "passed", hidden=False,
        message=message,
    )  # fmt: skip


def _forbidden(desk: Desk, seat: Seat, name: str) -> TestResult | None:
    """The verdict on forbidden operations, for exercises that forbid any."""
    groups = desk.course.exercises[name].forbidden
    if not groups:
        return None
    uses = seat.calls.uses.get(name, [])
    titles = [desk.course.file.operations[group].title for group in groups]
    return TestResult(
        "operations", messages.forbidden_title(titles), "failed" if uses else "passed",
        hidden=False, message=messages.forbidden(uses) if uses else None,
    )  # fmt: skip


# --- points --------------------------------------------------------------------------------------


def _result(test: Test, status: TestStatus, message: str | None = None) -> TestResult:
    told = message[:MAX_MESSAGE] if message else message
    return TestResult(test.name, test.title, status, 0, test.weight, test.hidden, told)


def _scored(
    desk: Desk, name: str, firsts: list[TestResult], results: list[TestResult],
    excused: frozenset[str] = frozenset(),
) -> ExerciseResult:  # fmt: skip
    """Weights become points. Hidden tests carry them; public ones do where there are no hidden.

    `excused` are tests that cost nothing although they did not pass.
    """
    exercise = desk.course.exercises[name]
    any_hidden = any(result.hidden for result in results)
    weights = [r.max if r.hidden or not any_hidden else 0.0 for r in results]
    shares = share_out(exercise.thousandths, weights)
    voided = any(first.name == "operations" and first.status == "failed" for first in firsts)
    earned = [
        share if (result.status == "passed" or result.name in excused) and not voided else 0
        for share, result in zip(shares, results, strict=True)
    ]
    tests = [
        TestResult(
            r.name, r.title, r.status, from_thousandths(points), from_thousandths(share),
            r.hidden, r.message, r.mistake, r.hint,
        )
        for r, points, share in zip(results, earned, shares, strict=True)
    ]  # fmt: skip
    return ExerciseResult(
        name, desk.course.unit_of[name], from_thousandths(sum(earned)), exercise.points,
        (*firsts, *tests),
    )  # fmt: skip


def _all_missing(
    desk: Desk, name: str, lost: StudentLost, status: TestStatus
) -> ExerciseResult:  # fmt: skip
    first = TestResult("exists", messages.EXISTS, status, hidden=False, message=lost.text)
    rest: TestStatus = "missing" if status == "missing" else "skipped"
    return _scored(desk, name, [first], [_result(test, rest) for test in desk.tests[name]])
