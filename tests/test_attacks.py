"""Hostile submissions, each with the exact grade that it deserves: none touches its own grade."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from grader.cli import tables
from grader.course.course import Course
from grader.feedback import terminal
from grader.feedback.verdict import verdict_of
from grader.grades.gradebook import open_gradebook
from grader.grading.desk import Desk
from grader.grading.ladder import MAX_MESSAGE, grade_submission
from grader.intake import find_submissions
from grader.records.grade import ExerciseResult, Grade
from grader.records.rows import Row
from grader.sandbox.jails import WITHOUT, Warm
from tests.support.attacks_table import (
    ATTACKS,
    CLASSES,
    Attack,
    BadHeader,
    all_attacks,
    attacked_course,
    attacked_order,
    read_attack,
)
from tests.support.evidence import assert_only_what_passed_is_paid
from tests.support.places import SAMPLES

ALL = all_attacks()
# Attacks wait for their limits: low ones keep the suite short.
# What only the kernel keeps: not to be expected where it offers too little.
KERNEL = frozenset({"answers", "results", "exhaustion", "network", "neighbours"})
# What the kernel and the wire keep by themselves. Python's own layer is off there: an attack has
# ctypes, frames and threads.
BENEATH = KERNEL | {"replies"}
LONGEST = 500_000  # characters of a grade as JSON: that of right answers has 100,000


@pytest.fixture(scope="module")
def course() -> Course:
    return attacked_course()


@pytest.fixture(scope="module")
def desk(course: Course) -> Iterator[Desk]:
    with attacked_order(course).desk() as opened:
        yield opened


@pytest.fixture(scope="module")
def beneath(desk: Desk) -> Iterator[Desk]:
    """The same desk with jails whose Python refuses nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WITHOUT, "interpreter")
        with Warm() as warm:
            yield dataclasses.replace(desk, backend=warm, isolation=warm.layers)


@pytest.fixture(scope="module")
def honest(desk: Desk) -> Grade:
    """The grade of right answers to everything, under the same limits."""
    return graded(desk, SAMPLES / "ada")


def graded(desk: Desk, path: Path) -> Grade:
    (submission,) = find_submissions([path], desk.course, single=True)
    return grade_submission(desk, submission)


def earned(grade: Grade) -> dict[str, float]:
    return {exercise.name: exercise.points for exercise in grade.exercises if exercise.points}


def test_right_answers_earn_all_points_under_these_limits(honest: Grade) -> None:
    assert honest.total == honest.max


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.id)
def test_an_attack_earns_what_it_deserves(
    attack: Attack, desk: Desk, beneath: Desk, course: Course
) -> None:
    result = graded(beneath if attack.klass in BENEATH else desk, attack.path)
    if "weak" in result.isolation and attack.klass in KERNEL:
        pytest.skip("this machine cannot lock a jail down; `grader doctor` says why")
    assert result.status == "graded", result.message
    assert earned(result) == attack.deserves
    assert result.total == round(sum(attack.deserves.values()), 3)
    assert_only_what_passed_is_paid(result)
    assert_harmless(result, course)


def assert_harmless(grade: Grade, course: Course) -> None:
    """What the grade says can be stored and shown: it is short, and only text."""
    messages = [test.message or "" for e in grade.exercises for test in e.tests]
    assert max(map(len, messages)) <= MAX_MESSAGE
    stored = grade.to_json()
    assert len(stored) < LONGEST
    assert Grade.from_json(stored) == grade
    rows = [Row(grade.student, grade)]
    console = plain_console()
    console.print(tables.gradebook_table(course, rows, console.width), *terminal.notes(rows))
    assert not odd_characters(console)
    for exercise in grade.exercises:
        assert not odd_when_shown(msgspec.json.encode(exercise))


@cache  # most exercises are missing in most attacks, and the same result is shown in the same way
def odd_when_shown(result: bytes) -> frozenset[str]:
    console = plain_console()
    exercise = msgspec.json.decode(result, type=ExerciseResult)
    terminal.show_verdict(console, verdict_of(exercise), detail=True)
    return odd_characters(console)


def plain_console() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=False, color_system=None)


def odd_characters(console: Console) -> frozenset[str]:
    """What a console has shown, besides text and ends of lines."""
    assert isinstance(console.file, io.StringIO)
    return frozenset(c for c in console.file.getvalue() if not c.isprintable() and c != "\n")


def test_every_class_of_attack_is_tried() -> None:
    folders = {path.name for path in ATTACKS.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(CLASSES)
    assert {attack.klass for attack in ALL} == set(CLASSES)
    assert len(ALL) >= 60


def test_an_attack_deserves_points_of_the_course_only(course: Course) -> None:
    for attack in ALL:
        for name, points in attack.deserves.items():
            assert 0 < points <= course.exercises[name].points, attack.id


NAMES = [
    "=HYPERLINK(1)", "<img src=x onerror=alert(1)>", "\x1b[2J\x1b[32mpassed", "[bold]x[/bold]",
    "a/../up", "a\nb\rc", "-h", "\u202egnp", "x" * 120, "@SUM(1)", "\udcff", " ",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_hostile_name_of_a_student_or_file_is_only_text(
    name: str, desk: Desk, course: Course, tmp_path: Path
) -> None:
    folder = tmp_path / "in" / name.replace("/", "|")
    folder.mkdir(parents=True)
    (folder / f"{name.replace('/', '|')}.py").write_text("def causal_mask(n):\n    return 1 / 0\n")
    result = graded(desk, folder)
    assert (result.status, result.total) == ("graded", 0)
    assert_harmless(result, course)
    with open_gradebook(tmp_path / "out", course.name) as book:
        book.record(result)
        book.exercises = list(course.exercises)
        book.write_files()
    row = (tmp_path / "out" / "gradebook.csv").read_text("utf-8").partition("\n")[2]
    assert not row.lstrip('"').startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize(
    "text",
    [
        "def causal_mask(n): ...\n",
        "# Tries: something.\n# Deserves: nothing\n# Worked in: -\n",
        "# Tries: something.\n# Worked in: -\n# Deserves: causal_mask\n",
        "# Tries: something.\n# Worked in: -\n# Deserves: a 1, a 2\n",
        "# Tries: something.\n# Worked in: moodle\n# Deserves: nothing\n",
        "# Tries: something\n# Worked in: -\n# Deserves: nothing\n",
        "# Tries: something.\n",
    ],
)
def test_an_attack_without_a_proper_header_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "attack.py").write_text(text)
    with pytest.raises(BadHeader):
        read_attack(tmp_path / "attack.py")


def test_headers_say_what_was_deserved_and_where_it_worked(tmp_path: Path) -> None:
    header = "# Tries: two things.\n# Worked in: otter, check50\n# Deserves: a 1.25, b 2\n"
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "about.txt").write_text(header)
    attack = read_attack(tmp_path / "both")
    assert (attack.name, attack.tries) == ("both", "two things.")
    assert attack.worked_in == ("otter", "check50")
    assert attack.deserves == {"a": 1.25, "b": 2.0}
