"""``course.toml``: the order, points, hints, prerequisites and forbidden operations of exercises.

An error in the file is reported with its line and key.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar
from zoneinfo import available_timezones

import msgspec

from grader.records.decisions import LATE, TOTAL
from grader.records.faults import CallError
from grader.records.grade import THOUSAND, thousandths
from grader.records.lateness import RULE, Counts, RuleError, rule_of, span_of

AnyFile = TypeVar("AnyFile")


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Exercise(_Table, frozen=True):
    """An exercise in ``course.toml``."""

    name: str
    title: str
    points: float
    hints: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    # The essential rules of the statement: an answer that breaks any of them keeps at most half of
    # the points.
    heart: tuple[str, ...] = ()
    # Scripts in ``experiments/`` that demonstrate an idea of the exercise; they need no answers.
    experiments: tuple[str, ...] = ()

    @property
    def thousandths(self) -> int:
        """The points in thousandths."""
        return thousandths(self.points)


class Unit(_Table, frozen=True):
    """A unit: the exercises in one file, whose stem is `name`."""

    name: str
    title: str
    exercise: tuple[Exercise, ...]


class OperationGroup(_Table, frozen=True):
    """A named group of torch functions, which an exercise may forbid.

    `layers` are keys of torch's dispatcher that are forbidden too. ``Autograd`` forbids recording
    graphs for backward passes.
    """

    title: str
    functions: tuple[str, ...]
    layers: tuple[Literal["Autograd"], ...] = ()


class LimitTable(_Table, frozen=True):
    """The limits of a submission."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024


class Aliases(_Table, frozen=True):
    """Further names that students may use for arguments, and for parameters (weights)."""

    arguments: Mapping[str, tuple[str, ...]] = {}
    parameters: Mapping[str, tuple[str, ...]] = {}


Disclosure = Literal["mistakes", "verdicts", "nothing"]


class FeedbackTable(_Table, frozen=True):
    """How much students see of the results of hidden tests.

    ``mistakes``: each test's title, verdict and broken rules, with the name and hint of a known
    mistake, or with the behaviour of the answer. ``verdicts``: each test's title and verdict.
    ``nothing``: only whether all hidden tests passed.
    """

    hidden: Disclosure = "mistakes"
    # How to ask for another look at a grade; at the end of each student's page.
    ask: str = ""


class Assignment(_Table, frozen=True):
    """A part of the course that is submitted, graded and exported together."""

    name: str
    exercises: tuple[str, ...]  # names of exercises, or of units for all their exercises
    title: str = ""
    # The total on the platform; None: the sum of the points of exercises and questions.
    points: float | None = None
    manual: tuple[str, ...] = ()  # names of questions that a person marks
    due: datetime | None = None
    # Who subtracts points for lateness: we do, by the rule `late`, or the learning platform.
    late_by: Literal["us", "lms"] = "lms"
    late: str = ""  # a rule: see `grader.records.lateness`
    grace: str = ""  # a time such as ``30 minutes`` after `due` that is not yet late
    until: datetime | None = None  # a later submission earns nothing
    counts: Counts = "last"  # which of a student's submissions

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name

    def scale(self, most: float) -> float:
        """The points on the learning platform for one point of the kit.

        `most` is the sum of the exercises' points in the kit.
        """
        return self.points / most if self.points is not None and most else 1.0


class Question(_Table, frozen=True):
    """A question without code, which a person marks: ``[[manual]]``."""

    name: str
    points: float
    title: str = ""
    rubric: str = ""  # for the person who marks, and for the student


class TermTable(_Table, frozen=True):
    """How the assignments of a term count together: see `grader.grades.term`."""

    drop: int = 0  # the number of lowest shares that are left out
    free_days: int = 0  # days of lateness without a penalty, for each student in the whole term
    weights: Mapping[str, float] = {}  # by assignment; 1 without an entry


class CourseFile(_Table, frozen=True):
    """The content of ``course.toml``."""

    name: str
    title: str
    seed: str
    unit: tuple[Unit, ...]
    operations: Mapping[str, OperationGroup] = {}
    limits: LimitTable = LimitTable()
    aliases: Aliases = Aliases()
    feedback: FeedbackTable = FeedbackTable()
    assignment: tuple[Assignment, ...] = ()
    manual: tuple[Question, ...] = ()
    term: TermTable = TermTable()
    zone: str = ""  # the zone of times without an offset: a name of the IANA database
    assigned: str = ""  # in a bundle: the assignment for which it was released


class Overlay(_Table, frozen=True):
    """A ``course.toml`` that adds private solutions to another course.

    The keys below override those of the other course.
    """

    overlay: str  # the other course's folder, relative to this folder
    limits: LimitTable | None = None
    feedback: FeedbackTable | None = None
    assignment: tuple[Assignment, ...] | None = None
    manual: tuple[Question, ...] | None = None
    term: TermTable | None = None
    zone: str | None = None


def decode_course(path: Path, text: str) -> CourseFile:
    """Decode the text of a ``course.toml``, and check it; raise `CallError` for an error in it."""
    return checked_course(path, text, decode_table(path, text, CourseFile))


def decode_table(path: Path, text: str, kind: type[AnyFile]) -> AnyFile:
    """Decode the text of a ``course.toml``; raise `CallError` for unknown keys or wrong types."""
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise CallError(_located(path, text, str(error))) from None
    except msgspec.DecodeError as error:
        raise CallError(f"{path}: {error}") from None


def checked_course(path: Path, text: str, file: CourseFile) -> CourseFile:
    """Check constraints that types do not express; return the file, or raise `CallError`."""
    for place, problem in _problems(file):
        raise CallError(_located(path, text, f"{problem} - at `{place}`"))
    return file


ZONE = 'set `zone` for the course (zone = "Europe/Berlin"), or add an offset: 23:59:00+01:00'


# --- constraints that types do not express -------------------------------------------------------


def _problems(file: CourseFile) -> Iterator[tuple[str, str]]:
    yield from _problems_of_assignments(file)
    yield from _problems_of_questions(file)
    yield from _problems_of_term(file)
    zones = available_timezones() if file.zone else set()
    if zones and file.zone not in zones:  # a computer without data about zones knows none
        yield "$.zone", f'zone {file.zone!r} does not exist: write one such as "Europe/Berlin"'
    for key, value in msgspec.structs.asdict(file.limits).items():
        if not 0 < value < math.inf:
            yield f"$.limits.{key}", f"{key} must be positive, got {value}"
    units: set[str] = set()
    seen: set[str] = set()
    for u, unit in enumerate(file.unit):
        if not unit.name.isidentifier():
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is not a file stem"
        if unit.name in units:
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is there twice"
        units.add(unit.name)
        for e, exercise in enumerate(unit.exercise):
            where = f"$.unit[{u}].exercise[{e}]"
            if exercise.name in (TOTAL, LATE):
                yield f"{where}.name", f"the name {exercise.name!r} is taken: choose another"
            if not exercise.name.isidentifier() or keyword.iskeyword(exercise.name):
                yield f"{where}.name", f"exercise {exercise.name!r} is not a Python name"
            if exercise.name in seen:
                yield f"{where}.name", f"exercise {exercise.name!r} is there twice"
            if not 1 / THOUSAND <= exercise.points < math.inf:
                yield f"{where}.points", f"points must be positive, got {exercise.points}"
            for name in exercise.requires:
                if name not in seen:
                    yield f"{where}.requires", f"{name!r} does not come before {exercise.name}"
            for name in exercise.forbidden:
                if name not in file.operations:
                    known = ", ".join(file.operations)
                    yield f"{where}.forbidden", f"no operations are called {name!r}, only {known}"
            for name in exercise.experiments:
                if not name.isidentifier():
                    yield f"{where}.experiments", f"experiment {name!r} is not a file stem"
            seen.add(exercise.name)


def _problems_of_assignments(file: CourseFile) -> Iterator[tuple[str, str]]:
    known = {unit.name for unit in file.unit} | {e.name for u in file.unit for e in u.exercise}
    names: set[str] = set()
    for a, assignment in enumerate(file.assignment):
        where = f"$.assignment[{a}]"
        if assignment.name in names:
            yield f"{where}.name", f"assignment {assignment.name!r} is there twice"
        names.add(assignment.name)
        if not assignment.exercises:
            yield f"{where}.exercises", f"assignment {assignment.name!r} has no exercises"
        for name in assignment.exercises:
            if name not in known:
                yield f"{where}.exercises", f"there is no exercise or unit called {name!r}"
        if assignment.points is not None and not 0 < assignment.points < math.inf:
            yield f"{where}.points", f"points must be positive, got {assignment.points}"
        for name in assignment.manual:
            if name not in {question.name for question in file.manual}:
                yield f"{where}.manual", f"there is no [[manual]] question called {name!r}"
        for key in ("due", "until"):
            moment = getattr(assignment, key)
            if moment is not None and moment.tzinfo is None and not file.zone:
                yield f"{where}.{key}", f"{key} has no zone: {ZONE}"
        yield from ((f"{where}.{key}", why) for key, why in _problems_of_lateness(assignment))
    if file.assigned and file.assigned not in names:
        yield "$.assigned", f"there is no assignment called {file.assigned!r}"


def _problems_of_questions(file: CourseFile) -> Iterator[tuple[str, str]]:
    taken = {unit.name for unit in file.unit} | {e.name for u in file.unit for e in u.exercise}
    taken |= {TOTAL, LATE}
    for q, question in enumerate(file.manual):
        where = f"$.manual[{q}]"
        if not question.name.isidentifier():
            yield f"{where}.name", f"question {question.name!r} is not a name of one word"
        if question.name in taken:
            yield f"{where}.name", f"the name {question.name!r} is taken: choose another"
        if not 1 / THOUSAND <= question.points < math.inf:
            yield f"{where}.points", f"points must be positive, got {question.points}"
        taken.add(question.name)


def _problems_of_term(file: CourseFile) -> Iterator[tuple[str, str]]:
    names = {assignment.name for assignment in file.assignment}
    for key in ("drop", "free_days"):
        if getattr(file.term, key) < 0:
            yield f"$.term.{key}", f"{key} must not be negative"
    for name, weight in file.term.weights.items():
        if name not in names:
            yield "$.term.weights", f"there is no assignment called {name!r}"
        if not 0 <= weight < math.inf:
            yield "$.term.weights", f"the weight of {name!r} must be a number from 0, got {weight}"


def _problems_of_lateness(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """The problems of an assignment's rule for late submissions, each with its key."""
    ours = assignment.late_by == "us"
    try:
        rule_of(assignment.late)
    except RuleError as error:
        yield "late", str(error)
    try:
        span_of(assignment.grace or "0 minutes")
    except RuleError as error:
        yield "grace", str(error)
    if ours and assignment.due is None:
        yield "late_by", 'late_by = "us" needs the time `due`'
    if ours and not assignment.late and assignment.until is None:
        yield "late_by", f'late_by = "us" needs a rule `late`, or a time `until`: {RULE}'
    if not ours:
        for key in ("late", "grace", "until"):
            if getattr(assignment, key):
                yield key, f'`{key}` has no effect without late_by = "us"'
    if assignment.counts != "last" and assignment.due is None:
        yield "counts", f'counts = "{assignment.counts}" needs the time `due`'
    due, until = assignment.due, assignment.until
    if (
        due is not None
        and until is not None
        and due.replace(tzinfo=None) > until.replace(tzinfo=None)
    ):
        yield "until", "`until` is before `due`"


# --- the line of an error ------------------------------------------------------------------------


def _located(path: Path, text: str, message: str) -> str:
    """Replace the place in msgspec's message, such as ``$.unit[0].name``, by the line and key."""
    problem, _, place = message.partition(" - at `")
    place = place.rstrip("`").removeprefix("$")
    unknown = re.search(r"unknown field `([^`]+)`", problem)
    missing = re.search(r"missing required field `([^`]+)`", problem)
    # In brackets, a number is an index, and "..." means any key of a table.
    keys = [key or index for key, index in re.findall(r"([A-Za-z_]\w*)|\[([\d.]+)\]", place)]
    if unknown:
        keys.append(unknown[1])
    line, found = _nearest(text, keys)
    if unknown:
        return f"{path}:{line}: unknown key {unknown[1]!r}"
    if missing:
        return f"{path}:{line}: key {missing[1]!r} is missing"
    named = [key for key in found or keys if not key.isdigit()]
    at_key = f"{named[-1]}: " if named and not problem.startswith(named[-1]) else ""
    return f"{path}:{line}: {at_key}{problem}"


def _nearest(text: str, keys: Sequence[str]) -> tuple[int, list[str]]:
    """The line and path of a key or table; of the nearest table around it if the text lacks it."""
    best: tuple[int, list[str]] = (1, [])
    for number, path in _keys(text):
        pairs = list(zip(keys, path, strict=False))
        if len(path) > len(keys) or any(want not in ("...", have) for want, have in pairs):
            continue
        if len(path) > len(best[1]):
            best = number, path
    return best


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    """The line and path of each table header and key, found without a full TOML parser."""
    counts: dict[str, int] = {}
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"""\s*(\[\[?)\s*([\w.\-"' ]+?)\s*\]""", line):
            table = []
            parts = [part.strip(" \"'") for part in header[2].split(".")]
            for depth, part in enumerate(parts, start=1):
                table.append(part)
                name = ".".join(table)
                if depth == len(parts) and header[1] == "[[":
                    counts[name] = counts.get(name, -1) + 1
                if name in counts:
                    table.append(str(counts[name]))
            yield number, list(table)
        elif key := re.match(r"""\s*["']?([\w\- ]+?)["']?\s*=""", line):
            yield number, [*table, key[1]]
