"""A new course grades, checks, audits and releases as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.author.courses import write_course
from grader.course.course import load_course
from tests.conftest import Grader


@pytest.fixture
def course(tmp_path: Path) -> Path:
    write_course(tmp_path / "statistics", 'A "small" course')
    return tmp_path / "statistics"


def test_its_audit_is_green(course: Path, grader: Grader) -> None:
    ran = grader("audit", "--course", course, "--jobs", "1")
    assert ran.code == 0, ran.out


def test_a_student_gets_a_bundle_that_checks_answers(
    course: Path, grader: Grader, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    ran = grader("release", "student", "--course", course, "--to", bundle, "--jobs", "1")
    assert ran.code == 0, ran.err
    assert grader("check", "--course", bundle).code == 1
    shutil.copy(course / "solutions" / "vectors.py", bundle / "exercises" / "vectors.py")
    assert grader("check", "--course", bundle).code == 0


def test_a_right_answer_gets_all_points(course: Path, grader: Grader, tmp_path: Path) -> None:
    shutil.copy(course / "solutions" / "vectors.py", tmp_path / "ada.py")
    ran = grader("grade", tmp_path / "ada.py", "--out", tmp_path / "grades", "--course", course)
    assert ran.code == 0, ran.err
    assert "ada,ada,graded,4,4" in (tmp_path / "grades" / "gradebook.csv").read_text("utf-8")


def test_its_seed_is_secret_and_its_own(course: Path, tmp_path: Path) -> None:
    write_course(tmp_path / "other")
    seeds = [load_course(folder / "exercises").hidden_seed() for folder in tmp_path.iterdir()]
    assert len({*seeds}) == len(seeds) == 2
    assert all(len(seed) >= 32 for seed in seeds)
    assert (course / "solutions" / "seed").stat().st_mode & 0o077 == 0


def test_its_name_and_title_are_those_of_the_call_or_of_its_folder(
    cold_grader: Grader, tmp_path: Path
) -> None:
    assert cold_grader("new", "course", tmp_path / "My_Arrays 2").code == 0
    file = load_course(tmp_path / "My_Arrays 2" / "exercises").file
    assert (file.name, file.title) == ("my_arrays-2", "My arrays 2")
    ran = cold_grader("new", "course", tmp_path / "b", "--name", "x", "--title", 'Say "x" \\ y')
    assert ran.code == 0
    file = load_course(tmp_path / "b" / "exercises").file
    assert (file.name, file.title) == ("x", 'Say "x" \\ y')


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--course", "elsewhere"), "add --overlay"),
        (("--overlay", "--title", "T"), "from the course below it"),
        (("--title", "two\nlines"), "not a line of text"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    cold_grader: Grader, tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    ran = cold_grader("new", "course", tmp_path / "new", *options)
    assert (ran.code, why in ran.err) == (2, True), ran.err
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_left_alone(course: Path, cold_grader: Grader) -> None:
    ran = cold_grader("new", "course", course)
    assert ran.code == 2
    assert "not an empty folder" in ran.err
