"""Grading: one submission becomes one `Grade`.

Tests run in the order of the ladder's rungs: exists → signature → shape → value → property →
gradient → stability → efficiency. Then known mistakes are named, and points are counted.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import msgspec
import torch

from grader import wire
from grader.course.collection import Case, Test, rung
from grader.course.contract import Contract
from grader.course.course import below
from grader.course.statements import FORBIDDEN, RETURNS
from grader.feedback import sentences
from grader.grading.bases import at_fault, used_by
from grader.grading.behaviour import Observed, behaves
from grader.grading.desk import Desk, Seat
from grader.grading.diagnosis import Answers, CaseName
from grader.grading.play import Transcript, play
from grader.grading.replays import Given
from grader.intake import Submission
from grader.mistakes import Variant
from grader.records.faults import HostFault
from grader.records.grade import (
    EXISTS,
    HEART,
    OPERATIONS,
    SIGNATURE,
    WRONG,
    CodeLocation,
    ExerciseResult,
    Grade,
    Picture,
    SubmissionStatus,
    TestResult,
    TestStatus,
    from_thousandths,
    split_points,
)
from grader.records.times import written_time
from grader.sandbox.session import StudentLost

MAX_MESSAGE = 4_000  # characters, since a message may quote a submission's own long text
# When one of these fails, later rungs are skipped.
FOUNDATIONS = (EXISTS, SIGNATURE, "shape", "value")
MOST_DISCARDED = 2  # a verdict names so many of the lines that discard a tensor
NOWHERE = -1  # below the lowest rung: no test runs
WITHOUT_RULES = ("passed", "skipped", "missing", "grader_error")  # statuses without a broken rule


# --- one submission ------------------------------------------------------------------------------


def grade_submission(desk: Desk, submission: Submission) -> Grade:
    """Grade one submission; never raises an exception because of student code."""
    started = time.perf_counter()
    exercises: list[ExerciseResult] = []
    status: SubmissionStatus = "graded"
    message, notes = None, list(submission.problems)
    if submission.status != "ready":
        status, notes = submission.status, []
        message = "; ".join(submission.problems) or "no .py file and no notebook was submitted"
        lost = StudentLost("crashed", message)
        exercises = [_without_tests(desk, name, lost, "missing") for name in desk.tests]
    else:
        try:
            with desk.seat(submission) as seat:
                notes += [note for found in seat.listing.found for note in found.notes]
                notes += sentences.unreadable(seat.listing.found)
                exercises = grade_exercises(desk, seat)
        except StudentLost as lost:  # the process ended while it read the submission's text
            exercises = [_without_tests(desk, name, lost, lost.status) for name in desk.tests]
        except HostFault as fault:
            status, message = "grader_error", str(fault)
        except Exception:  # a fault of the grader must neither end the batch nor cost points
            status, message = "grader_error", traceback.format_exc(limit=-4)
    if any(exercise.faulty for exercise in exercises):
        status = "grader_error"
        message = "the grader itself failed in a test; the points of that test are unknown"
    return Grade(
        student=submission.student,
        submission=submission.student,
        status=status,
        total=_total(exercise.points for exercise in exercises),
        max=_total(desk.course.exercises[name].points for name in desk.tests),
        seed=desk.seed,
        course=desk.fingerprint,
        isolation=desk.isolation,
        torch=torch.__version__.partition("+")[0],
        seconds=round(time.perf_counter() - started, 3),
        exercises=tuple(exercises),
        message=message,
        notes=tuple(notes),
        device=desk.device,
        late=submission.late,
        attempts=submission.attempts,
        submitted=written_time(submission.submitted) if submission.submitted else "",
        processor=torch.backends.cpu.get_cpu_capability(),
    )


def _total(points: Iterator[float]) -> float:
    return from_thousandths(sum(round(part * 1000) for part in points))


def grade_exercises(
    desk: Desk, seat: Seat, names: Collection[str] | None = None, solved: Collection[str] = ()
) -> list[ExerciseResult]:
    """Grade each exercise of the desk, or of `names`, in the course's order.

    `solved` are the exercises that were right in an earlier check.
    """
    chosen = [name for name in desk.tests if names is None or name in names]
    attempts: dict[str, Attempt] = {}
    # Exercises that forbid the same functions share a process, so they are tried together.
    served_by = desk.forbidden.__getitem__
    for _, together in groupby(sorted(chosen, key=served_by), key=served_by):
        attempts |= _run_tests(desk, seat, list(together))
    ends = {name: [*one.engine_checks(), *one.results] for name, one in attempts.items()}
    graded: list[ExerciseResult] = []
    for name in chosen:
        results = _following(desk, name, attempts)
        bases = at_fault(desk, seat, name, results, ends, solved)
        graded.append(_scored(desk, name, attempts[name].engine_checks(bases), results))
    return graded


def grade_alone(desk: Desk, seat: Seat, name: str) -> ExerciseResult:
    """Grade one exercise, without looking for mistakes in the exercises that its answer uses."""
    attempt = attempted(desk, seat, name)
    return _scored(desk, name, attempt.engine_checks(), attempt.results)


def attempted(desk: Desk, seat: Seat, name: str) -> Attempt:
    """The results of one exercise's tests, before points are counted."""
    return _run_tests(desk, seat, [name])[name]


@dataclass(frozen=True)
class Attempt:
    """The results of one exercise's tests."""

    engine: list[TestResult]  # the engine's own checks: the answer exists, its signature is right
    results: list[TestResult]
    answers: Answers = field(default_factory=dict)  # the outcomes of all cases
    known: Variant | None = None  # the known mistake that gives the same results
    forbidden: TestResult | None = None  # the check for forbidden operations, if some are forbidden

    def engine_checks(self, bases: Iterable[TestResult] = ()) -> list[TestResult]:
        """The results of the engine's own checks, in the order in which students read them.

        `bases` has the result that names wrong bases, if there are any.
        """
        return [*self.engine, *bases, *([self.forbidden] if self.forbidden else [])]

    @property
    def wrong(self) -> bool:
        """Whether a test gave a wrong result or an exception, and no test lost its process."""
        ends = {result.status for result in self.results}
        return bool(ends & {*WRONG}) and ends <= {"passed", "skipped", *WRONG}

    @property
    def gave_a_result(self) -> bool:
        """Whether the first wrong test got a result, and not an exception.

        Only then can the verdict describe how the results behave.
        """
        return self.wrong and self.results[self.first_wrong].status == "failed"

    @property
    def first_wrong(self) -> int:
        """The index of the first test with a wrong result or an exception."""
        return next(n for n, result in enumerate(self.results) if result.status in WRONG)


def _run_tests(desk: Desk, seat: Seat, names: Sequence[str]) -> Mapping[str, Attempt]:
    """Run the tests of these exercises in one process: all public checks, then all hidden tests.

    The result of a public check is shown in full. Code that has seen the inputs of a hidden test
    could print these inputs in a public check, so no public check runs after a hidden test.
    """
    climbs = [Climb(desk, seat, name) for name in names]
    for hidden in (False, True):
        seat.calls.before.changed.clear()  # public checks have reported these changes already
        for climb in climbs:
            climb.run(hidden)
    attempts = {climb.name: climb.attempt() for climb in climbs}
    for climb in climbs:
        if attempts[climb.name].wrong:
            own = attempts[climb.name]
            attempts[climb.name] = _discarding(own, climb.discarded())
    unnamed = [name for name, one in attempts.items() if one.gave_a_result and one.known is None]
    if unnamed and any(test.hidden for name in names for test in desk.tests[name]):
        seat.session.close()  # `behaves` then gets a new process, which has seen no hidden test
    for name in unnamed:
        if (observed := behaves(desk, seat, name)) is not None:
            attempts[name] = _observed(attempts[name], desk.tests[name], observed)
    return attempts


class Climb:
    """Runs one exercise's tests on one answer, from the lowest rung of the ladder upwards."""

    def __init__(self, desk: Desk, seat: Seat, name: str) -> None:
        self.name = name
        self._desk, self._seat = desk, seat
        self._found = seat.calls.found[name]
        self._engine = [_exists(self._found, seat.session.in_cells)]
        self._top = len(rung.order)  # tests of higher rungs do not run
        self._results: dict[str, TestResult] = {}  # by the test's key
        self._misshapen: set[str] = set()  # keys of tests that got another shape or dtype
        self._answers: dict[CaseName, Given] = {}
        if self._engine[0].status == "passed":
            contract = desk.oracle.contracts[name]
            self._engine.append(_signature(self._found, contract, used_by(seat, name)))
        if self.hindrance is not None:
            self._top = NOWHERE

    @property
    def hindrance(self) -> TestResult | None:
        """The failed check because of which no test can run; None if tests can run."""
        return self._engine[-1] if self._engine[-1].status != "passed" else None

    def cases(self, tests: Iterable[Test]) -> Iterator[tuple[Test, Case, Transcript]]:
        """Play the cases of each test, up to the test's first case that does not pass.

        After a failure in one of the `FOUNDATIONS`, tests of higher rungs are left out.
        """
        for test in tests:
            if rung.order.index(test.rung) > self._top:
                continue
            for case in test.cases:
                played = self._play(test, case)
                yield test, case, played
                if not played.passed:
                    self._failed(test, played)
                    break

    def _play(self, test: Test, case: Case) -> Transcript:
        """Play a case; if it costs too much, also without the answer's assertions and prints.

        The second transcript counts only if it gave the same results. It comes from a fresh
        process, which cannot know results of the first.
        """
        played = play(self._desk, self._seat, test, case)
        session = self._seat.session
        if test.rung != "efficiency" or played.status != "failed" or not session.may_check:
            return played
        with session.without_checks():
            unchecked = play(self._desk, self._seat, test, case)
        same = unchecked.seen.values == played.seen.values
        return unchecked if unchecked.passed and same else played

    def _failed(self, test: Test, played: Transcript) -> None:
        if test.rung in FOUNDATIONS:
            # After a timeout, later tests would time out too.
            timeout = played.status == "timeout"
            self._top = min(self._top, NOWHERE if timeout else rung.order.index(test.rung))

    def unless_evaded(self, test: Test, played: Transcript) -> Transcript:
        """The transcript; it becomes failed if the answer hides operations that the test counts."""
        if test.rung != "efficiency" or not played.passed or not self._found.evasions:
            return played
        first = self._found.evasions[0]
        use = wire.Use(first.function, self._seat.session.line(first.place))
        return replace(played, status="failed", message=sentences.uncounted(use))

    def forbidden(self) -> TestResult | None:
        """The check for forbidden operations; None if the exercise forbids no operation."""
        groups = self._desk.course.exercises[self.name].forbidden
        if not groups:
            return None
        uses = self._seat.calls.uses(self.name)
        titles = [self._desk.course.file.operations[group].title for group in groups]
        return TestResult(
            OPERATIONS,
            sentences.forbidden_title(titles, used=bool(uses)),
            "failed" if uses else "passed",
            hidden=False,
            message=sentences.forbidden(uses) if uses else None,
            rules=self._desk.rules(self.name, [FORBIDDEN]) if uses else {},
            position=_position(next((use.place for use in uses if use.place), None)),
        )

    def discarded(self) -> Sequence[wire.Use]:
        """Lines of the answer that make a new tensor and discard it, at most `MOST_DISCARDED`.

        They are found in the source text, may be harmless, and change no points.
        """
        uses = self._found.discarded[:MOST_DISCARDED]
        return [wire.Use(use.function, self._seat.session.line(use.place)) for use in uses]

    def run(self, hidden: bool) -> None:
        """Run the hidden tests or the public checks, and keep their results."""
        tests = [test for test in self._desk.tests[self.name] if test.hidden is hidden]
        for test, case, played in self.cases(tests):
            self._answers[test.key, case.label] = played.given
            judged, at = self.unless_evaded(test, played), "" if played.passed else case.words
            broken: Mapping[str, str] = {}
            if judged.misshapen:
                self._misshapen.add(test.key)
            if judged.status not in WITHOUT_RULES:
                keys = (RETURNS,) if judged.misshapen else case.rules
                broken = self._desk.rules(self.name, keys)
            self._results[test.key] = _result(  # replaces the result of the case before
                test, judged.status, judged.message, judged.picture, at, broken, judged.place
            )

    def attempt(self) -> Attempt:
        """The results of all tests; wrong results name the known mistake that explains them."""
        there = self._engine[0].status
        rest: TestStatus = "missing" if there == "missing" else "skipped"
        results = [
            self._results.get(test.key) or _result(test, rest)
            for test in self._desk.tests[self.name]
        ]
        if there != "passed":
            return Attempt(self._engine, results)
        diagnosis = self._desk.diagnosis
        failed = any(result.status in WRONG for result in results)
        bases = self._desk.course.exercises[self.name].requires
        known = diagnosis.name(self.name, self._answers, bases) if diagnosis and failed else None
        if known is not None:
            results = [
                self._named(test, result, known)
                for test, result in zip(self._desk.tests[self.name], results, strict=True)
            ]
        return Attempt(self._engine, results, self._answers, known, self.forbidden())

    def _named(self, test: Test, result: TestResult, known: Variant) -> TestResult:
        """Add the mistake to a wrong result, and keep only the rules that the mistake breaks.

        A result of another shape or dtype breaks `RETURNS`, whatever the mistake is.
        """
        if result.status not in WRONG:
            return result
        breaks = (RETURNS,) if test.key in self._misshapen else known.breaks
        rules = {key: rule for key, rule in result.rules.items() if key in breaks}
        return msgspec.structs.replace(result, mistake=known.title, hint=known.hint, rules=rules)


def _observed(attempt: Attempt, tests: Sequence[Test], observed: Observed) -> Attempt:
    """Add sentences on behaviour to the result of the check whose input showed the behaviour.

    If this case of the check did not fail, the first wrong test has the sentences, which then name
    the check.
    """
    numbers = (n for n, test in enumerate(tests) if test.key == observed.test)
    at = next(numbers, attempt.first_wrong)
    result, said = attempt.results[at], observed.sentences
    if result.status not in WRONG or (result.case or "") != observed.case:
        said = tuple(sentences.seen_in(result.title, observed.case, line) for line in said)
        at = attempt.first_wrong
    return _behaving(attempt, at, said)


def _discarding(attempt: Attempt, uses: Sequence[wire.Use]) -> Attempt:
    """Add lines that discard a tensor to the first wrong result, which then has such a position."""
    if not uses:
        return attempt
    lines = tuple(map(sentences.unkept, uses))
    return _behaving(attempt, attempt.first_wrong, lines, _position(uses[0].place))


def _behaving(
    attempt: Attempt, at: int, lines: tuple[str, ...], position: CodeLocation | None = None
) -> Attempt:
    """Add these lines on the answer's behaviour to the result with this index.

    A result without a position gets this position.
    """
    result = attempt.results[at]
    told = msgspec.structs.replace(
        result,
        behaviour=(*result.behaviour, *lines),
        position=result.position or position,
    )
    return replace(attempt, results=[*attempt.results[:at], told, *attempt.results[at + 1 :]])


def _following(desk: Desk, name: str, attempts: Mapping[str, Attempt]) -> list[TestResult]:
    """An exercise's results; failures caused by an earlier exercise's mistake name the mistake."""
    own = attempts[name]
    wrong = {test for (test, _), given in own.answers.items() if not given.passed}
    if desk.diagnosis is None or not wrong:
        return own.results
    for base in below(desk.course, name):
        known = attempts[base].known if base in attempts else None
        if known is not None and desk.diagnosis.follows(name, known, own.answers):
            tests = {(test.name, test.hidden) for test in desk.tests[name] if test.key in wrong}
            return [
                msgspec.structs.replace(result, mistake=known.title, hint=known.hint, follows=base)
                if (result.name, result.hidden) in tests
                else result
                for result in own.results
            ]
    return own.results


# --- the rungs that the engine itself checks -----------------------------------------------------


def _exists(found: wire.Found, in_cells: bool) -> TestResult:
    match found.status:
        case "found":
            return _there("passed", "\n".join(found.notes) or None, found.place)
        case "stub" | "missing":
            return _there("missing", sentences.still_missing(found, in_cells))
        case "broken":
            return _there("error", sentences.broken(found), found.place)


def _there(status: TestStatus, message: str | None, place: wire.Place | None = None) -> TestResult:
    titles = {"passed": sentences.EXISTS, "missing": sentences.NOT_THERE}
    title = titles.get(status, sentences.UNREADABLE)
    return TestResult(
        EXISTS, title, status, hidden=False, message=message, position=_position(place)
    )


def _position(place: wire.Place | None) -> CodeLocation | None:
    return CodeLocation(place.file, place.line, place.cell) if place is not None else None


def _signature(found: wire.Found, contract: Contract, users: Sequence[str]) -> TestResult:
    message = sentences.signature(found, contract)
    if message and users:
        message = f"{message}\n{sentences.perhaps_helper(users)}"
    return TestResult(
        SIGNATURE,
        sentences.OTHER_SIGNATURE if message else sentences.SIGNATURE,
        "failed" if message else "passed",
        hidden=False,
        message=message,
    )


# --- points --------------------------------------------------------------------------------------


def _result(
    test: Test,
    status: TestStatus,
    message: str | None = None,
    picture: Picture | None = None,
    case: str = "",
    rules: Mapping[str, str] | None = None,
    place: wire.Place | None = None,
) -> TestResult:
    return TestResult(
        test.name,
        test.title,
        status,
        max=test.weight,
        hidden=test.hidden,
        message=message[:MAX_MESSAGE] if message else message,
        picture=picture,
        case=case or None,
        rules=rules or {},
        position=_position(place),
    )


def _scored(
    desk: Desk,
    name: str,
    engine_checks: list[TestResult],
    results: list[TestResult],
) -> ExerciseResult:
    """Turn the tests' weights into points.

    Hidden tests carry all points; public checks carry points only if no test is hidden. A test
    earns its points only by running and passing. If a rule at the exercise's heart is broken, the
    answer keeps at most half of the exercise's points, shared by the tests that passed.
    """
    exercise = desk.course.exercises[name]
    any_hidden = any(result.hidden for result in results)
    weights = [r.max if r.hidden or not any_hidden else 0.0 for r in results]
    shares = split_points(exercise.thousandths, weights)
    voided = any(one.name == OPERATIONS and one.status == "failed" for one in engine_checks)
    earned = [
        share if result.status == "passed" and not voided else 0
        for share, result in zip(shares, results, strict=True)
    ]
    missed = _missed(desk, name, results)
    if missed and 2 * sum(earned) > exercise.thousandths:
        earned = split_points(exercise.thousandths // 2, [float(points) for points in earned])
        engine_checks = [*engine_checks, _heart(desk, name, missed)]
    tests = [
        msgspec.structs.replace(
            result, points=from_thousandths(points), max=from_thousandths(share)
        )
        for result, points, share in zip(results, earned, shares, strict=True)
    ]
    return ExerciseResult(
        name,
        desk.course.unit_of[name],
        from_thousandths(sum(earned)),
        exercise.points,
        (*engine_checks, *tests),
        desk.unchecked(name),
    )


def _missed(desk: Desk, name: str, results: Sequence[TestResult]) -> list[str]:
    """The rules at an exercise's heart that a failed or skipped hidden test quotes.

    A test in which the grader itself failed counts as passed here.
    """
    failed = [
        test
        for test, result in zip(desk.tests[name], results, strict=True)
        if test.hidden and result.status not in ("passed", "grader_error")
    ]
    heart = desk.course.exercises[name].heart
    return [rule for rule in heart if any(rule in test.rules for test in failed)]


def _heart(desk: Desk, name: str, missed: Sequence[str]) -> TestResult:
    return TestResult(
        HEART,
        sentences.WITHOUT_HEART_TITLE,
        "failed",
        message=sentences.WITHOUT_HEART,
        rules=desk.rules(name, missed),
    )


def _without_tests(desk: Desk, name: str, lost: StudentLost, status: TestStatus) -> ExerciseResult:
    first = _there(status, lost.text)
    rest: TestStatus = "missing" if status == "missing" else "skipped"
    return _scored(desk, name, [first], [_result(test, rest) for test in desk.tests[name]])
