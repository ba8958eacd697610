"""A gradebook of an assignment with a due time and a question, for tests of decisions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from grader.grades.gradebook import existing_gradebook, open_gradebook
from grader.intake import Roster, Submission
from grader.records.lateness import Policy
from grader.records.rows import Person
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.places import TINY

DUE = datetime(2026, 12, 1, 22, 59, tzinfo=UTC)
COURSE = f"""overlay = "{TINY / "exercises"}"
zone = "Europe/Berlin"

[[assignment]]
name = "ps1"
exercises = ["center", "weigh"]
manual = ["essay"]
due = 2026-12-01T23:59:00+01:00
late_by = "us"
late = "10% a day, 3 days"
grace = "30 minutes"

[[assignment]]
name = "ps2"
exercises = ["layers"]

[[manual]]
name = "essay"
points = 5
rubric = "A claim, a reason, a source."
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A private course over the tiny one, with an assignment and a question without code."""
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "course.toml").write_text(COURSE, "utf-8")
    return folder


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Ada in time, bob two days late, cleo marked late at an unknown time, zoe absent, hw1 odd."""
    folder = tmp_path / "grades"
    people = {
        name: Person(f"s{k}", name.title()) for k, name in enumerate(["ada", "bob", "cleo", "zoe"])
    }
    with open_gradebook(folder, "tiny") as book:
        for name, hours in {"ada": -1.0, "bob": 25.0, "cleo": None, "hw1": 200.0}.items():
            when = "" if hours is None else f"{DUE + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"
            grade = msgspec.structs.replace(
                grade_of(name, 2, 1), submitted=when, late=hours is None
            )
            book.record(grade, Submission(name, (SourceText("a.py", (name,)),)))
        book.set_people(people)
        book.roster = Roster(tuple(people.values()))
        book.exercises, book.assignment = EXERCISES, "ps1"
        book.policy = Policy(DUE, "us", "10% a day, 3 days", grace=1800)
        book.questions = {"essay": 5.0}
        book.write_files()
    return folder


def totals(folder: Path) -> dict[str, float | None]:
    """The total of each student."""
    with existing_gradebook(folder, "tiny/course") as book:
        return {row.student: row.total for row in book.rows()}


@pytest.fixture
def decide(cold_grader: Grader, book: Path, course: Path) -> Callable[..., tuple[int, str]]:
    """Run a command on the gradebook, and return its code and all that it printed."""

    def run(command: str, *rest: str) -> tuple[int, str]:
        ran = cold_grader(command, book, *rest, "--course", course)
        return ran.code, ran.out + ran.err

    return run
