"""The gradebook: the only place where grades live.

``grades.db`` is the source of truth, and each grade is committed as it comes. ``gradebook.csv``
and ``results.jsonl`` are written from it, whole or not at all.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from grader.faults import CallError
from grader.files import write_whole
from grader.grade import Grade

DATABASE = "grades.db"
TABLE = "gradebook.csv"
LINES = "results.jsonl"
VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS grades (
    student TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    grade BLOB NOT NULL  -- one Grade as JSON
) STRICT;
"""


class Gradebook:
    """Grades of one course in one folder."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    def record(self, grade: Grade) -> None:
        """Commit one grade; it replaces an earlier one of the same student."""
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO grades VALUES (?, ?, ?)",
                (grade.student, grade.status, grade.to_json()),
            )

    def grades(self) -> Iterator[Grade]:
        """All grades, by student."""
        rows = self._connection.execute("SELECT grade FROM grades ORDER BY student")
        return (Grade.from_json(row[0]) for row in rows)

    def keep_only(self, students: Sequence[str]) -> None:
        """Forget grades of an earlier run that this one did not make."""
        with self._connection:
            known = [row[0] for row in self._connection.execute("SELECT student FROM grades")]
            self._connection.executemany(
                "DELETE FROM grades WHERE student = ?",
                [(student,) for student in set(known) - set(students)],
            )

    def write_files(self, exercises: Sequence[str]) -> None:
        """Write ``gradebook.csv`` and ``results.jsonl``."""
        rows = [["student", "submission", "status", "total", "max", *exercises]]
        lines = []
        for grade in self.grades():
            rows.append([harmless(cell) for cell in _row(grade, exercises)])
            lines.append(grade.to_json() + b"\n")
        write_whole(self.folder / TABLE, "".join(map(_csv_line, rows)).encode())
        write_whole(self.folder / LINES, b"".join(lines))


def _row(grade: Grade, exercises: Sequence[str]) -> list[str]:
    # What the grader itself got wrong is no zero: the cell stays empty.
    known = grade.status != "grader_error"
    points = {
        exercise.name: number(exercise.points) if known else "" for exercise in grade.exercises
    }
    return [
        grade.student, grade.submission, grade.status, number(grade.total) if known else "",
        number(grade.max), *(points.get(name, "") for name in exercises),
    ]  # fmt: skip


def _csv_line(cells: Sequence[str]) -> str:
    """One line; a cell is quoted for whatever some program may take for the end of it."""
    # The csv module knows one separator: a spreadsheet elsewhere has semicolons, or tabs.
    quoted = (
        '"' + cell.replace('"', '""') + '"' if re.search(r'[",;|\t\r\n]|^\s|\s$', cell) else cell
        for cell in cells
    )
    return ",".join(quoted) + "\n"


def number(points: float) -> str:
    """Points without needless digits: ``2``, ``1.333``."""
    return f"{points:.3f}".rstrip("0").rstrip(".")


def harmless(cell: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return (
        f"'{cell}"
        if cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
        else cell
    )


@contextmanager
def open_gradebook(folder: Path, course: str) -> Iterator[Gradebook]:
    """Open or create the gradebook in a folder; `CallError` if it is another course's."""
    refuse_strangers(folder, course)
    path = folder / DATABASE
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # grades are nobody else's business
    connection = sqlite3.connect(path)
    try:
        connection.executescript(SCHEMA)
        with connection:
            connection.executemany(
                "INSERT OR IGNORE INTO about VALUES (?, ?)",
                [("course", course), ("version", str(VERSION))],
            )
        yield Gradebook(folder, connection)
    finally:
        connection.close()


def refuse_strangers(folder: Path, course: str) -> None:
    """Raise `CallError` if a folder cannot take this course's grades. Writes nothing."""
    path = folder / DATABASE
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise CallError(f"{nearest} is a file, and grades need a folder")
    if not path.exists():
        return
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            about = dict(connection.execute("SELECT key, value FROM about"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CallError(f"{path} is not a gradebook of ours ({error})") from None
    if about.get("version") != str(VERSION):
        raise CallError(
            f"{path} has format {about.get('version')}, and this kit writes {VERSION}: "
            "choose another --out"
        )
    if about.get("course") != course:
        raise CallError(
            f"{folder} holds grades of the course {about.get('course')!r}, and this is "
            f"{course!r}: choose another --out"
        )


def refuse_loss(folder: Path, students: Sequence[str], exercises: Sequence[str]) -> None:
    """Raise `CallError` if replacing the grades in a folder would lose some of them."""
    if not (folder / DATABASE).exists():
        return
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        rows = connection.execute("SELECT grade FROM grades ORDER BY student")
        earlier = [Grade.from_json(row[0]) for row in rows]
    gone = [grade.student for grade in earlier if grade.student not in set(students)]
    if gone:
        more = f" and {len(gone) - 1} others" if len(gone) > 1 else ""
        raise CallError(
            f"{folder} holds grades of {gone[0]}{more}, not in this run: "
            "choose another --out, or pass --replace to lose them"
        )
    graded = {exercise.name for grade in earlier for exercise in grade.exercises}
    if graded - set(exercises):
        raise CallError(
            f"{folder} holds grades of {len(graded - set(exercises))} exercises that this run "
            "leaves out: choose another --out, or pass --replace to lose them"
        )
