"""A private course over a public one: another seed, other tests, assignments of its own."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import pytest

from grader.course.course import load_course
from tests.conftest import Grader
from tests.support.places import TINY

TRICKY = '''
from grader.testing import assert_that, rung


@rung.value("center", points=4)
def test_center_is_seven(student, make):
    """What nobody would expect."""
    assert_that(student.center(make.normal(tokens=3)).mean().item() == 7, "it is not seven")
'''


@pytest.fixture
def private(cold_grader: Grader, tmp_path: Path) -> Path:
    """What `grader new course` makes."""
    assert cold_grader("new", "course", tmp_path / "mine", "--course", TINY).code == 0
    return tmp_path / "mine"


def totals(out: Path) -> dict[str, str]:
    with (out / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return {row["student"]: row["total"] for row in csv.DictReader(file)}


def test_a_new_course_has_a_seed_that_nobody_else_knows(
    private: Path, cold_grader: Grader, tmp_path: Path
) -> None:
    course = load_course(private)
    assert course.hidden_seed() != load_course(TINY / "exercises").hidden_seed()
    assert len(course.hidden_seed()) >= 32
    assert cold_grader("new", "course", tmp_path / "other", "--course", TINY).code == 0
    assert load_course(tmp_path / "other").hidden_seed() != course.hidden_seed()
    assert private.stat().st_mode & 0o077 == 0


def test_a_new_course_grades_as_the_one_below_it(
    private: Path, grader: Grader, right: str, tmp_path: Path
) -> None:
    (tmp_path / "ada.py").write_text(right, "utf-8")
    ran = grader("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--course", private)
    assert ran.code == 0, ran.err
    assert totals(tmp_path / "out") == {"ada": "10"}


def test_private_tests_come_before_those_below_or_beside_them(private: Path) -> None:
    graders = private / "solutions" / "graders"
    (graders / "test_basics.py").write_text(TRICKY, "utf-8")
    (graders / "test_more.py").write_text(TRICKY, "utf-8")
    below = TINY / "solutions" / "graders"
    assert load_course(private).grader_files() == [
        graders / "test_basics.py",
        below / "test_layers.py",
        graders / "test_more.py",
    ]


def test_a_private_test_adds_to_what_is_asked(
    private: Path, grader: Grader, right: str, tmp_path: Path
) -> None:
    wrong = TRICKY.replace(
        "make.zeros(tokens=3)).sum().item() == 0", "make.zeros(tokens=3)).sum().item() == 7"
    )
    (private / "solutions" / "graders" / "test_more.py").write_text(wrong, "utf-8")
    (tmp_path / "ada.py").write_text(right, "utf-8")
    call = ("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--only", "center")
    assert grader(*call, "--course", private).code == 0
    assert 0 < float(totals(tmp_path / "out")["ada"]) < 2
    ran = grader("explain", tmp_path / "out", "ada", "center", "--course", private)
    assert ran.code == 0, ran.err
    assert "test_center_is_seven" in ran.out


def test_private_references_are_the_ones_that_answers_are_compared_with(private: Path) -> None:
    (private / "solutions" / "layers.py").write_text("x = 1\n", "utf-8")
    course = load_course(private)
    assert course.reference_file("layers") == private / "solutions" / "layers.py"
    assert course.reference_file("basics") == TINY / "solutions" / "basics.py"
    assert course.fingerprint() != load_course(TINY / "exercises").fingerprint()


def test_a_private_course_names_assignments_and_what_feedback_tells(private: Path) -> None:
    path = private / "course.toml"
    more = (
        '\n[[assignment]]\nname = "ps1"\nexercises = ["basics"]\n[feedback]\nhidden = "nothing"\n'
    )
    path.write_text(path.read_text("utf-8") + more, "utf-8")
    course = load_course(private)
    assert course.assignment("ps1").exercises == ("basics",)
    assert course.file.feedback.hidden == "nothing"
    assert course.file.limits == load_course(TINY / "exercises").file.limits


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('overlay = "nowhere"', r"nowhere.course\.toml"),
        ('overlay = "x"\nunit = 1', "unknown key 'unit'"),
        ('overlay = "{}"\n[[assignment]]\nname = "a"\nexercises = ["b"]', r"mine.course\.toml:4"),
    ],
)
def test_a_private_course_that_cannot_be_is_told_with_its_line(
    private: Path, cold_grader: Grader, text: str, problem: str
) -> None:
    (private / "course.toml").write_text(text.format((TINY / "exercises").as_posix()), "utf-8")
    ran = cold_grader("list", "--course", private)
    assert ran.code == 2
    assert re.search(problem, ran.err)


def test_a_private_course_is_not_made_where_students_look(
    cold_grader: Grader, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    place = tmp_path / "tiny" / "exercises" / "mine"
    ran = cold_grader("new", "course", place, "--course", tmp_path / "tiny")
    assert ran.code == 2
    assert "which students get" in ran.err
    assert not place.exists()
