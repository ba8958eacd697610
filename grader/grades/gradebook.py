"""The gradebook: the only place that keeps grades.

The database ``grades.db`` is the source of truth. It holds the grades, the graded texts, the
students and the history of what people decided. Each grade is committed as soon as it is computed.
``gradebook.csv`` and ``results.jsonl`` are written from the database, each completely or not at
all.
"""

from __future__ import annotations

import getpass
import json
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from grader.grades.database import (
    ANOTHER,
    DATABASE,
    LOCK,
    STUDENT_TABLES,
    VERSION,
    connected,
    not_written,
    refuse_strangers,
)
from grader.grades.decided import keeps_versions, rows_of, sources_of
from grader.grades.exported import Written
from grader.grades.table import gradebook_csv
from grader.intake import NO_ROSTER, NO_TIMES, Roster, Submission, Times
from grader.intake.arrivals import as_earlier
from grader.intake.names import file_stems
from grader.records.decisions import Decision, standing
from grader.records.faults import CallError, unwritten
from grader.records.files import write_whole
from grader.records.grade import Grade, from_thousandths, thousandths
from grader.records.lateness import Policy
from grader.records.rows import Person, Row

TABLE = "gradebook.csv"
LINES = "results.jsonl"
FEEDBACK, REPORT = "feedback", "report.html"  # HTML pages in the gradebook's folder
# The values of `Gradebook.unfinished`: the command that continues an interrupted grading.
GRADING, ADDING, REGRADING = "grader grade", "grader grade --add", "grader grade --again"


class Gradebook:
    """The grades of one course, stored in one folder; see `open_gradebook`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    # --- written by a grading --------------------------------------------------------------------

    def record(self, grade: Grade, submission: Submission | None = None, key: str = "") -> None:
        """Commit a grade for each student of a submission, and replace their earlier grades.

        `key` identifies everything that decides the grade: see `reusable`.
        """
        self.record_all([(grade, submission, key)])

    def record_all(self, grades: Iterable[tuple[Grade, Submission | None, str]]) -> None:
        """Record grades in one transaction, which stores either all of them or none."""
        policy = self.policy
        with self._connection:
            for grade, submission, key in grades:
                earlier = submission is not None and submission.earlier
                if submission is not None and not earlier and keeps_versions(policy):
                    self._keep_replaced(submission)
                for student in submission.members if submission is not None else (grade.student,):
                    own = msgspec.structs.replace(grade, student=student)
                    self._connection.execute(
                        f"INSERT OR REPLACE INTO {'versions' if earlier else 'grades'} "
                        "VALUES (?, ?, ?, ?, ?)",
                        (student, own.submission, own.status, key, own.to_json()),
                    )
                if submission is not None:
                    self._store(submission)

    def _keep_replaced(self, new: Submission) -> None:
        """Keep the grade of a submission that another of the same name will replace."""
        old = self.submission(new.student)
        if old is None or not new.replaces(old):
            return
        kept = as_earlier(old)
        self._store(kept)
        for student, status, key, text in self._connection.execute(
            "SELECT student, status, key, grade FROM grades WHERE submission = ?", (old.student,)
        ).fetchall():
            grade = msgspec.structs.replace(Grade.from_json(text), submission=kept.student)
            # This run may have graded the version again already: then keep that grade.
            self._connection.execute(
                "INSERT OR IGNORE INTO versions VALUES (?, ?, ?, ?, ?)",
                (student, kept.student, status, key, grade.to_json()),
            )

    def _store(self, submission: Submission) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO submissions VALUES (?, ?)",
            (submission.student, zlib.compress(msgspec.json.encode(submission))),
        )

    def keep_only(self, students: Sequence[str]) -> None:
        """Delete the grades of all students except these, and submissions left without a grade."""
        with self._connection:
            gone = [(student,) for student in self.graded - set(students)]
            self._connection.executemany("DELETE FROM grades WHERE student = ?", gone)
            self._connection.execute(
                "DELETE FROM versions WHERE student NOT IN (SELECT student FROM grades)"
            )
            self._drop_orphans()

    def rename(self, names: Mapping[str, str]) -> None:
        """Let a student's decisions and earlier submissions count under a new name.

        A decision is dropped if the new name has its own about the same.
        """
        for submission in [one for one in self.submissions() if one.earlier]:
            members = tuple(names.get(name, name) for name in submission.members)
            if members != submission.members:
                with self._connection:
                    self._store(replace(submission, group=members))
        now = standing(self.decisions())
        with self._connection:
            for new, old in sorted((new, old) for old, new in names.items()):
                for key, one in now.get(old, {}).items():
                    if key not in now.get(new, {}):
                        self._append(msgspec.structs.replace(one, student=new))
                self._connection.execute("DELETE FROM decisions WHERE student = ?", (old,))
                self._connection.execute(
                    "UPDATE OR IGNORE versions SET student = ? WHERE student = ?", (new, old)
                )

    def drop_orphans(self) -> None:
        """Delete submissions that have no grade: a regrading would bring them back."""
        with self._connection:
            self._drop_orphans()

    def _drop_orphans(self) -> int:
        """Delete submissions that have no grade, and return the number of deleted submissions."""
        return self._connection.execute(
            "DELETE FROM submissions WHERE name NOT IN "
            "(SELECT submission FROM grades UNION SELECT submission FROM versions)"
        ).rowcount

    def set_people(self, people: Mapping[str, Person]) -> None:
        """Replace the list of students; a listed student without a grade counts as absent."""
        with self._connection:
            self._connection.execute("DELETE FROM people")
            self._connection.executemany(
                "INSERT INTO people VALUES (?, ?)",
                [(student, msgspec.json.encode(person)) for student, person in people.items()],
            )

    def put_aside(self) -> int:
        """Copy the grades that count to the table `earlier` as a new run, and return its number."""
        run = (self.last_run() or 0) + 1
        with self._connection:
            self._connection.executemany(
                "INSERT INTO earlier VALUES (?, ?, ?)",
                [(run, grade.student, grade.to_json()) for grade in self._counting()],
            )
            # Penalties of that run are compared with later ones, also if the rule changes.
            self._connection.execute(
                "INSERT OR REPLACE INTO about VALUES (?, ?)",
                (f"policy {run}", self._about("policy") or ""),
            )
        return run

    def _counting(self) -> Iterator[Grade]:
        """The grade of each student that counts, under the name with which it was submitted."""
        rows = [(row.student, row.grade) for row in self.rows() if row.grade is not None]
        own, every = dict(rows), {grade.submission: grade for _, grade in rows}
        versions = self._versions()
        for grade in self.grades():
            names = [grade.submission, *(one.submission for one in versions.get(grade.student, ()))]
            found = own.get(grade.student)
            if found is None or found.submission not in names:  # it was assigned to another name
                found = next((every[name] for name in names if name in every), grade)
            yield msgspec.structs.replace(found, student=grade.student)

    def _versions(self) -> dict[str, list[Grade]]:
        """The grades of submissions that their students replaced, by student."""
        found: dict[str, list[Grade]] = {}
        for student, text in self._connection.execute(
            "SELECT student, grade FROM versions ORDER BY student, submission"
        ):
            found.setdefault(student, []).append(Grade.from_json(text))
        return found

    @property
    def unfinished(self) -> str:
        """`GRADING`, `ADDING` or `REGRADING` while such a grading is incomplete; or empty."""
        return self._about("unfinished") or ""

    @unfinished.setter
    def unfinished(self, command: str) -> None:
        self._remember("unfinished", command)

    # --- written by a person ---------------------------------------------------------------------

    def decide(self, decisions: Iterable[Decision]) -> list[Decision]:
        """Append decisions to the history in one transaction, and return those that were new.

        A decision that is already in force is not repeated. A decision without a time gets the
        current time, and the account that runs this process.
        """
        now = standing(self.decisions())
        moment, account = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", _account()
        new: list[Decision] = []
        with self._connection:
            for one in decisions:
                own = now.setdefault(one.student, {})
                before = own.get((one.kind, one.part))
                if before is not None and before.same == one.same:
                    continue
                if before is None and one.removed:
                    continue
                dated = one
                if not one.when:
                    dated = msgspec.structs.replace(one, when=moment, by=account)
                self._append(dated)
                new.append(dated)
                if one.removed:
                    del own[one.kind, one.part]
                else:
                    own[one.kind, one.part] = dated
        return new

    def _append(self, decision: Decision) -> None:
        self._connection.execute(
            "INSERT INTO decisions (student, decision) VALUES (?, ?)",
            (decision.student, msgspec.json.encode(decision)),
        )

    def decisions(self) -> list[Decision]:
        """The whole history of decisions, the oldest first."""
        rows = self._connection.execute("SELECT decision FROM decisions ORDER BY number")
        return [msgspec.json.decode(text, type=Decision) for (text,) in rows]

    def remember_export(self, system: str, column: str, written: Mapping[str, Written]) -> None:
        """Store the grades, by student, that an export wrote into a column of a system."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO exported VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (system, column, student, thousandths(one.points), one.view, before)
                    for student, one in written.items()
                    for before in [None if one.before is None else thousandths(one.before)]
                ],
            )

    def exported(self, system: str) -> dict[str, dict[str, Written]]:
        """The grades that exports to a system wrote last, by column and student."""
        found: dict[str, dict[str, Written]] = {}
        for place, student, points, view, before in self._connection.execute(
            "SELECT place, student, points, view, before FROM exported WHERE system = ?", (system,)
        ):
            one = Written(
                from_thousandths(points), view, None if before is None else from_thousandths(before)
            )
            found.setdefault(place, {})[student] = one
        return found

    def forget(self, student: str) -> dict[str, int]:
        """Erase a student from the database; return the number of deleted rows by table.

        A group's submission stays, without the student's name, while another member has a grade.
        """
        people = self.people()
        listed = people.get(student)
        self.roster = self.roster.without(listed) if listed is not None else self.roster
        self.times = self.times.without([student], listed or Person())
        # During a conflict, the student's data may also be stored under names that have no row.
        why = self.conflicts
        others = {n for n in why.keys() - people.keys() if why[n] == why.get(student)}
        names = {student, *others, *sources_of(student, self.grades(), self.decisions())}
        self.conflicts = {name: why[name] for name in why.keys() - names}
        with self._connection:
            lost = {
                table: self._connection.executemany(
                    f"DELETE FROM {table} WHERE student = ?", [(name,) for name in sorted(names)]
                ).rowcount
                for table in STUDENT_TABLES
            }
            lost["submissions"] = self._drop_orphans()
            self._leave_groups(names)
        self._connection.execute("VACUUM")  # otherwise deleted rows would stay in the file
        return lost

    def _leave_groups(self, names: set[str]) -> None:
        """Remove a student from all groups, so that a regrading does not bring the name back."""
        for submission in list(self.submissions()):
            if not names.isdisjoint(submission.group):
                rest = tuple(name for name in submission.group if name not in names)
                self._store(replace(submission, group=rest))
                if not rest:
                    self._connection.execute(
                        "DELETE FROM submissions WHERE name = ?", (submission.student,)
                    )

    # --- read ------------------------------------------------------------------------------------

    @property
    def exercises(self) -> tuple[str, ...]:
        """The graded exercises, in the course's order."""
        return tuple(json.loads(self._about("exercises") or "[]"))

    @exercises.setter
    def exercises(self, names: Sequence[str]) -> None:
        self._remember("exercises", json.dumps(names))

    def belongs_to(self, course: str) -> None:
        """Record the identity of the course."""
        if self._about("course") != course:
            self._remember("course", course)

    @property
    def assignment(self) -> str:
        """The name of the graded assignment; empty if no assignment was graded."""
        return self._about("assignment") or ""

    @assignment.setter
    def assignment(self, name: str) -> None:
        self._remember("assignment", name)

    @property
    def policy(self) -> Policy | None:
        """The assignment's rule for late submissions; None without a due time."""
        return self._policy("policy")

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        self._remember("policy", "" if policy is None else msgspec.json.encode(policy).decode())

    def _policy(self, key: str) -> Policy | None:
        text = self._about(key)
        return msgspec.json.decode(text, type=Policy) if text else None

    @property
    def questions(self) -> Mapping[str, float]:
        """The questions that a person marks, and their points, in the course's order."""
        return msgspec.json.decode(self._about("questions") or "{}", type=dict[str, float])

    @questions.setter
    def questions(self, questions: Mapping[str, float]) -> None:
        self._remember("questions", json.dumps(dict(questions)))

    @property
    def roster(self) -> Roster:
        """The roster of the last grading that had one."""
        text = self._about("roster")
        return msgspec.json.decode(text, type=Roster) if text else NO_ROSTER

    @roster.setter
    def roster(self, roster: Roster) -> None:
        # The notes are about the file, which only the grading that reads it reports.
        text = msgspec.json.encode(replace(roster, notes=()))
        self._remember("roster", text.decode())

    @property
    def times(self) -> Times:
        """The table of times of the last grading that had one."""
        text = self._about("times")
        return msgspec.json.decode(text, type=Times) if text else NO_TIMES

    @times.setter
    def times(self, times: Times) -> None:
        self._remember("times", msgspec.json.encode(times).decode() if times.entries else "")

    @property
    def conflicts(self) -> Mapping[str, str]:
        """The reason of each conflict, under the name of every student that it may concern.

        Earlier grades of these students are kept, but no row shows them while the conflict lasts.
        """
        return msgspec.json.decode(self._about("conflicts") or "{}", type=dict[str, str])

    @conflicts.setter
    def conflicts(self, conflicts: Mapping[str, str]) -> None:
        self._remember("conflicts", json.dumps(dict(conflicts)))

    @property
    def salt(self) -> str:
        """A random secret of this gradebook: pseudonyms cannot be computed without it."""
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
        """All computed grades, without corrections, ordered by student."""
        rows = self._connection.execute("SELECT grade FROM grades ORDER BY student")
        return (Grade.from_json(row[0]) for row in rows)

    @property
    def graded(self) -> set[str]:
        """The students who have a grade."""
        return {row[0] for row in self._connection.execute("SELECT student FROM grades")}

    def reusable(self) -> set[tuple[str, str]]:
        """The submission and key of each grade that can be reused: all unless the grader failed."""
        rows = self._connection.execute(
            "SELECT submission, key FROM grades WHERE status <> 'grader_error' "
            "UNION SELECT submission, key FROM versions WHERE status <> 'grader_error'"
        )
        return set(rows)

    def grade(self, submission: str, key: str) -> Grade:
        """The stored grade of a submission with this key; both must be a pair in `reusable`."""
        which = "WHERE submission = ? AND key = ? AND status <> 'grader_error'"
        (text,) = self._connection.execute(
            f"SELECT grade FROM grades {which} UNION ALL SELECT grade FROM versions {which}",
            (submission, key) * 2,
        ).fetchone()
        return Grade.from_json(text)

    def last_run(self) -> int | None:
        """The number of the last regrading; None if the gradebook was never regraded."""
        run: int | None
        (run,) = self._connection.execute("SELECT max(run) FROM earlier").fetchone()
        return run

    def earlier(self, run: int) -> dict[str, Grade]:
        """The grades that the regrading with this number replaced, by student."""
        rows = self._connection.execute(
            "SELECT student, grade FROM earlier WHERE run = ? ORDER BY student", (run,)
        )
        return {student: Grade.from_json(grade) for student, grade in rows}

    def people(self) -> dict[str, Person]:
        """The list of students: the known facts about each student, by name."""
        rows = self._connection.execute("SELECT student, person FROM people ORDER BY student")
        return {student: msgspec.json.decode(text, type=Person) for student, text in rows}

    def submission(self, name: str) -> Submission | None:
        """The submission of this name, as it was graded."""
        found = self._connection.execute(
            "SELECT submission FROM submissions WHERE name = ?", (name,)
        ).fetchone()
        return _unpacked(found[0]) if found else None

    def submissions(self) -> Iterator[Submission]:
        """All graded submissions, ordered by name."""
        rows = self._connection.execute("SELECT submission FROM submissions ORDER BY name")
        return (_unpacked(row[0]) for row in rows)

    def count_submissions(self) -> int:
        """The number of graded submissions."""
        return int(self._connection.execute("SELECT count(*) FROM submissions").fetchone()[0])

    def rows(
        self, run: int | None = None, due: Mapping[str, datetime | None] | None = None
    ) -> list[Row]:
        """A row for each student who has a grade or is on the list, ordered by name.

        With `run`, the rows have the grades that this regrading replaced, and the rule for late
        submissions of that time, but current decisions. With `due`, these times replace the
        extensions of students; None stands for no extension.
        """
        grades = {g.student: g for g in self.grades()} if run is None else self.earlier(run)
        versions = self._versions() if run is None else {}
        return rows_of(
            {student: [grade, *versions.get(student, ())] for student, grade in grades.items()},
            self.people(),
            self.conflicts,
            self.roster,
            standing(self.decisions()),
            self.policy if run is None else self._policy(f"policy {run}"),
            self.questions,
            due,
        )

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
    """The file name of each graded student's page in the folder `FEEDBACK`, by student."""
    stems = file_stems(row.student for row in rows if row.grade is not None)
    return {student: f"{stem}.html" for student, stem in stems.items()}


def _unpacked(blob: bytes) -> Submission:
    return msgspec.json.decode(zlib.decompress(blob), type=Submission)


@contextmanager
def existing_gradebook(
    folder: Path, course: str, *, continues: str = "", meanwhile: bool = False
) -> Iterator[Gradebook]:
    """Open the gradebook in a folder.

    Raises `CallError` if there is none, if it belongs to another course, or if its grading is
    incomplete. An interrupted command `continues` raises no error, because the caller continues it.
    With `meanwhile`, a running grading raises no error: the caller reads the grades so far.
    """
    if not (folder / DATABASE).is_file():
        raise CallError(
            f"there is no gradebook in {folder}: name a folder that `grader grade` wrote (--out)"
        )
    with _opened(folder, course, "name that course with --course") as book:
        stopped = book.unfinished
        if stopped and stopped != continues:
            at_work = _at_work(folder)
            if not at_work:
                raise CallError(
                    f"the grading into {folder} was stopped before its end: run the same "
                    f"`{stopped}` again to continue it"
                )
            if not meanwhile:
                raise CallError(f"a grading into {folder} is running: wait until it ends")
        yield book


@contextmanager
def open_gradebook(folder: Path, course: str) -> Iterator[Gradebook]:
    """Open or create a folder's gradebook; `CallError` if the gradebook is of another course."""
    with _opened(folder, course, ANOTHER) as book:
        yield book


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder against other gradings; raises `CallError` if a grading is running there.

    The kernel releases the lock when this process ends, even if the process is killed.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # grades are private
        file = (folder / LOCK).open("wb")
    except OSError as error:
        raise unwritten(folder, error) from None
    with file:
        if not _locked(file, exclusive=True):
            raise CallError(
                f"another grading into {folder} is running: wait until it ends, or {ANOTHER}"
            )
        yield


def _at_work(folder: Path) -> bool:
    """Whether a grading into a folder is running."""
    try:
        with (folder / LOCK).open("rb") as file:
            return not _locked(file, exclusive=False)
    except FileNotFoundError:
        return False


def _locked(file: IO[bytes], *, exclusive: bool) -> bool:
    """Try to lock a file until it is closed, and return whether that worked."""
    import fcntl  # exists only on Unix, as grading does

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
        with closing(connected(path)) as connection:
            # Write only into a new gradebook: an old one may be read-only, and can be read.
            if connection.execute("SELECT count(*) FROM about").fetchone() == (0,):
                with connection:
                    connection.executemany(
                        "INSERT INTO about VALUES (?, ?)",
                        [("course", course), ("version", str(VERSION))],
                    )
            yield Gradebook(folder, connection)
    except sqlite3.OperationalError as error:
        raise not_written(path, error) from None


def _account() -> str:
    """The name of the account that runs this process; "" if it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
