"""Rules for every grade: only tests that ran and passed earn points, and texts are only text."""

from __future__ import annotations

import io
from functools import cache

import msgspec
from rich.console import Console

from grader.cli import tables
from grader.course.course import Course
from grader.feedback import terminal
from grader.feedback.verdict import verdict_of
from grader.grading.ladder import MAX_MESSAGE
from grader.records.grade import HEART, ExerciseResult, Grade
from grader.records.rows import Row

LONGEST = 500_000  # characters of a grade as JSON: that of right answers has 100,000


def earned(grade: Grade) -> dict[str, float]:
    """Points by exercise, of those that earned any."""
    return {exercise.name: exercise.points for exercise in grade.exercises if exercise.points}


def assert_only_what_passed_is_paid(grade: Grade) -> None:
    """Each test has all its points or none, all only if it passed; and they add up.

    Without its heart, an exercise has half of its points at most, shared out among what passed.
    """
    for exercise in grade.exercises:
        heartless = any(test.name == HEART for test in exercise.tests)
        assert not heartless or 2 * exercise.points <= exercise.max, exercise.name
        for test in exercise.tests:
            whole = test.points in (0, test.max)
            assert whole or (heartless and 0 < test.points < test.max), (exercise.name, test.name)
            assert test.points == 0 or test.status == "passed", (exercise.name, test.name)
        earned = sum(round(test.points * 1000) for test in exercise.tests)
        assert exercise.points == earned / 1000
    assert grade.total == round(sum(exercise.points for exercise in grade.exercises), 3)


def assert_harmless(grade: Grade, course: Course) -> None:
    """The grade can be stored and shown: it is short, and only text."""
    messages = [test.message or "" for e in grade.exercises for test in e.tests]
    assert max(map(len, messages)) <= MAX_MESSAGE
    stored = grade.to_json()
    assert len(stored) < LONGEST
    assert Grade.from_json(stored) == grade
    rows = [Row(grade.student, grade)]
    console = _plain_console()
    console.print(tables.gradebook_table(course, rows, console.width), *terminal.notes(rows))
    assert not _odd_characters(console)
    for exercise in grade.exercises:
        assert not _odd_when_shown(msgspec.json.encode(exercise))


@cache  # most attacks answer few exercises, and "missing" is always shown in the same way
def _odd_when_shown(result: bytes) -> frozenset[str]:
    console = _plain_console()
    exercise = msgspec.json.decode(result, type=ExerciseResult)
    terminal.show_verdict(console, verdict_of(exercise), detail=True)
    return _odd_characters(console)


def _plain_console() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=False, color_system=None)


def _odd_characters(console: Console) -> frozenset[str]:
    """All characters that a console has shown, but text and ends of lines."""
    assert isinstance(console.file, io.StringIO)
    return frozenset(c for c in console.file.getvalue() if not c.isprintable() and c != "\n")
