"""Reads the roster of a class from a CSV, and matches submissions with students on the roster."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from grader.intake.files import decoded
from grader.intake.names import shown
from grader.records.faults import CallError
from grader.records.rows import Person, called, letters, listed, some_of, spellings
from grader.records.tables import read_csv

# Titles of columns, in the form that `letters` returns.
ID = {"id", "studentid", "sid", "sisuserid", "idnumber", "studentnumber", "matriculation"}
NAME = {"name", "fullname", "student", "studentname"}
FIRST, LAST = {"firstname", "givenname", "first"}, {"lastname", "surname", "familyname", "last"}
EMAIL = {"email", "emailaddress", "mail"}
GITHUB = "githubusername"
LOGIN = {GITHUB, "login", "loginid", "netid", "sisloginid", "username"}
GROUP = {"group", "team"}
CANVAS = {"canvasid"}  # Canvas's id of the user, which the names in its downloads have
# In GitHub Classroom's roster, whatever the teacher entered: a name, an id or an e-mail address.
IDENTIFIER = {"identifier"}
KINDS = {
    "id": ID, "name": NAME, "first name": FIRST, "last name": LAST, "e-mail": EMAIL,
    "login": LOGIN, "group": GROUP,
}  # fmt: skip
HEADER = "A roster begins with a line such as: id,name,email"
# Texts in rows without a real student, in a gradebook that Canvas exported.
NOBODYS = ("Points Possible", "Student, Test", "Manual Posting")


@dataclass(frozen=True)
class Roster:
    """The people of a class, and their groups."""

    people: tuple[Person, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # students' keys, by the group's normalised name
    columns: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # titles of the file's columns, by a key of `KINDS`
    notes: tuple[str, ...] = ()  # lines about odd rows of the file

    @cached_property
    def keys(self) -> Mapping[str, Person]:
        """Each person, by the key that the gradebook uses until they submit something."""
        return {_key(person): person for person in self.people}

    def lists(self, person: Person) -> bool:
        """Whether a person of the gradebook is on the roster."""
        return _mark(person) in self._marks

    @cached_property
    def _marks(self) -> frozenset[tuple[str, ...]]:
        return frozenset(map(_mark, self.people))

    def find(self, person: Person, key: str) -> str | None:
        """The key of the person who made a submission; None unless exactly one person matches."""
        tests: list[Callable[[Person], bool]] = [
            lambda p: bool(p.canvas) and p.canvas == person.canvas,
            lambda p: bool(p.id) and p.id in (person.id, person.canvas, key),
            lambda p: bool(p.email) and _folded(p.email) in (_folded(person.email), _folded(key)),
            lambda p: bool(p.email) and _folded(p.email).partition("@")[0] == _folded(key),
            lambda p: bool(p.login) and _folded(p.login) in (_folded(person.login), _folded(key)),
            lambda p: bool(spellings(p.name) & {letters(person.name), letters(key)} - {""}),
        ]
        for fits in tests:
            found = [key for key, p in self.keys.items() if fits(p)]
            if found:
                return found[0] if len(found) == 1 else None
        return self._clone_of(key)

    def _clone_of(self, name: str) -> str | None:
        """The key of the person whose login ends a clone's name: ``hw1-ada`` is ada's.

        The longest login counts: ``hw1-jane-doe`` is not doe's if there is a login ``jane-doe``.
        """
        found: dict[int, list[str]] = {}
        for key, person in self.keys.items():
            if person.login and _folded(name).endswith(f"-{_folded(person.login)}"):
                found.setdefault(len(person.login), []).append(key)
        longest = found[max(found)] if found else []
        return longest[0] if len(longest) == 1 else None

    def without(self, gone: Person) -> Roster:
        """The roster without the person who has the same id, or else the same other data."""
        mark = (lambda p: p.id) if gone.id else (lambda p: (p.email, p.name, p.login))
        keys = {key for key, person in self.keys.items() if mark(person) == mark(gone)}
        people = tuple(person for key, person in self.keys.items() if key not in keys)
        groups = {
            name: tuple(m for m in members if m not in keys)
            for name, members in self.groups.items()
        }
        return replace(self, people=people, groups=groups)

    def group(self, name: str) -> tuple[str, ...]:
        """The keys of the members of the group with this name."""
        return self.groups.get(letters(name), ())


NO_ROSTER = Roster()


def _key(person: Person) -> str:
    return shown(person.id or person.email or person.name or person.login)


def _mark(person: Person) -> tuple[str, ...]:
    return person.id, person.email, person.name, person.login


def read_roster(path: Path) -> Roster:
    """Read a CSV with a header: id, name, e-mail, group, in any order; other columns are kept.

    GitHub Classroom's own roster is read too. A student may have several rows that differ only in
    other columns, such as the section. Raises `CallError` if the file is no CSV, names no student,
    or has rows for a student that contradict each other.
    """
    try:
        text = decoded(path.read_bytes())
    except OSError as error:
        raise CallError(f"{path}: {error.strerror}") from None
    (_, columns), *rows = _rows(text, path) or [(1, [])]
    if any(ord(c) < ord(" ") and not c.isspace() for title in columns for c in title):
        raise CallError(f"{path} is no CSV: {HEADER}")
    kinds = [letters(column) for column in columns]
    if not any(kind in ID | NAME | FIRST | LAST | EMAIL | LOGIN for kind in kinds):
        raise CallError(
            f"{path}: its first line has no column for an id, a name or an email; "
            f"it reads: {', '.join(columns)[:200] or 'nothing'}. {HEADER}"
        )
    entries: dict[str, _Entry] = {}
    notes: list[str] = []
    for line, row in rows:
        person, group = _person(columns, kinds, row)
        key = _key(person)
        if any(text in cell for text in NOBODYS for cell in row):
            continue
        entry = _Entry(line, person, group)
        if not key:
            notes.append(f"{path}:{line}: left out, since it has no id, name or e-mail")
        elif key not in entries:
            entries[key] = entry
        else:
            entries[key], note = _joined(entries[key], entry, key, path)
            notes.append(note)
    if not entries:
        raise CallError(
            f"{path} has no student below its first line: leave out --roster, or add one"
        )
    groups: dict[str, tuple[str, ...]] = {}
    for key, entry in entries.items():
        if entry.group:
            groups[letters(entry.group)] = (*groups.get(letters(entry.group), ()), key)
    people = tuple(entry.person for entry in entries.values())
    return Roster(people, groups, _taken(columns, kinds), tuple(notes))


@dataclass(frozen=True)
class _Entry:
    """A row of a roster."""

    line: int
    person: Person
    group: str


def _joined(first: _Entry, again: _Entry, key: str, path: Path) -> tuple[_Entry, str]:
    """The entry of a student who has two rows, and a note; `CallError` if the rows contradict."""
    one, other = first.person, again.person
    about = {
        "name": (one.name, other.name),
        "e-mail": (one.email, other.email),
        "login": (one.login, other.login),
        "group": (first.group, again.group),
    }
    for what, (before, after) in about.items():
        if before and after and before != after:
            raise CallError(
                f"{path}:{again.line}: {key} is there twice: line {first.line} has the {what} "
                f"{shown(before)!r}, and line {again.line} has {shown(after)!r}. Correct one of "
                "the lines, or remove it"
            )
    if not (one.id or one.email or one.login) and one.extra != other.extra:
        raise CallError(
            f"{path}:{again.line}: {key} is there twice: line {first.line} differs in other "
            "columns only. If these are two students, add a column with ids or e-mail addresses; "
            "if this is one student, remove one of the lines"
        )
    cells = {title: (cell, other.extra.get(title, "")) for title, cell in one.extra.items()}
    extra = {title: " and ".join(dict.fromkeys(filter(None, two))) for title, two in cells.items()}
    person = msgspec.structs.replace(
        one,
        name=one.name or other.name,
        email=one.email or other.email,
        login=one.login or other.login,
        extra=extra,
    )
    pairs = {what: two for what, two in about.items() if what not in ("login", "group")} | cells
    differing = [what for what, (before, after) in pairs.items() if before != after]
    how = f"differ only in {listed(differing, 'and')}" if differing else "are the same"
    note = (
        f"{path}:{again.line}: {called(key, shown(person.name))} is in line {first.line} already; "
        f"the lines {how}, so they count as one student"
    )
    return replace(first, person=person, group=first.group or again.group), note


def _rows(text: str, path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV that are not blank, each with the number of its first line."""
    rows = read_csv(text, str(path)).rows
    return [(line, [cell.strip() for cell in cells]) for line, cells in rows if any(cells)]


def _taken(columns: Sequence[str], kinds: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The titles of the recognised columns, by a key of `KINDS`."""
    meanings = {"identifier": IDENTIFIER, **KINDS} if GITHUB in kinds else KINDS
    found = {
        meaning: tuple(column for column, kind in zip(columns, kinds, strict=True) if kind in names)
        for meaning, names in meanings.items()
    }
    return {meaning: titles for meaning, titles in found.items() if titles}


def _person(
    columns: Sequence[str], kinds: Sequence[str], cells: Sequence[str]
) -> tuple[Person, str]:
    """The person in a row, and the name of their group."""

    def of(names: Iterable[str]) -> str:
        wanted = (cell for kind, cell in zip(kinds, cells, strict=False) if kind in names)
        return next((cell for cell in wanted if cell), "")

    known = ID | NAME | FIRST | LAST | EMAIL | CANVAS
    extra = {
        column: cell
        for column, kind, cell in zip(columns, kinds, cells, strict=False)
        if kind not in known
    }
    name = of(NAME) or f"{of(FIRST)} {of(LAST)}".strip()
    person = Person(of(ID), name, of(EMAIL), of(CANVAS), extra=extra, login=of(LOGIN))
    return (_identified(person, of(IDENTIFIER)) if GITHUB in kinds else person), of(GROUP)


def _identified(person: Person, identifier: str) -> Person:
    """The person, with an identifier of GitHub Classroom as id, name or e-mail, by its form."""
    if "@" in identifier:
        what = "email"
    elif re.search(r"\d", identifier) and not re.search(r"\s", identifier):
        what = "id"
    else:
        what = "id" if person.name and letters(identifier) != letters(person.name) else "name"
    return (
        person if getattr(person, what) else msgspec.structs.replace(person, **{what: identifier})
    )


def _folded(text: str) -> str:
    return text.strip().casefold()


# --- conflicts -----------------------------------------------------------------------------------
#
# If several submissions claim the same name or the same student, none of these counts.


@dataclass(frozen=True)
class Claim:
    """A submission, and a student who would get its grade."""

    number: int  # index of the submission
    name: str  # the submission's name
    place: str  # the path where it was found
    student: str
    key: str | None  # the student's key on the roster

    @property
    def rows(self) -> list[str]:
        """The names that the grade may have in the gradebook."""
        return [self.student] if self.key is None else [self.student, self.key]


def conflicts_of(claims: Iterable[Claim], roster: Roster) -> dict[str, str]:
    """Why students with submissions get no grade, by each name that their grade may have."""
    of_name: dict[str, dict[int, Claim]] = {}
    of_row: dict[str, dict[int, Claim]] = {}
    every = list(claims)
    for claim in every:
        of_name.setdefault(claim.name, {})[claim.number] = claim
        for row in claim.rows:
            of_row.setdefault(row, {})[claim.number] = claim
    conflicts: dict[str, str] = {}
    for claim in every:
        lines = [_alike([*of_name[claim.name].values()])]
        lines += [_twice(row, [*of_row[row].values()], roster) for row in claim.rows]
        why = next(filter(None, lines), "")
        conflicts |= dict.fromkeys(claim.rows, why) if why else {}
    return conflicts


def _alike(claims: Sequence[Claim]) -> str:
    """The conflict of several submissions with the same name; empty for a single submission."""
    if len(claims) == 1:
        return ""
    places = listed([claim.place for claim in claims], "and")
    return f"{_many(claims)} submissions are called '{claims[0].name}': {places}; rename one"


def _twice(row: str, claims: Sequence[Claim], roster: Roster) -> str:
    """The conflict of several submissions of the same student; empty for a single submission."""
    if len(claims) == 1:
        return ""
    student = called(row, shown(roster.keys[row].name)) if row in roster.keys else row
    names = listed([f"of '{claim.name}'" for claim in claims], "and")
    return f"{student} would get {_many(claims)} grades, {names}: keep only one submission"


def _many(claims: Sequence[Claim]) -> str:
    return "two" if len(claims) == 2 else str(len(claims))


def all_of(conflicts: Mapping[str, str]) -> str:
    """All distinct conflicts, joined into a line."""
    return "; ".join(dict.fromkeys(conflicts.values()))


# --- suggestions ---------------------------------------------------------------------------------
#
# Suggests which absent student a stranger (a name that is not on the roster) may be, by similar
# names and numbers. A suggestion never becomes a match.

LOOKED_AT = 20  # the most strangers who get suggestions; more may mean a roster of another class
MOST_NEAR = 3  # the most suggestions for one stranger


def left_over(
    strangers: Mapping[str, Person], absent: Mapping[str, Person], *, whole: bool = True
) -> Iterator[str]:
    """Notices about strangers, with suggestions, and about absent students if all are expected."""
    others, looked_at = dict(strangers), list(strangers.items())[:LOOKED_AT]
    waiting = _Absent(absent if looked_at else {})
    for student, person in looked_at:
        near = waiting.near(student, person)
        if near:
            del others[student]
            names = [called(key, shown(absent[key].name)) for key in near[:MOST_NEAR]]
            yield f"not on the roster: '{student}'; did you mean {' or '.join(names)}?"
    yield from _some("submitted but not on the roster", others)
    if whole:
        yield from _some("on the roster without a submission", absent)


def _some(label: str, people: Mapping[str, Person]) -> list[str]:
    """At most one notice, which names some of the people."""
    if not people:
        return []
    names = [called(student, shown(person.name)) for student, person in people.items()]
    return [f"{len(people)} {label}: {some_of(names)}"]


CUTOFF = 0.8  # for difflib: "Diana Diaz" is near "Dana Diaz", and "Elif Diaz" is not
SHORTEST = 4  # names with fewer letters, and numbers with fewer digits, are ignored


class _Absent:
    """Absent students, indexed by the spellings of their names and by their numbers."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        self._spelled: dict[str, list[str]] = {}
        self._numbers: dict[str, list[str]] = {}
        for key, person in people.items():
            for name in _names(key, person):
                self._spelled.setdefault(name, []).append(key)
            for number in _numbers(key, person.id):
                self._numbers.setdefault(number, []).append(key)

    def near(self, student: str, person: Person) -> list[str]:
        """The keys of absent students who may be this stranger, by name or else by number.

        `student` is the stranger's key; `person` holds the data from a download.
        """
        found = [
            (difflib.SequenceMatcher(None, own, name).ratio(), name)
            for own in _names(student, person)
            for name in difflib.get_close_matches(own, self._spelled, n=1, cutoff=CUTOFF)
        ]
        if found:
            return self._spelled[max(found)[1]]
        numbers = _numbers(student, person.id)
        slips = (keys for number, keys in self._numbers.items() if _slips(number, numbers))
        return [*dict.fromkeys(key for keys in slips for key in keys)]


def _names(key: str, person: Person) -> set[str]:
    """All spellings of a person's names, in letters alone; also those with the last name first."""
    known = (key, person.name, person.email.partition("@")[0], person.login)
    texts = map(shown, known)
    words = (re.sub(r"[\W\d_]+", " ", text).split() for text in texts)
    found = {one for own in words for some in _shorter(own) for one in spellings(" ".join(some))}
    return {name for name in found if len(name) >= SHORTEST}


def _shorter(words: list[str]) -> Iterator[list[str]]:
    """A name's words, and the pairs of its words that a system may have kept."""
    yield words
    if len(words) > 2:
        yield words[:2]
        yield [words[0], words[-1]]


def _numbers(*texts: str) -> set[str]:
    return {n for text in texts for n in re.findall(r"\d+", shown(text)) if len(n) >= SHORTEST}


def _slips(number: str, others: Iterable[str]) -> bool:
    """Whether some other number has the same digits in any order, or one digit more or less.

    A number with a different digit does not count, since it may be a classmate's.
    """
    return any(
        (Counter(number) - Counter(other) + (Counter(other) - Counter(number))).total() <= 1
        for other in others
    )
