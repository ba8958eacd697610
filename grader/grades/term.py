"""The sheet of a term: the gradebooks of several assignments, as one percentage for each student.

A student's share in an assignment is the total by the maximum. The term's percentage is the mean of
the shares by weight. Excused assignments are left out, and the lowest shares may be dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction

from grader.grades.decisions import NONE
from grader.grades.gradebook import Gradebook
from grader.grades.privacy import pseudonyms
from grader.records.decisions import Decision, standing
from grader.records.faults import CallError
from grader.records.grade import thousandths
from grader.records.lateness import Policy
from grader.records.rows import (
    ABSENT,
    CONFLICT,
    Cell,
    Person,
    Row,
    called,
    csv_line,
    listed,
    some_of,
)
from grader.records.times import written_time

FREE = re.compile(r"free days: (\d{1,3})")  # the reason of extensions that stand for free days
UNKNOWN = (CONFLICT, "grader_error")  # with these statuses nobody knows the points


@dataclass(frozen=True)
class Part:
    """The gradebook of an assignment, as a part of a term."""

    name: str
    rows: Sequence[Row]
    weight: float = 1.0
    policy: Policy | None = None
    rostered: bool = False  # whether the gradebook has a roster
    # The students' own due times, without free days, and the free days that extensions granted.
    extended: Mapping[str, datetime] = field(default_factory=dict)
    granted: Mapping[str, int] = field(default_factory=dict)
    # The rows with no free day, one, two, …; the same as `rows` if nobody has free days.
    freed: Sequence[Mapping[str, Row]] = ()

    @property
    def most(self) -> float:
        """The maximum of a student's points, for students without a submission."""
        return max((row.max for row in self.rows if row.max is not None), default=0.0)

    def due(self, student: str, days: int = 0) -> datetime:
        """A student's due time with so many free days; the assignment must have a due time."""
        assert self.policy is not None
        base = max(self.policy.due, self.extended.get(student, self.policy.due))
        return base + timedelta(days=days)


def part_of(book: Gradebook, name: str, weight: float, free_days: int) -> Part:
    """A gradebook as a part of a term in which students have so many free days."""
    rows, policy, history = book.rows(), book.policy, book.decisions()
    extended, granted = _extensions(history)
    part = Part(name, rows, weight, policy, bool(book.roster.people), extended, granted)
    if not free_days or policy is None or policy.by != "us":
        return part
    students = [row.student for row in rows]
    freed = []
    for days in range(free_days + 1):
        times = {student: part.due(student, days) for student in students}
        due = {who: time if time > policy.due else None for who, time in times.items()}
        freed.append({row.student: row for row in book.rows(due=due)})
    return replace(part, freed=freed)


def _extensions(history: Sequence[Decision]) -> tuple[dict[str, datetime], dict[str, int]]:
    """The students' own due times without free days, and the free days that were granted.

    Free days that an instructor has entered as extensions are therefore not used twice.
    """
    extended: dict[str, datetime] = {}
    granted: dict[str, int] = {}
    for student, own in standing(history).items():
        one = own.get(("extension", ""))
        if one is not None:
            free = FREE.fullmatch(one.text)
            days = int(free[1]) if free else 0
            extended[student] = datetime.fromisoformat(one.until) - timedelta(days=days)
            if free:
                granted[student] = days
    return extended, granted


@dataclass(frozen=True)
class Share:
    """A student's result in an assignment."""

    row: Row | None  # None if the student is not in the gradebook
    most: float  # the maximum of the points
    free_days: int = 0  # used for this assignment

    @property
    def excused(self) -> bool:
        """Whether the assignment is left out for the student."""
        return self.row is not None and self.row.excused

    @property
    def known(self) -> bool:
        """Whether the points are known; without a submission they are 0."""
        return self.row is None or self.row.status not in UNKNOWN or self.row.total is not None

    @property
    def points(self) -> float:
        """The points after penalties; 0 if there was nothing to judge."""
        return (self.row.total or 0.0) if self.row is not None else 0.0

    @property
    def exact(self) -> Fraction:
        """The points by the maximum; a bonus may make it more than 1."""
        return Fraction(thousandths(self.points), thousandths(self.most) or 1)


@dataclass(frozen=True)
class Member:
    """A student's term."""

    student: str
    person: Person
    shares: Sequence[Share]  # in the order of the assignments
    dropped: Sequence[int]  # indices of assignments
    percent: float | None  # None if points are unknown, or if all is excused
    free_days_left: int

    @property
    def free_days_used(self) -> int:
        """The free days that the student used in the term."""
        return sum(share.free_days for share in self.shares)


@dataclass(frozen=True)
class Term:
    """The sheet of a term."""

    names: Sequence[str]
    members: Sequence[Member]
    notes: Sequence[str]
    free_days: int


def term(parts: Sequence[Part], drop: int = 0, free_days: int = 0) -> Term:
    """Sum up the assignments of a term; raises `CallError` if students cannot be matched.

    Of `drop` lowest shares, at least one share remains; of equal shares the earlier one is dropped.
    Each student has `free_days`, which are used in the order of the due times: as few whole days as
    give the smallest penalty that the days left can give.
    """
    people = _matched(parts)
    members: list[Member] = []
    notes: list[str] = []
    for student, rows in sorted(people.items()):
        own = [one for one in rows if one is not None]
        if _has_left(parts, rows):
            notes.append(f"not in the sheet, since no longer on the roster: {_called(own[-1])}")
            continue
        shares, left = _with_free_days(parts, rows, free_days)
        dropped = _dropped(shares, parts, drop)
        percent = _percent(shares, parts, dropped)
        members.append(Member(student, _person(own), shares, dropped, percent, left))
    notes += _notes(parts, members)
    return Term([part.name for part in parts], members, notes, free_days)


def _percent(
    shares: Sequence[Share], parts: Sequence[Part], dropped: Sequence[int]
) -> float | None:
    """The mean of the shares by weight, in percent, rounded to thousandths once."""
    counting = [
        (share, Fraction(part.weight).limit_denominator(10**6))
        for n, (share, part) in enumerate(zip(shares, parts, strict=True))
        if not share.excused and n not in dropped
    ]
    weight = sum(weight for _, weight in counting)
    if not weight or not all(share.known for share in shares if not share.excused):
        return None
    mean = sum(share.exact * weight for share, weight in counting) / weight
    return int(mean * 100_000 + Fraction(1, 2)) / 1000


def _dropped(shares: Sequence[Share], parts: Sequence[Part], drop: int) -> Sequence[int]:
    """The indices of the lowest shares, in the order of the assignments."""
    counting = [n for n, share in enumerate(shares) if not share.excused and parts[n].weight]
    lowest = sorted(counting, key=lambda n: (shares[n].exact, n))
    return sorted(lowest[: max(0, min(drop, len(counting) - 1))])


def anonymous_term(sheet: Term, parts: Sequence[Part], salt: str) -> Term:
    """The sheet with pseudonyms for students, ordered by pseudonym; see `pseudonyms`."""
    names = pseudonyms((one.student for one in sheet.members), salt)

    def hidden(one: Member) -> Member:
        shares = [
            replace(share, row=replace(share.row, student=names[one.student], person=Person()))
            if share.row is not None
            else share
            for share in one.shares
        ]
        return replace(one, student=names[one.student], person=Person(), shares=shares)

    members = sorted(map(hidden, sheet.members), key=lambda one: one.student)
    return replace(sheet, members=members, notes=[*_notes(parts, members)])


# --- free days -----------------------------------------------------------------------------------


def _with_free_days(
    parts: Sequence[Part], rows: Sequence[Row | None], days: int
) -> tuple[Sequence[Share], int]:
    """The student's shares with the free days used, and the number of days left."""
    shares = [_share(part, row) for part, row in zip(parts, rows, strict=True)]
    far = datetime.max

    def due(n: int) -> tuple[datetime, int]:
        policy = parts[n].policy
        return (policy.due.replace(tzinfo=None) if policy is not None else far), n

    for n in sorted(range(len(parts)), key=due):
        shares[n] = _freed(parts[n], shares[n], days)
        days -= shares[n].free_days
    return shares, max(days, 0)


def _share(part: Part, row: Row | None, days: int = 0) -> Share:
    most = row.max if row is not None and row.max is not None else part.most
    return Share(row, most, days)


def _freed(part: Part, share: Share, days: int) -> Share:
    """The share with so many free days at most: as few as give the most points."""
    row = share.row
    if row is None or row.excused or not part.freed:
        return share
    if row.grade is None or not row.grade.submitted:  # how late it is, nobody knows
        return share
    best = share
    for used, rows in enumerate(part.freed[: days + 1]):
        new = _share(part, rows[row.student], used)
        if used == 0 or new.points > best.points:
            best = new
    return best


def extensions_csv(sheet: Term, parts: Sequence[Part]) -> str:
    """The free days used, as a table for `grader extend`: so gradebooks agree with the sheet.

    A line also takes back the days of an earlier table that are not used any more.
    """
    lines = [csv_line(["student", "assignment", "until", "reason"])]
    for member in sheet.members:
        for part, share in zip(parts, member.shares, strict=True):
            if share.row is None or part.policy is None:
                continue
            student, days = share.row.student, share.free_days
            if not days and student not in part.granted:
                continue
            due = part.due(student, days)
            until = written_time(due) if due > part.policy.due else NONE
            lines.append(csv_line([student, part.name, until, f"free days: {days}"]))
    return "".join(lines)


# --- the same student in several gradebooks ------------------------------------------------------


def _matched(parts: Sequence[Part]) -> dict[str, list[Row | None]]:
    """The rows of each student, one for each gradebook, by the key in the last one.

    Two rows are of one student if they have the same key, id, e-mail, login or number in a system.
    """
    known: dict[str, int] = {}  # an identifying text -> the student's index
    found: list[list[Row | None]] = []
    for n, part in enumerate(parts):
        for row in part.rows:
            marks = _marks(row)
            places = {known[mark] for mark in marks if mark in known}
            if len(places) > 1 or any(found[place][n] is not None for place in places):
                others = [
                    one.student for place in places for one in found[place] if one is not None
                ]
                raise CallError(
                    f"{row.student} in {part.name} may be {listed(sorted({*others}), 'or')} of the "
                    "gradebooks: grade all of them with the same roster"
                )
            place = places.pop() if places else len(found)
            if place == len(found):
                found.append([None] * len(parts))
            found[place][n] = row
            known |= dict.fromkeys(marks, place)
    return {next(r.student for r in reversed(rows) if r is not None): rows for rows in found}


def _marks(row: Row) -> set[str]:
    person = row.person
    marks = {f"key {row.student}", f"key {person.id}" if person.id else ""}
    marks |= {f"mail {person.email.casefold()}" if person.email else ""}
    marks |= {f"login {person.login.casefold()}" if person.login else ""}
    marks |= {f"canvas {person.canvas}" if person.canvas else ""}
    marks |= {f"moodle {person.moodle}" if person.moodle else ""}
    return marks - {""}


def _person(rows: Sequence[Row]) -> Person:
    """The data about a student in the last gradebook that has some."""
    return next((row.person for row in reversed(rows) if row.person != Person()), Person())


def _has_left(parts: Sequence[Part], rows: Sequence[Row | None]) -> bool:
    """Whether a student is not on the roster of the last assignment."""
    last = rows[-1]
    return parts[-1].rostered and (last is None or last.unlisted)


# --- what to look at -----------------------------------------------------------------------------


def _notes(parts: Sequence[Part], members: Sequence[Member]) -> Iterator[str]:
    for n, part in enumerate(parts):
        rows = [(member, member.shares[n]) for member in members]
        for status in (ABSENT, "empty", "unreadable"):
            names = [
                _called(share.row)
                for _, share in rows
                if share.row is not None and share.row.status == status and not share.points
            ]
            if names:
                yield f"{part.name}: {status}, counts 0: {some_of(names)}"
        missing = [called(m.student, m.person.name) for m, share in rows if share.row is None]
        if missing:
            yield f"{part.name}: not in this gradebook, counts 0: {some_of(missing)}"
        unknown = [_called(s.row) for _, s in rows if s.row is not None and not s.known]
        if unknown:
            yield (
                f"{part.name}: the points are not known, so the term has no percentage: "
                f"{some_of(unknown)}; settle the conflict, or grade again"
            )
        late = [
            _called(s.row)
            for _, s in rows
            if s.row is not None and s.row.lateness is not None and not s.row.excused
        ]
        if late and part.policy is not None and part.policy.by == "lms":
            yield (
                f"{part.name}: late, in full here, since the learning platform subtracts: "
                f"{some_of(late)}"
            )
        unmarked = sum(bool(s.row.unmarked) for _, s in rows if s.row is not None and s.row.judged)
        if unmarked:
            yield f"{part.name}: questions are not marked yet, and count 0, for {unmarked}"
    if not any(part.weight for part in parts):
        yield "all weights are 0, so there is no percentage"
    excused = [
        called(one.student, one.person.name)
        for one in members
        if all(share.excused for share in one.shares)
    ]
    if excused:
        yield f"excused from everything, so without a percentage: {some_of(excused)}"


def _called(row: Row | None) -> str:
    return called(row.student, row.person.name) if row is not None else ""


# --- the sheet as a table ------------------------------------------------------------------------


def term_csv(sheet: Term) -> str:
    """A line for each student: points and percentages of the assignments, and of the term."""
    named = any(one.person.id or one.person.name or one.person.email for one in sheet.members)
    heads = ["student", *["id", "name", "email"] * named]
    for name in sheet.names:
        heads += [name, f"{name}_percent"]
    heads += ["dropped", "excused"]
    heads += ["free_days_used", "free_days_left"] if sheet.free_days else []
    lines = [csv_line([*heads, "term_percent"])]
    for one in sheet.members:
        cells: list[Cell] = [one.student]
        cells += [one.person.id, one.person.name, one.person.email] if named else []
        for share in one.shares:
            bare = share.excused or not share.known
            cells += [None, None] if bare else [share.points, rounded_percent(share.exact)]
        cells.append(" ".join(sheet.names[n] for n in one.dropped))
        pairs = zip(sheet.names, one.shares, strict=True)
        cells.append(" ".join(name for name, share in pairs if share.excused))
        cells += [one.free_days_used, one.free_days_left] if sheet.free_days else []
        lines.append(csv_line([*cells, one.percent]))
    return "".join(lines)


def rounded_percent(share: Fraction) -> float:
    """A share in percent, rounded to thousandths."""
    return int(share * 100_000 + Fraction(1, 2)) / 1000
