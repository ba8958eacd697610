"""Hostile submissions, each with the exact grade that it deserves: none touches its own grade."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.grades.gradebook import open_gradebook
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.intake import find_submissions
from grader.sandbox.jails import WITHOUT, Warm
from tests.support.attacks_table import (
    ATTACKS,
    CLASSES,
    Attack,
    BadHeader,
    all_attacks,
    assert_deserved,
    attacked_course,
    attacked_order,
    read_attack,
    read_attacks,
)
from tests.support.evidence import assert_harmless
from tests.support.places import SAMPLES

ALL = all_attacks()
# Units that attacks write answers to.
UNITS = frozenset({
    "averaging", "softmax", "simple_attention", "self_attention", "causal_attention",
    "multi_head_attention", "cross_attention", "positions", "inference", "efficient",
})  # fmt: skip
# What only the kernel keeps: not to be expected where it offers too little.
KERNEL = frozenset({"answers", "results", "exhaustion", "network", "neighbours"})
# What the kernel and the wire keep by themselves. Python's own layer is off there: an attack has
# ctypes, frames and threads.
BENEATH = KERNEL | {"replies"}


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


def test_right_answers_earn_all_points_under_these_limits(desk: Desk, course: Course) -> None:
    """In the units of the attacks: no attack earns nothing because the limits are low."""
    (ada,) = find_submissions([SAMPLES / "ada"], course, single=True)
    kept = [source for source in ada.sources if Path(source.name).stem in UNITS]
    grade = grade_submission(desk, dataclasses.replace(ada, sources=tuple(kept)))
    units = [unit for unit in course.units if unit.name in UNITS]
    assert grade.total == sum(exercise.points for unit in units for exercise in unit.exercise)
    for attack in ALL:
        assert {course.unit_of[name] for name in attack.deserves} <= UNITS


# `test_leaks.py` asserts the same of the attacks of its class.
HERE = [attack for attack in ALL if attack.klass != "leaks"]


@pytest.mark.parametrize("attack", HERE, ids=lambda attack: attack.id)
def test_an_attack_earns_what_it_deserves(
    attack: Attack, desk: Desk, beneath: Desk, course: Course
) -> None:
    chosen = beneath if attack.klass in BENEATH else desk
    if attack.klass == "operations":  # its values are honest: a mistake's name would tell no more
        chosen = dataclasses.replace(desk, sheet=None)
    result = grade_submission(chosen, attack.submission(course))
    if "weak" in result.isolation and attack.klass in KERNEL:
        pytest.skip("this machine cannot lock a jail down; `grader doctor` says why")
    assert_deserved(result, attack, course)


def test_every_class_of_attack_is_tried() -> None:
    folders = {path.name for path in ATTACKS.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(CLASSES)
    assert {attack.klass for attack in ALL} == set(CLASSES)
    names = [attack.id for attack in ALL]
    assert len(names) == len(set(names)) >= 60


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
    (submission,) = find_submissions([folder], course, single=True)
    result = grade_submission(desk, submission)
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


def test_a_file_of_several_attacks_gives_each_the_lines_above_the_first(tmp_path: Path) -> None:
    text = (
        "import torch\n# --- one, nothing\n# Is short.\na = 1\n# --- two, a 2\n# Is long.\nb = 2\n"
    )
    (tmp_path / "several.py").write_text(text)
    one, two = read_attacks(tmp_path / "several.py")
    assert (one.name, one.tries, one.deserves) == ("one", "Is short.", {})
    assert (two.name, two.tries, two.deserves) == ("two", "Is long.", {"a": 2.0})
    assert two.text == "import torch\n# --- two, a 2\n# Is long.\nb = 2\n"


def test_headers_say_what_was_deserved_and_where_it_worked(tmp_path: Path) -> None:
    header = "# Tries: two things.\n# Worked in: otter, check50\n# Deserves: a 1.25, b 2\n"
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "about.txt").write_text(header)
    attack = read_attack(tmp_path / "both")
    assert (attack.name, attack.tries) == ("both", "two things.")
    assert attack.worked_in == ("otter", "check50")
    assert attack.deserves == {"a": 1.25, "b": 2.0}
