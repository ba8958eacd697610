"""The gradebook: the only place where grades live.

``grades.db`` is the source of truth: the grades, each committed as it comes with the text that was
graded, who the students are, and what people corrected. ``gradebook.csv`` and ``results.jsonl`` are
written from it, whole or not at all.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import msgspec

from grader.intake import NOBODY, Roster, Submission
from grader.intake.names import file_stems
from grader.records.faults import CallError, HostFault, unwritten
from grader.records.files import write_whole
from grader.records.grade import THOUSAND, Grade
from grader.records.rows import Adjustment, Person, Row, gradebook_csv

DATABASE = "grades.db"
TABLE = "gradebook.csv"
LINES = "results.jsonl"
FEEDBACK, REPORT = "feedback", "report.html"  # pages beside them
VERSION = 3
LOCK = ".lock"  # whoever grades into the folder holds it
ANOTHER = "choose another --out"
# What can be stopped before its end, by the command that goes on with it.
GRADING, REGRADING = "grader grade", "grader grade --again"

SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS grades (
    student TEXT PRIMARY KEY,
    submission TEXT NOT NULL,
    status TEXT NOT NULL,
    key TEXT NOT NULL,  -- what decided it: see `grader.grading.order`
    grade BLOB NOT NULL  -- one Grade as JSON
) STRICT;
CREATE INDEX IF NOT EXISTS grades_by_submission ON grades (submission);
CREATE TABLE IF NOT EXISTS earlier (  -- what a regrading replaced
    run INTEGER NOT NULL,
    student TEXT NOT NULL,
    grade BLOB NOT NULL,
    PRIMARY KEY (run, student)
) STRICT;
CREATE TABLE IF NOT EXISTS submissions (
    name TEXT PRIMARY KEY,
    submission BLOB NOT NULL  -- the text that was graded: JSON, deflated
) STRICT;
CREATE TABLE IF NOT EXISTS people (
    student TEXT PRIMARY KEY,
    person BLOB NOT NULL  -- one Person as JSON
) STRICT;
CREATE TABLE IF NOT EXISTS adjustments (
    student TEXT NOT NULL,
    exercise TEXT NOT NULL,
    points INTEGER NOT NULL,  -- thousandths
    reason TEXT NOT NULL,
    PRIMARY KEY (student, exercise)
) STRICT;
"""
# Every table with students in it, and the column that names them.
OF_STUDENTS = ("grades", "earlier", "people", "adjustments")


class Gradebook:
    """Grades of one course in one folder."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    # --- what a grading writes -------------------------------------------------------------------

    def record(self, grade: Grade, submission: Submission | None = None, key: str = "") -> None:
        """Commit one grade, for each of its students; it replaces an earlier one of theirs.

        `key` is of what decided it: see `reusable`.
        """
        self.record_all([(grade, submission, key)])

    def record_all(self, grades: Iterable[tuple[Grade, Submission | None, str]]) -> None:
        """Commit all of these, or none."""
        with self._connection:
            for grade, submission, key in grades:
                for student in submission.members if submission is not None else (grade.student,):
                    own = msgspec.structs.replace(grade, student=student)
                    self._connection.execute(
                        "INSERT OR REPLACE INTO grades VALUES (?, ?, ?, ?, ?)",
                        (student, own.submission, own.status, key, own.to_json()),
                    )
                if submission is not None:
                    self._store(submission)

    def _store(self, submission: Submission) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO submissions VALUES (?, ?)",
            (submission.student, zlib.compress(msgspec.json.encode(submission))),
        )

    def keep_only(self, students: Sequence[str]) -> None:
        """Forget grades of an earlier run that this one did not make."""
        with self._connection:
            graded = [row[0] for row in self._connection.execute("SELECT student FROM grades")]
            self._connection.executemany(
                "DELETE FROM grades WHERE student = ?",
                [(student,) for student in set(graded) - set(students)],
            )
            self._drop_orphans()

    def _drop_orphans(self) -> int:
        """Remove texts that no grade is of; how many."""
        return self._connection.execute(
            "DELETE FROM submissions WHERE name NOT IN (SELECT submission FROM grades)"
        ).rowcount

    def set_people(self, people: Mapping[str, Person]) -> None:
        """Replace what is known of students; who has no grade is shown as absent."""
        with self._connection:
            self._connection.execute("DELETE FROM people")
            self._connection.executemany(
                "INSERT INTO people VALUES (?, ?)",
                [(student, msgspec.json.encode(person)) for student, person in people.items()],
            )

    def put_aside(self) -> int:
        """Keep today's grades as those of an earlier run; the run's number."""
        run = (self.last_run() or 0) + 1
        with self._connection:
            self._connection.execute(
                "INSERT INTO earlier SELECT ?, student, grade FROM grades", (run,)
            )
        return run

    @property
    def unfinished(self) -> str:
        """`GRADING` or `REGRADING` from when one begins to its end: who is missing may yet come."""
        return self._about("unfinished") or ""

    @unfinished.setter
    def unfinished(self, command: str) -> None:
        self._remember("unfinished", command)

    # --- what a person writes --------------------------------------------------------------------

    def adjust(self, student: str, adjustment: Adjustment) -> None:
        """Correct a student's points in one exercise, in place of any earlier correction there."""
        self.adjust_all([(student, adjustment)])

    def adjust_all(self, adjustments: Iterable[tuple[str, Adjustment]]) -> None:
        """Make all of these corrections of students' points, or none."""
        with self._connection:
            for student, adjustment in adjustments:
                points = round(adjustment.points * THOUSAND)
                if points:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO adjustments VALUES (?, ?, ?, ?)",
                        (student, adjustment.exercise, points, adjustment.reason),
                    )
                else:
                    self._connection.execute(
                        "DELETE FROM adjustments WHERE student = ? AND exercise = ?",
                        (student, adjustment.exercise),
                    )

    def forget(self, student: str) -> dict[str, int]:
        """Remove a student from every table, and from the file's free pages; rows lost by table.

        What a group handed in stays while another of the group has a grade of it, without the name.
        """
        people = self.people()
        listed = people.get(student)
        self.roster = self.roster.without(listed) if listed is not None else self.roster
        # In a conflict, what is kept of a student may stand under a name that no row has.
        why = self.conflicts
        others = {n for n in why.keys() - people.keys() if why[n] == why.get(student)}
        names = {student, *others}
        self.conflicts = {name: why[name] for name in why.keys() - names}
        with self._connection:
            lost = {
                table: self._connection.executemany(
                    f"DELETE FROM {table} WHERE student = ?", [(name,) for name in sorted(names)]
                ).rowcount
                for table in OF_STUDENTS
            }
            lost["submissions"] = self._drop_orphans()
            self._leave_groups(student)
        self._connection.execute("VACUUM")  # what is deleted stays in the file until then
        return lost

    def _leave_groups(self, student: str) -> None:
        """A regrading would bring back who is still in a group, or a group as if it were one."""
        for submission in list(self.submissions()):
            if student in submission.group:
                rest = tuple(name for name in submission.group if name != student)
                self._store(replace(submission, group=rest))
                if not rest:
                    self._connection.execute(
                        "DELETE FROM submissions WHERE name = ?", (submission.student,)
                    )

    # --- what is read ----------------------------------------------------------------------------

    @property
    def exercises(self) -> tuple[str, ...]:
        """What was graded, in the course's order."""
        return tuple(json.loads(self._about("exercises") or "[]"))

    @exercises.setter
    def exercises(self, names: Sequence[str]) -> None:
        self._remember("exercises", json.dumps(names))

    @property
    def assignment(self) -> str:
        """The assignment that was graded, if it was one."""
        return self._about("assignment") or ""

    @assignment.setter
    def assignment(self, name: str) -> None:
        self._remember("assignment", name)

    @property
    def roster(self) -> Roster:
        """The roster that was given last."""
        text = self._about("roster")
        return msgspec.json.decode(text, type=Roster) if text else NOBODY

    @roster.setter
    def roster(self, roster: Roster) -> None:
        self._remember("roster", msgspec.json.encode(roster).decode())

    @property
    def conflicts(self) -> Mapping[str, str]:
        """Why students have no grade of what they handed in, by all names that it may stand under.

        Grades of earlier hand-ins under these names are kept, and are in no row meanwhile.
        """
        return msgspec.json.decode(self._about("conflicts") or "{}", type=dict[str, str])

    @conflicts.setter
    def conflicts(self, conflicts: Mapping[str, str]) -> None:
        self._remember("conflicts", json.dumps(dict(conflicts)))

    @property
    def salt(self) -> str:
        """A secret of this gradebook's own, for pseudonyms that nobody can guess a name from."""
        salt = self._about("salt")
        if salt is None:
            salt = secrets.token_hex(16)
            self._remember("salt", salt)
        return salt

    def _about(self, key: str) -> str | None:
        found = self._connection.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def _remember(self, key: str, value: str) -> None:
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))

    def grades(self) -> Iterator[Grade]:
        """All grades as they were computed, by student."""
        rows = self._connection.execute("SELECT grade FROM grades ORDER BY student")
        return (Grade.from_json(row[0]) for row in rows)

    def reusable(self) -> set[tuple[str, str]]:
        """Submissions with the keys that decided their grades; none in which we failed."""
        rows = self._connection.execute(
            "SELECT submission, key FROM grades WHERE status <> 'grader_error'"
        )
        return set(rows)

    def grade(self, submission: str, key: str) -> Grade:
        """The grade of a submission that this key decided; they are `reusable`."""
        (text,) = self._connection.execute(
            "SELECT grade FROM grades "
            "WHERE submission = ? AND key = ? AND status <> 'grader_error'",
            (submission, key),
        ).fetchone()
        return Grade.from_json(text)

    def last_run(self) -> int | None:
        """The number of the last run whose grades were put aside; None if none were."""
        run: int | None
        (run,) = self._connection.execute("SELECT max(run) FROM earlier").fetchone()
        return run

    def earlier(self, run: int) -> dict[str, Grade]:
        """The grades that a regrading replaced, by student."""
        rows = self._connection.execute(
            "SELECT student, grade FROM earlier WHERE run = ? ORDER BY student", (run,)
        )
        return {student: Grade.from_json(grade) for student, grade in rows}

    def people(self) -> dict[str, Person]:
        """What is known of students."""
        rows = self._connection.execute("SELECT student, person FROM people ORDER BY student")
        return {student: msgspec.json.decode(text, type=Person) for student, text in rows}

    def submission(self, name: str) -> Submission | None:
        """The text that was graded under this name."""
        found = self._connection.execute(
            "SELECT submission FROM submissions WHERE name = ?", (name,)
        ).fetchone()
        return _unpacked(found[0]) if found else None

    def submissions(self) -> Iterator[Submission]:
        """All texts that were graded, by name."""
        rows = self._connection.execute("SELECT submission FROM submissions ORDER BY name")
        return (_unpacked(row[0]) for row in rows)

    def count_submissions(self) -> int:
        """How many texts there are."""
        return int(self._connection.execute("SELECT count(*) FROM submissions").fetchone()[0])

    def rows(self, run: int | None = None) -> list[Row]:
        """Every student who has a grade, is on the roster or in a conflict, by name.

        Of an earlier `run`, the grades are those that a regrading replaced; the rest is today's.
        """
        grades = {g.student: g for g in self.grades()} if run is None else self.earlier(run)
        people, conflicts = self.people(), self.conflicts
        adjusted: dict[str, list[Adjustment]] = {}
        for student, exercise, points, reason in self._connection.execute(
            "SELECT student, exercise, points, reason FROM adjustments ORDER BY student, exercise"
        ):
            adjustment = Adjustment(exercise, points / THOUSAND, reason)
            adjusted.setdefault(student, []).append(adjustment)
        return [
            Row(
                student,
                None if student in conflicts else grades.get(student),
                people.get(student, Person()),
                tuple(adjusted.get(student, ())),
                conflicts.get(student),
            )
            for student in sorted((grades.keys() - conflicts.keys()) | people.keys())
        ]

    def write_files(self) -> None:
        """Write ``gradebook.csv`` and ``results.jsonl``."""
        rows = self.rows()
        lines = b"".join(row.grade.to_json() + b"\n" for row in rows if row.grade is not None)
        try:
            write_whole(self.folder / TABLE, gradebook_csv(rows, self.exercises).encode())
            write_whole(self.folder / LINES, lines)
        except OSError as error:
            raise unwritten(self.folder, error) from None


def feedback_names(rows: Sequence[Row]) -> dict[str, str]:
    """The file of each student who has a grade, in the folder `FEEDBACK`."""
    stems = file_stems(row.student for row in rows if row.grade is not None)
    return {student: f"{stem}.html" for student, stem in stems.items()}


def _unpacked(blob: bytes) -> Submission:
    return msgspec.json.decode(zlib.decompress(blob), type=Submission)


@contextmanager
def existing_gradebook(
    folder: Path, course: str, *, again: bool = False, meanwhile: bool = False
) -> Iterator[Gradebook]:
    """Open the gradebook in a folder.

    Raises `CallError` if there is none, or another course's, or one whose grading has not ended:
    but not to grade `again` where just that was stopped, nor to read `meanwhile`, where a grading
    is at work.
    """
    if not (folder / DATABASE).is_file():
        raise CallError(
            f"there is no gradebook in {folder}: name a folder that `grader grade` wrote (--out)"
        )
    with _opened(folder, course, "name that course with --course") as book:
        stopped = book.unfinished
        if stopped and not (again and stopped == REGRADING):
            at_work = _at_work(folder)
            if not at_work:
                raise CallError(
                    f"the grading into {folder} was stopped before its end: give the same "
                    f"`{stopped}` once more, and it goes on"
                )
            if not meanwhile:
                raise CallError(f"a grading is at work on {folder}: wait for its end")
        yield book


@contextmanager
def open_gradebook(folder: Path, course: str) -> Iterator[Gradebook]:
    """Open or create the gradebook in a folder; `CallError` if it is another course's."""
    with _opened(folder, course, ANOTHER) as book:
        yield book


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other gradings out of a folder; raises `CallError` if one is at work there.

    The kernel forgets the lock with the process that holds it, however that ends.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # grades are nobody else's business
        file = (folder / LOCK).open("wb")
    except OSError as error:
        raise unwritten(folder, error) from None
    with file:
        if not _locked(file, exclusive=True):
            raise CallError(
                f"another grading is at work on {folder}: wait for its end, or {ANOTHER}"
            )
        yield


def _at_work(folder: Path) -> bool:
    """Whether a grading is at work on a folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            return not _locked(file, exclusive=False)
    except FileNotFoundError:
        return False


def _locked(file: IO[bytes], *, exclusive: bool) -> bool:
    """Whether the lock could be had; it lasts until the file is closed."""
    import fcntl  # only Unix has it, and only there is graded

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(folder: Path, course: str, advice: str) -> Iterator[Gradebook]:
    refuse_strangers(folder, course, advice)
    path = folder / DATABASE
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(SCHEMA)
            with connection:
                connection.executemany(
                    "INSERT OR IGNORE INTO about VALUES (?, ?)",
                    [("course", course), ("version", str(VERSION))],
                )
            yield Gradebook(folder, connection)
    except sqlite3.OperationalError as error:
        raise HostFault(
            f"{path} could not be written ({error}); what was graded before is kept: make room, "
            "and give the same call again"
        ) from None


def refuse_strangers(folder: Path, course: str, advice: str = ANOTHER) -> None:
    """Raise `CallError`, with what to do, if a folder cannot hold this course's grades.

    Writes nothing.
    """
    path = folder / DATABASE
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise CallError(f"{nearest} is a file, and grades need a folder")
    if not path.exists():
        return
    try:
        # To read is not enough where a write was cut off: what is half done is undone first.
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        try:
            about = dict(connection.execute("SELECT key, value FROM about"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CallError(f"{path} is not a gradebook of ours ({error})") from None
    if about.get("version") != str(VERSION):
        raise CallError(
            f"{path} has format {about.get('version')}, and this kit writes {VERSION}: {ANOTHER}"
        )
    if about.get("course") != course:
        raise CallError(
            f"{folder} holds grades of the course {about.get('course')!r}, and this is "
            f"{course!r}: {advice}"
        )
