"""A table of the times at which submissions came in, for systems that give no time themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from grader.intake.files import decoded
from grader.records.faults import CallError
from grader.records.rows import Person, letters, some_of, spellings
from grader.records.tables import read_csv
from grader.records.times import read_time

# The titles of columns, in letters and digits only. Moodle's worksheet and Canvas's names are here.
STUDENT = frozenset({
    "student", "name", "fullname", "email", "emailaddress", "login", "loginid", "id", "idnumber",
    "identifier", "username", "submission",
})  # fmt: skip
CANVAS = "canvasid"  # Canvas's number of the user, which may be another's id
TIME = frozenset({
    "time", "submitted", "submittedat", "submissiontime", "lastmodifiedsubmission", "timestamp",
    "datetime", "createdat",
})  # fmt: skip
HEADER = (
    "its first line must name a column student (or name, email, id, login, canvas id) and a column "
    "time"
)
NOTHING = ("", "-", "–")
PARTICIPANT = "participant"  # Moodle writes "Participant 12345"


@dataclass(frozen=True)
class Entry:
    """A line of the table: all that names the student, and the time."""

    names: tuple[str, ...]
    time: datetime
    line: int
    canvas: str = ""  # decides alone, if it is known whose it is

    @property
    def name(self) -> str:
        """What messages call the student."""
        return self.names[0] if self.names else self.canvas


@dataclass(frozen=True)
class Times:
    """The times of a class's submissions."""

    entries: tuple[Entry, ...] = ()

    def of(self, names: Sequence[str], person: Person) -> datetime | None:
        """The time of a submission that has these names, by this person; None if unknown."""
        known = _known_as(names, person)
        exact = {one.time for one in self.entries if _is_exactly(one, known, person)}
        named = {one.time for one in self.entries if _is_named(one, names, person)}
        if exact:
            return max(exact)
        return max(named) if len(named) == 1 else None  # two students may have one name

    def strangers(self, known: Sequence[tuple[Sequence[str], Person]]) -> list[str]:
        """The students in the table whom nobody in `known` is."""
        return [
            entry.name
            for entry in self.entries
            if not any(_is_of(entry, names, person) for names, person in known)
        ]

    def contradictions(self, known: Sequence[tuple[Sequence[str], Person]]) -> list[str]:
        """A line for each student in `known` to whom several lines give different times."""
        found: dict[str, None] = {}
        for names, person in known:
            own = _known_as(names, person)
            lines = [one for one in self.entries if _is_exactly(one, own, person)]
            for one in lines:
                if one.time != lines[0].time:
                    found[_contradiction(one, names[-1], lines[0])] = None
        return [*found]

    def without(self, names: Sequence[str], person: Person) -> Times:
        """The table without the lines of a student."""
        return Times(tuple(one for one in self.entries if not _is_of(one, names, person)))


NO_TIMES = Times()


def read_times(path: Path, zone: tzinfo | None) -> Times:
    """Read a CSV with a column for the student and a column for the time; ignore other columns.

    Times without an offset are in `zone`. Raises one `CallError` that names every wrong line.
    """
    try:
        text = decoded(path.read_bytes())
    except OSError as error:
        raise CallError(f"{path}: {error.strerror}") from None
    rows = [(line, cells) for line, cells in read_csv(text, str(path)).rows if any(cells)]
    if not rows:
        raise CallError(f"{path} is empty: {HEADER}")
    (_, header), *rest = rows
    titles = [letters(cell) for cell in header]
    who = [place for place, title in enumerate(titles) if title in STUDENT]
    when = [place for place, title in enumerate(titles) if title in TIME]
    numbers = [place for place, title in enumerate(titles) if title == CANVAS]
    if not (who or numbers) or len(when) != 1:
        raise CallError(f"{path} is not a table of times: {HEADER}")
    entries: list[Entry] = []
    wrong: list[str] = []
    for line, cells in rest:
        padded = [cell.strip() for cell in (*cells, *[""] * (len(header) - len(cells)))]
        names = tuple(padded[place] for place in who if padded[place])
        canvas = padded[numbers[0]] if numbers else ""
        if not (names or canvas) or padded[when[0]] in NOTHING:
            continue
        try:
            entries.append(Entry(names, read_time(padded[when[0]], zone), line, canvas))
        except CallError as error:
            wrong.append(f"line {line}: {error}")
    wrong += _contradictions(entries)
    if wrong:
        raise CallError(f"{path}: no time was read: {some_of(wrong)}")
    return Times(tuple(entries))


def _contradictions(entries: Sequence[Entry]) -> Iterator[str]:
    seen: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        key = (entry.canvas, *(name.casefold() for name in entry.names))
        earlier = seen.setdefault(key, entry)
        if earlier.time != entry.time:
            yield _contradiction(entry, entry.name, earlier)


def _contradiction(entry: Entry, student: str, earlier: Entry) -> str:
    return f"line {entry.line}: {student!r} has another time in line {earlier.line}"


def _is_of(entry: Entry, names: Sequence[str], person: Person) -> bool:
    exactly = _is_exactly(entry, _known_as(names, person), person)
    return exactly or _is_named(entry, names, person)


def _is_named(entry: Entry, names: Sequence[str], person: Person) -> bool:
    if entry.canvas and person.canvas:
        return False
    spelled = spellings(person.name).union(*map(spellings, names))
    return any(letters(name) in spelled for name in entry.names if letters(name))


def _is_exactly(entry: Entry, known: Set[str], person: Person) -> bool:
    if entry.canvas and person.canvas:
        return entry.canvas == person.canvas
    return not known.isdisjoint(name.casefold() for name in entry.names)


def _known_as(names: Sequence[str], person: Person) -> set[str]:
    """What names a student exactly, without case.

    Moodle's number counts only after its word, since a classmate may have it as id.
    """
    own = (*names, person.id, person.email, person.login, person.canvas)
    moodle = f"{PARTICIPANT} {person.moodle}" if person.moodle else ""
    return {name.casefold() for name in (*own, moodle) if name}
