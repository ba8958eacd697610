"""The database file of a gradebook: its tables, its version, and what may go wrong with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from grader.records.faults import CallError, HostFault, NoRoom

DATABASE = "grades.db"
LOCK = ".lock"  # held by the process that grades into the folder
VERSION = 4
MIGRATED = "3"  # an earlier version, which opening a gradebook converts
ANOTHER = "choose another --out"

SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS grades (
    student TEXT PRIMARY KEY,
    submission TEXT NOT NULL,
    status TEXT NOT NULL,
    key TEXT NOT NULL,  -- identifies everything that decides the grade
    grade BLOB NOT NULL  -- a Grade as JSON
) STRICT;
CREATE INDEX IF NOT EXISTS grades_by_submission ON grades (submission);
CREATE TABLE IF NOT EXISTS earlier (  -- grades that a regrading replaced
    run INTEGER NOT NULL,
    student TEXT NOT NULL,
    grade BLOB NOT NULL,
    PRIMARY KEY (run, student)
) STRICT;
CREATE TABLE IF NOT EXISTS versions (  -- grades of submissions that their students replaced
    student TEXT NOT NULL,
    submission TEXT NOT NULL,
    status TEXT NOT NULL,
    key TEXT NOT NULL,
    grade BLOB NOT NULL,
    PRIMARY KEY (student, submission)
) STRICT;
CREATE TABLE IF NOT EXISTS submissions (
    name TEXT PRIMARY KEY,
    submission BLOB NOT NULL  -- the graded text: JSON, deflated
) STRICT;
CREATE TABLE IF NOT EXISTS people (
    student TEXT PRIMARY KEY,
    person BLOB NOT NULL  -- a Person as JSON
) STRICT;
CREATE TABLE IF NOT EXISTS decisions (  -- what people decided, the oldest first: the history
    number INTEGER PRIMARY KEY,
    student TEXT NOT NULL,
    decision BLOB NOT NULL  -- a Decision as JSON
) STRICT;
CREATE TABLE IF NOT EXISTS exported (  -- the grades that exports wrote last: see `Written`
    system TEXT NOT NULL,
    place TEXT NOT NULL,  -- the column in the system
    student TEXT NOT NULL,
    points INTEGER NOT NULL,  -- thousandths
    view TEXT NOT NULL,
    before INTEGER,  -- thousandths
    PRIMARY KEY (system, place, student)
) STRICT;
"""
# Version 3 kept the corrections that counted, and no history.
MIGRATION = """
INSERT INTO decisions (student, decision)
    SELECT student, CAST(json_object(
        'student', student, 'kind', 'points', 'part', exercise, 'points', points / 1000.0,
        'text', reason
    ) AS BLOB) FROM adjustments ORDER BY student, exercise
"""
# The tables that have a column `student`.
STUDENT_TABLES = ("grades", "versions", "earlier", "people", "decisions", "exported")


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a gradebook, new or old, which has today's tables.

    A gradebook that this user may not write is copied into memory, where it can only be read.
    """
    connection = sqlite3.connect(path)
    try:
        _make_current(connection)
    except sqlite3.OperationalError as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) != sqlite3.SQLITE_READONLY:
            connection.close()
            raise
        copy = sqlite3.connect(":memory:")
        with closing(connection):
            connection.rollback()
            connection.backup(copy)
        _make_current(copy)
        copy.execute("PRAGMA query_only = ON")
        return copy
    return connection


def _make_current(connection: sqlite3.Connection) -> None:
    """Create missing tables, and convert a gradebook of an earlier version."""
    connection.executescript(SCHEMA)
    version = "SELECT value FROM about WHERE key = 'version'"
    if connection.execute(version).fetchone() != (MIGRATED,):
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute(version).fetchone() == (MIGRATED,):  # or another process did it
            connection.execute(MIGRATION)
            connection.execute("DROP TABLE adjustments")
            connection.execute("UPDATE about SET value = ? WHERE key = 'version'", (str(VERSION),))


# SQLite's codes for a file or folder that this user may not write.
READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def not_written(path: Path, error: sqlite3.OperationalError) -> CallError | HostFault:
    """The exception to raise if SQLite could not write the gradebook."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of the code is a detail
    if code in READ_ONLY:
        return CallError(
            f"{path} cannot be written ({error}): change the permissions of {path.parent}, or name "
            "a copy"
        )
    text = f"{path} could not be written ({error}); all earlier grades are kept: "
    if code == sqlite3.SQLITE_FULL:
        return NoRoom(f"{text}make room, and run the same command again")
    return HostFault(f"{text}make room, and run the same command again")


def refuse_strangers(folder: Path, course: str, advice: str = ANOTHER) -> None:
    """Check, without writing, that a folder can hold this course's grades; else `CallError`.

    `course` is a course's identity. A private course can take over grades of its public course, but
    not the other way round: its dates, questions and rules on what students may see would be lost.
    `advice` completes the message about a gradebook of another course.
    """
    path = folder / DATABASE
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise CallError(f"{nearest} is a file, but grades need a folder")
    if not path.exists():
        return
    try:
        # Open the file for writing too, because SQLite may have to roll back an interrupted write.
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        try:
            about = dict(connection.execute("SELECT key, value FROM about"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CallError(f"{path} is not a gradebook of this kit ({error})") from None
    if about.get("version") not in (str(VERSION), MIGRATED):
        raise CallError(
            f"{path} has format {about.get('version')}, but this kit writes {VERSION}: {ANOTHER}"
        )
    if about.get("course") not in (course, course.partition("/")[0]):
        raise CallError(
            f"{folder} holds grades of the course {about.get('course')!r}, but this is "
            f"{course!r}: {advice}"
        )
