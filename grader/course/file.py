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
from typing import Annotated, Literal, TypeVar
from zoneinfo import available_timezones

import msgspec

from grader.records.decisions import LATE, TOTAL
from grader.records.descriptions import about
from grader.records.faults import CallError, did_you_mean
from grader.records.grade import THOUSAND, thousandths
from grader.records.lateness import RULE, Counts, RuleError, rule_of, span_of

AnyFile = TypeVar("AnyFile")


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Exercise(_Table, frozen=True):
    """An exercise: a function or a class to write."""

    name: Annotated[str, about("The name of the function or class in the unit's files.")]
    title: Annotated[str, about("A few words for people.")]
    points: Annotated[float, about("The points for a right answer.")]
    hints: Annotated[
        tuple[str, ...], about("Three texts: a question, a pointer, and a near-solution.")
    ] = ()
    requires: Annotated[
        tuple[str, ...], about("Earlier exercises that an answer builds on, by name.")
    ] = ()
    forbidden: Annotated[
        tuple[str, ...], about("Groups of operations that an answer must not use, by name.")
    ] = ()
    heart: Annotated[
        tuple[str, ...],
        about(
            "The keys of the statement's central rules: an answer that breaks one keeps at most "
            "half of the points."
        ),
    ] = ()
    experiments: Annotated[
        tuple[str, ...],
        about("Scripts in experiments/ that demonstrate an idea, by name; they need no answers."),
    ] = ()

    @property
    def thousandths(self) -> int:
        """The points in thousandths."""
        return thousandths(self.points)


class Unit(_Table, frozen=True):
    """A unit: the exercises in one file."""

    name: Annotated[str, about("The name of the unit's files, without their suffix.")]
    title: Annotated[str, about("A few words for people.")]
    exercise: Annotated[tuple[Exercise, ...], about("The exercises, in teaching order.")]


class OperationGroup(_Table, frozen=True):
    """A named group of torch functions, which an exercise may forbid."""

    title: Annotated[str, about("The group's name in messages for students.")]
    functions: Annotated[
        tuple[str, ...],
        about("Plain names of torch's functions, and of methods such as AdamW.step."),
    ]
    layers: Annotated[
        tuple[Literal["Autograd"], ...],
        about(
            "Keys of torch's dispatcher that are forbidden too. Autograd forbids recording graphs "
            "for backward passes."
        ),
    ] = ()


class LimitTable(_Table, frozen=True):
    """The limits of a submission."""

    test_seconds: Annotated[float, about("CPU time for each test.")] = 5.0
    submission_seconds: Annotated[float, about("CPU time for all tests together.")] = 120.0
    memory_mb: Annotated[int, about("Memory in addition to that of Python and torch.")] = 1024


class Aliases(_Table, frozen=True):
    """Further names that students may use."""

    arguments: Annotated[
        Mapping[str, tuple[str, ...]], about("Other names for arguments of references.")
    ] = {}
    parameters: Annotated[
        Mapping[str, tuple[str, ...]], about("Other names for parameters (weights).")
    ] = {}


Disclosure = Literal["mistakes", "verdicts", "nothing"]


class FeedbackTable(_Table, frozen=True):
    """How much students see of the results of hidden tests."""

    hidden: Annotated[
        Disclosure,
        about(
            "mistakes: each test's title, verdict and broken rules, with the name and hint of a "
            "known mistake, or with the behaviour of the answer. verdicts: each test's title and "
            "verdict. nothing: only whether all hidden tests passed."
        ),
    ] = "mistakes"
    ask: Annotated[
        str, about("How to ask for another look at a grade; at the end of each student's page.")
    ] = ""


class Assignment(_Table, frozen=True):
    """A part of the course that is submitted, graded and exported together."""

    name: Annotated[str, about("The name for commands, such as ps1.")]
    exercises: Annotated[
        tuple[str, ...], about("Names of exercises, or of units for all their exercises.")
    ]
    title: Annotated[str, about("A few words for people.")] = ""
    points: Annotated[
        float | None,
        about("The total on the learning platform; without it, the sum of the points."),
    ] = None
    manual: Annotated[tuple[str, ...], about("Names of questions that a person marks.")] = ()
    due: Annotated[datetime | None, about("The time after which a submission is late.")] = None
    late_by: Annotated[
        Literal["us", "lms"],
        about("Who subtracts points for lateness: we do, by the rule `late`, or the platform."),
    ] = "lms"
    late: Annotated[str, about(f"The rule for lateness: {RULE}.")] = ""
    grace: Annotated[str, about("A time after `due` that is not yet late, such as 30 minutes.")] = (
        ""
    )
    until: Annotated[datetime | None, about("A later submission earns nothing.")] = None
    counts: Annotated[Counts, about("Which of a student's submissions counts.")] = "last"

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
    """A question without code, which a person marks."""

    name: Annotated[str, about("The name for commands and tables; one word.")]
    points: Annotated[float, about("The most points that an answer gets.")]
    title: Annotated[str, about("A few words for people.")] = ""
    rubric: Annotated[str, about("For the person who marks, and for the student.")] = ""


class TermTable(_Table, frozen=True):
    """How the assignments of a term count together."""

    drop: Annotated[int, about("The number of lowest shares that are left out.")] = 0
    free_days: Annotated[
        int, about("Days of lateness without a penalty, for each student in the whole term.")
    ] = 0
    weights: Annotated[
        Mapping[str, float], about("The weight of each assignment; 1 without an entry.")
    ] = {}


_ZONE = about("The zone of times without an offset, such as Europe/Berlin.")


class CourseFile(_Table, frozen=True):
    """A course."""

    name: Annotated[str, about("The course's name, which output folders record.")]
    title: Annotated[str, about("The course's title, for people.")]
    seed: Annotated[
        str, about("The seed of the inputs in public checks; hidden tests use solutions/seed.")
    ]
    unit: Annotated[tuple[Unit, ...], about("The units, in teaching order.")]
    operations: Annotated[
        Mapping[str, OperationGroup], about("Groups of operations that exercises may forbid.")
    ] = {}
    limits: LimitTable = LimitTable()
    aliases: Aliases = Aliases()
    feedback: FeedbackTable = FeedbackTable()
    assignment: tuple[Assignment, ...] = ()
    manual: tuple[Question, ...] = ()
    term: TermTable = TermTable()
    zone: Annotated[str, _ZONE] = ""
    questions: Annotated[
        int,
        msgspec.Meta(ge=0, le=9),
        about("How many questions `grader ask` asks about a solved answer; 0 turns it off."),
    ] = 3
    assigned: Annotated[
        str, about("In a student's bundle: the assignment for which it was released.")
    ] = ""


class Overlay(_Table, frozen=True):
    """A private course: it adds solutions to another course.

    The keys besides `overlay` override those of the other course.
    """

    overlay: Annotated[str, about("The other course's folder, relative to this folder.")]
    limits: LimitTable | None = None
    feedback: FeedbackTable | None = None
    assignment: tuple[Assignment, ...] | None = None
    manual: tuple[Question, ...] | None = None
    term: TermTable | None = None
    zone: Annotated[str | None, _ZONE] = None


def decode_course(path: Path, text: str) -> CourseFile:
    """Decode the text of a ``course.toml``, and check it; raise `CallError` for an error in it."""
    return checked_course(path, text, decode_table(path, text, CourseFile))


def decode_table(path: Path, text: str, kind: type[AnyFile]) -> AnyFile:
    """Decode the text of a ``course.toml``; raise `CallError` for unknown keys or wrong types."""
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise CallError(_located(path, text, str(error), kind)) from None
    except msgspec.DecodeError as error:
        # The parser ends its text by a place in words, such as "(at line 3, column 7)".
        problem, _, place = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", place)
        number = line[1] if line else len(text.splitlines())
        raise CallError(f"{path}:{number}: not valid TOML: {problem}") from None


def checked_course(path: Path, text: str, file: CourseFile) -> CourseFile:
    """Check constraints that types do not express; return the file, or raise `CallError`."""
    for place, problem in _problems(file):
        raise refusal(path, text, place, problem)
    return file


def refusal(path: Path, text: str, place: str, problem: str) -> CallError:
    """The error to raise for a problem at a place of a ``course.toml``: ``$.unit[0].name``."""
    return CallError(_located(path, text, f"{problem} - at `{place}`"))


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
    everything = {exercise.name for unit in file.unit for exercise in unit.exercise}
    for name, group in file.operations.items():
        if not group.functions and not group.layers:
            yield f"$.operations.{name}.functions", f"group {name!r} has no functions and no layers"
    units: set[str] = set()
    seen: set[str] = set()
    for u, unit in enumerate(file.unit):
        if not unit.name.isidentifier():
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is not a file stem"
        if unit.name in units:
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is there twice"
        units.add(unit.name)
        if not unit.exercise:
            yield f"$.unit[{u}]", f"unit {unit.name!r} has no exercises: add a [[unit.exercise]]"
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
                    why = f"{name!r} does not come before {exercise.name}"
                    earlier = "; an exercise may require only earlier exercises"
                    near = earlier if name in everything else did_you_mean(name, seen)
                    yield f"{where}.requires", f"{why}{near}"
            for name in exercise.forbidden:
                if name not in file.operations:
                    near = did_you_mean(name, file.operations) or f"; add [operations.{name}]"
                    yield f"{where}.forbidden", f"no operations are called {name!r}{near}"
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
                near = did_you_mean(name, known)
                yield f"{where}.exercises", f"there is no exercise or unit called {name!r}{near}"
        if assignment.points is not None and not 0 < assignment.points < math.inf:
            yield f"{where}.points", f"points must be positive, got {assignment.points}"
        questions = [question.name for question in file.manual]
        for name in assignment.manual:
            if name not in questions:
                near = did_you_mean(name, questions)
                yield f"{where}.manual", f"there is no [[manual]] question called {name!r}{near}"
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
            near = did_you_mean(name, names)
            yield "$.term.weights", f"there is no assignment called {name!r}{near}"
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


def _located(path: Path, text: str, message: str, kind: type | None = None) -> str:
    """Replace the place in msgspec's message, such as ``$.unit[0].name``, by the line and key.

    `kind` is the type of the whole file; an unknown key is compared with the keys that it allows.
    """
    problem, _, place = message.partition(" - at `")
    place = place.rstrip("`")
    unknown = re.search(r"unknown field `([^`]+)`", problem)
    missing = re.search(r"missing required field `([^`]+)`", problem)
    keys = _keys_in(place)
    line, found = _nearest(text, [*keys, unknown[1]] if unknown else keys)
    table = _table(text, keys)
    if unknown:
        near = did_you_mean(unknown[1], _known_keys(kind, keys))
        return f"{path}:{line}: unknown key {unknown[1]!r}{table}{near}"
    if missing:
        return f"{path}:{line}: key {missing[1]!r} is missing{table}"
    named = [key for key in found or keys if not key.isdigit()]
    at_key = f"{named[-1]}: " if named and not problem.startswith(named[-1]) else ""
    return f"{path}:{line}: {at_key}{_in_words(problem)}"


def _keys_in(place: str) -> list[str]:
    """The keys in a place, in order; a number is an index, and "..." means any key of a table."""
    parts = re.findall(r"([A-Za-z_]\w*)|\[([\d.]+)\]", place.removeprefix("$"))
    return [key or index for key, index in parts]


def line_of(text: str, place: str) -> int:
    """The line of a place in the text of a ``course.toml``, or of the nearest table around it."""
    return _nearest(text, _keys_in(place))[0]


def _table(text: str, keys: Sequence[str]) -> str:
    """A table in words: `` in unit.exercise 'center'``; "" for the top of the file."""
    title = ".".join(key for key in keys if not key.isdigit())
    line, found = _nearest(text, [*keys, "name"])
    name = text.splitlines()[line - 1].partition("=")[2].strip() if found[-1:] == ["name"] else ""
    return f" in {title} {name}".rstrip() if title else ""


def _known_keys(kind: type | None, keys: Sequence[str]) -> list[str]:
    """The keys that the table at this place may have, in a file of this type."""
    found = _table_type(msgspec.inspect.type_info(kind))
    for key in keys:
        match found:
            case msgspec.inspect.StructType(fields=fields):
                found = _table_type(next(f.type for f in fields if f.encode_name == key))
            case msgspec.inspect.VarTupleType(item_type=item):
                found = _table_type(item)
            case msgspec.inspect.DictType(value_type=value):
                found = _table_type(value)
    assert isinstance(found, msgspec.inspect.StructType)
    return [field.encode_name for field in found.fields]


def _table_type(found: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type of a key's value, without its description and without None."""
    match found:
        case msgspec.inspect.Metadata(type=inner) | msgspec.inspect.UnionType(types=(inner, *_)):
            return _table_type(inner)
    return found


# The names that msgspec gives to TOML's types.
_WORDS = {
    "str": "text in quotation marks", "int": "a whole number", "float": "a number",
    "bool": "true or false", "array": "a list in brackets", "object": "a table",
    "datetime": "a date with a time, such as 2026-12-01T23:59:00Z", "date": "a date",
    "time": "a time",
}  # fmt: skip


def _in_words(problem: str) -> str:
    """Replace the names of types in msgspec's message by words."""
    types = re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", problem)
    if types is None:
        return problem
    wanted, got = (_WORDS.get(name.partition(" ")[0], name) for name in types.groups())
    return f"write {wanted}, not {got.partition(',')[0]}"


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
