"""Grading: one submission becomes one `Grade`.

Tests run in the order of the ladder: exists → signature → shape → value → property → gradient →
stability → efficiency. What failed is named, where it is a known mistake; then points are counted.
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
from grader.grading.bases import at_fault
from grader.grading.behaviour import behaves
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
    ExerciseResult,
    Grade,
    Picture,
    SubmissionStatus,
    TestResult,
    TestStatus,
    from_thousandths,
    share_out,
)
from grader.sandbox.session import StudentLost

MAX_MESSAGE = 4_000  # characters: parts of it may be a submission's own
# When one of these fails, later rungs are skipped.
FOUNDATIONS = (EXISTS, SIGNATURE, "shape", "value")
MOST_DISCARDED = 2  # lines that a verdict shows
NOWHERE = -1  # below the lowest rung
WITHOUT_RULES = ("passed", "skipped", "missing", "grader_error")  # no rule is known to be broken


# --- one submission ------------------------------------------------------------------------------


def grade_submission(desk: Desk, submission: Submission) -> Grade:
    """Grade one submission. Student code never makes it raise."""
    started = time.perf_counter()
    exercises: list[ExerciseResult] = []
    status: SubmissionStatus = "graded"
    message, notes = None, list(submission.problems)
    if submission.status != "ready":
        status, notes = submission.status, []
        message = "; ".join(submission.problems) or "no .py file and no notebook was submitted"
        lost = StudentLost("crashed", message)
        exercises = [_all_missing(desk, name, lost, "missing") for name in desk.tests]
    else:
        try:
            with desk.seat(submission) as seat:
                notes += [note for found in seat.listing.found for note in found.notes]
                notes += sentences.unreadable(seat.listing.found)
                exercises = grade_exercises(desk, seat)
        except StudentLost as lost:  # its text alone brought the listing down
            exercises = [_all_missing(desk, name, lost, lost.status) for name in desk.tests]
        except HostFault as fault:
            status, message = "grader_error", str(fault)
        except Exception:  # our fault: it must not end the batch, nor be a student's zero
            status, message = "grader_error", traceback.format_exc(limit=-4)
    if any(exercise.faulty for exercise in exercises):
        status = "grader_error"
        message = "the grader itself failed in a test; its points are not known"
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
        processor=torch.backends.cpu.get_cpu_capability(),
    )


def _total(points: Iterator[float]) -> float:
    return from_thousandths(sum(round(part * 1000) for part in points))


def grade_exercises(
    desk: Desk, seat: Seat, names: Collection[str] | None = None, solved: Collection[str] = ()
) -> list[ExerciseResult]:
    """Grade each exercise of the desk, or of `names`, in the course's order.

    `solved` are the exercises that are known to have been right before.
    """
    chosen = [name for name in desk.tests if names is None or name in names]
    tried: dict[str, _Tried] = {}
    # Exercises that forbid the same functions share a process, so they are tried together.
    served_by = desk.forbidden.__getitem__
    for _, together in groupby(sorted(chosen, key=served_by), key=served_by):
        tried |= _try(desk, seat, list(together))
    ends = {name: [*one.first(), *one.results] for name, one in tried.items()}
    graded: list[ExerciseResult] = []
    for name in chosen:
        results = _following(desk, name, tried)
        told = at_fault(desk, seat, name, results, ends, solved)
        graded.append(_scored(desk, name, tried[name].first(told), results))
    return graded


def grade_alone(desk: Desk, seat: Seat, name: str) -> ExerciseResult:
    """Run an exercise's tests along the ladder, and count its points.

    Mistakes in the exercises that it uses are not looked for.
    """
    tried = _try(desk, seat, [name])[name]
    return _scored(desk, name, tried.first(), tried.results)


@dataclass(frozen=True)
class _Tried:
    """The results of one exercise's tests."""

    firsts: list[TestResult]  # does it exist, and are its arguments right?
    results: list[TestResult]
    answers: Answers = field(default_factory=dict)
    known: Variant | None = None  # the mistake that gives the same
    forbidden: TestResult | None = None  # the verdict on operations, where some are forbidden

    def first(self, bases: Iterable[TestResult] = ()) -> list[TestResult]:
        """The engine's own checks, in the order in which students read them.

        A wrong exercise below this one, from `bases`, comes before forbidden operations.
        """
        return [*self.firsts, *bases, *([self.forbidden] if self.forbidden else [])]

    @property
    def wrong(self) -> bool:
        """Whether a test ended with a wrong result or an exception, and none lost its process."""
        ends = {result.status for result in self.results}
        return bool(ends & {*WRONG}) and ends <= {"passed", "skipped", *WRONG}

    @property
    def gave_a_result(self) -> bool:
        """Whether it is wrong, and the first test that did not pass got a result.

        After an exception, the verdict does not describe how results behave.
        """
        return self.wrong and self.results[self.first_wrong].status == "failed"

    @property
    def first_wrong(self) -> int:
        """The place of the first test that ended with a wrong result or an exception."""
        return next(n for n, result in enumerate(self.results) if result.status in WRONG)


def _try(desk: Desk, seat: Seat, names: Sequence[str]) -> Mapping[str, _Tried]:
    """Run the tests of exercises that share a process: the public checks of all come first.

    The result of a public check is shown in full. Code that has met a hidden test could print its
    inputs there, so it runs in no public check afterwards.
    """
    climbs = [Climb(desk, seat, name) for name in names]
    for hidden in (False, True):
        seat.calls.before.changed.clear()  # public checks have reported it
        for climb in climbs:
            climb.run(hidden)
    tried = {climb.name: climb.tried() for climb in climbs}
    for climb in climbs:
        if tried[climb.name].wrong:
            tried[climb.name] = _behaving(tried[climb.name], climb.discarded())
    unnamed = [name for name, one in tried.items() if one.gave_a_result and one.known is None]
    if unnamed and any(test.hidden for name in names for test in desk.tests[name]):
        seat.session.close()  # the process that is described must have met no hidden test
    for name in unnamed:
        tried[name] = _behaving(tried[name], behaves(desk, seat, name))
    return tried


class Climb:
    """One exercise's tests on one answer, on their way up the ladder."""

    def __init__(self, desk: Desk, seat: Seat, name: str) -> None:
        self.name = name
        self._desk, self._seat = desk, seat
        self._found = seat.calls.found[name]
        self._firsts = [_exists(self._found, seat.session.in_cells)]
        self._top = len(rung.order)  # the highest rung that is worth trying
        self._results: dict[str, TestResult] = {}  # by the test's key
        self._answers: dict[CaseName, Given] = {}
        if self._firsts[0].status == "passed":
            self._firsts.append(_signature(self._found, desk.oracle.contracts[name]))
        if self.hindrance is not None:
            self._top = NOWHERE

    @property
    def hindrance(self) -> TestResult | None:
        """The check that keeps all tests from running; None if they can run."""
        return self._firsts[-1] if self._firsts[-1].status != "passed" else None

    def cases(self, tests: Iterable[Test]) -> Iterator[tuple[Test, Case, Transcript]]:
        """Play the cases of each test, up to the first that does not pass.

        After a failure in one of the `FOUNDATIONS`, tests of higher rungs are left out.
        """
        for test in tests:
            if rung.order.index(test.rung) > self._top:
                continue
            for case in test.cases:
                played = play(self._desk, self._seat, test, case)
                yield test, case, played
                if not played.passed:
                    self._failed(test, played)
                    break

    def _failed(self, test: Test, played: Transcript) -> None:
        if test.rung in FOUNDATIONS:
            # What never ended would not end again.
            timeout = played.status == "timeout"
            self._top = min(self._top, NOWHERE if timeout else rung.order.index(test.rung))

    def counted(self, test: Test, played: Transcript) -> Transcript:
        """The case as it counts: failed, if it counts operations that the answer hides."""
        if test.rung != "efficiency" or not played.passed or not self._found.evasions:
            return played
        first = self._found.evasions[0]
        use = wire.Use(first.function, self._seat.session.line(first.place))
        return replace(played, status="failed", message=sentences.uncounted(use))

    def forbidden(self) -> TestResult | None:
        """The check for forbidden operations; None in exercises that forbid none."""
        groups = self._desk.course.exercises[self.name].forbidden
        if not groups:
            return None
        uses = self._seat.calls.uses(self.name)
        titles = [self._desk.course.file.operations[group].title for group in groups]
        return TestResult(
            OPERATIONS,
            sentences.forbidden_title(titles),
            "failed" if uses else "passed",
            hidden=False,
            message=sentences.forbidden(uses) if uses else None,
            rules=self._desk.rules(self.name, [FORBIDDEN]) if uses else {},
        )

    def discarded(self) -> tuple[str, ...]:
        """Sentences about the first lines of the answer that make a tensor and drop it.

        They are found in the text and need not be the mistake: they change no points.
        """
        uses = self._found.discarded[:MOST_DISCARDED]
        lines = [wire.Use(u.function, self._seat.session.line(u.place)) for u in uses]
        return tuple(map(sentences.unkept, lines))

    def run(self, hidden: bool) -> None:
        """Run the hidden tests, or the public ones, and keep their results."""
        tests = [test for test in self._desk.tests[self.name] if test.hidden is hidden]
        for test, case, played in self.cases(tests):
            self._answers[test.key, case.label] = played.given
            counted, at = self.counted(test, played), "" if played.passed else case.label
            broken: Mapping[str, str] = {}
            if counted.status not in WITHOUT_RULES:
                keys = (RETURNS,) if counted.misshapen else case.rules
                broken = self._desk.rules(self.name, keys)
            self._results[test.key] = _result(  # the last case decides
                test, counted.status, counted.message, counted.picture, at, broken
            )

    def tried(self) -> _Tried:
        """The results of all tests, with the name of the mistake if it is known."""
        there = self._firsts[0].status
        rest: TestStatus = "missing" if there == "missing" else "skipped"
        results = [
            self._results.get(test.key) or _result(test, rest)
            for test in self._desk.tests[self.name]
        ]
        if there != "passed":
            return _Tried(self._firsts, results)
        diagnosis = self._desk.diagnosis
        failed = any(result.status in WRONG for result in results)
        known = diagnosis.name(self.name, self._answers) if diagnosis and failed else None
        if known is not None:
            results = _named(results, known.title, known.hint)
        return _Tried(self._firsts, results, self._answers, known, self.forbidden())


def _behaving(tried: _Tried, lines: tuple[str, ...]) -> _Tried:
    """The results, with sentences on how the answer behaves in the first that is wrong."""
    at = tried.first_wrong
    so_far = tried.results[at].behaviour
    first = msgspec.structs.replace(tried.results[at], behaviour=(*so_far, *lines))
    return replace(tried, results=[*tried.results[:at], first, *tried.results[at + 1 :]])


def _named(results: Sequence[TestResult], mistake: str, hint: str) -> list[TestResult]:
    """The results; the wrong ones name the mistake."""
    return [
        msgspec.structs.replace(result, mistake=mistake, hint=hint)
        if result.status in WRONG
        else result
        for result in results
    ]


def _following(desk: Desk, name: str, tried: Mapping[str, _Tried]) -> list[TestResult]:
    """An exercise's results; a failure that follows from an earlier exercise's mistake names it."""
    own = tried[name]
    wrong = {test for (test, _), given in own.answers.items() if not given.passed}
    if desk.diagnosis is None or not wrong:
        return own.results
    for base in below(desk.course, name):
        known = tried[base].known if base in tried else None
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
    status: TestStatus
    message: str | None
    match found.status:
        case "found":
            status, message = "passed", "\n".join(found.notes) or None
        case "stub" | "missing":
            status, message = "missing", sentences.still_missing(found, in_cells)
        case "broken":
            status, message = "error", sentences.broken(found)
    return TestResult(EXISTS, sentences.EXISTS, status, hidden=False, message=message)


def _signature(found: wire.Found, contract: Contract) -> TestResult:
    message = sentences.signature(found, contract)
    return TestResult(
        SIGNATURE,
        sentences.SIGNATURE,
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
    )


def _scored(
    desk: Desk, name: str, firsts: list[TestResult], results: list[TestResult]
) -> ExerciseResult:
    """Turn weights into points. Hidden tests carry them; public ones only if none is hidden.

    A test earns its points by running and passing, and by nothing else. If a rule at the exercise's
    heart is broken, the tests that passed share half of the exercise's points.
    """
    exercise = desk.course.exercises[name]
    any_hidden = any(result.hidden for result in results)
    weights = [r.max if r.hidden or not any_hidden else 0.0 for r in results]
    shares = share_out(exercise.thousandths, weights)
    voided = any(first.name == OPERATIONS and first.status == "failed" for first in firsts)
    earned = [
        share if result.status == "passed" and not voided else 0
        for share, result in zip(shares, results, strict=True)
    ]
    missed = _missed(desk, name, results)
    if missed and 2 * sum(earned) > exercise.thousandths:
        earned = share_out(exercise.thousandths // 2, [float(points) for points in earned])
        firsts = [*firsts, _heart(desk, name, missed)]
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
        (*firsts, *tests),
        desk.unchecked(name),
    )


def _missed(desk: Desk, name: str, results: Sequence[TestResult]) -> list[str]:
    """The rules at an exercise's heart whose hidden tests did not all pass, skipped ones included.

    A fault of the grader's own counts as no miss.
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
        sentences.HEART,
        "failed",
        message=sentences.WITHOUT_HEART,
        rules=desk.rules(name, missed),
    )


def _all_missing(desk: Desk, name: str, lost: StudentLost, status: TestStatus) -> ExerciseResult:
    first = TestResult(EXISTS, sentences.EXISTS, status, hidden=False, message=lost.text)
    rest: TestStatus = "missing" if status == "missing" else "skipped"
    return _scored(desk, name, [first], [_result(test, rest) for test in desk.tests[name]])
