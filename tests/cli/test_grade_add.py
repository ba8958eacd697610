"""`grader grade --add`: a late file, without the class."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.course import Course
from grader.grades.gradebook import ADDING, open_gradebook
from tests.cli.test_grade_roads import CENTER, WRONG, cells
from tests.conftest import Grader
from tests.support.gradebooks import folder
from tests.support.places import TINY

ROSTER = "id,name\ns1,Jane Doe\ns2,Bob Roe\ns3,Cleo Poe\ns4,Dan Moe\n"
COLUMNS = ("student", "status", "total", "id")
COURSE = ("--course", TINY)


@pytest.fixture
def book(grader: Grader, tmp_path: Path) -> Path:
    """A class of two on a roster of four; the third has two files, and the fourth none."""
    (tmp_path / "roster.csv").write_text(ROSTER, "utf-8")
    submitted = folder(tmp_path / "class", s1=WRONG, s2=CENTER, s3=WRONG)
    other = folder(tmp_path / "more", Cleo_Poe=CENTER)
    out = tmp_path / "out"
    ran = grader(
        "grade", submitted, other, "--out", out, "--only", "center", "--roster",
        tmp_path / "roster.csv", "--no-pages", *COURSE,
    )  # fmt: skip
    assert ran.code == 1
    assert [cell[:2] for cell in cells(out, *COLUMNS)] == [
        ("s1", "graded"),
        ("s2", "graded"),
        ("s3", "conflict"),
        ("s4", "absent"),
    ]
    return out


def test_a_late_file_replaces_the_grade_of_its_student_and_nobody_elses(
    book: Path, grader: Grader, tmp_path: Path
) -> None:
    late = folder(tmp_path / "late", s1=CENTER)
    ran = grader("grade", "--add", late, "--out", book, *COURSE)
    assert ran.code == 0
    assert cells(book, *COLUMNS) == [
        ("s1", "graded", "2", "s1"),
        ("s2", "graded", "2", "s2"),
        ("s3", "conflict", "", "s3"),
        ("s4", "absent", "", "s4"),
    ]
    assert "Bob Roe" not in ran.out
    assert "without a submission" not in ran.out + ran.err


def test_it_settles_a_conflict_and_takes_an_absent_student_by_any_name(
    book: Path, grader: Grader, tmp_path: Path
) -> None:
    late = folder(tmp_path / "late", Dan_Moe=WRONG, s3=CENTER)
    assert grader("grade", "--add", late, "--out", book, *COURSE).code == 0
    assert cells(book, *COLUMNS) == [
        ("Dan_Moe", "graded", "0", "s4"),
        ("s1", "graded", "0", "s1"),
        ("s2", "graded", "2", "s2"),
        ("s3", "graded", "2", "s3"),
    ]


def test_decisions_follow_a_student_whose_late_file_has_another_name(
    book: Path, grader: Grader, tmp_path: Path
) -> None:
    assert grader("adjust", book, "s1", "center", "+1", "--reason", "seen", *COURSE).code == 0
    late = folder(tmp_path / "late", Jane_Doe=WRONG)
    assert grader("grade", "--add", late, "--out", book, *COURSE).code == 0
    assert cells(book, *COLUMNS)[0] == ("Jane_Doe", "graded", "1", "s1")
    assert not any(cell[0] == "s1" for cell in cells(book, *COLUMNS))


def test_two_late_files_of_one_student_are_a_conflict_that_keeps_the_earlier_grade(
    book: Path, grader: Grader, tmp_path: Path, tiny: Course
) -> None:
    late = folder(tmp_path / "late", s2=WRONG, Bob_Roe=CENTER)
    ran = grader("grade", "--add", late, "--out", book, *COURSE)
    assert ran.code == 1
    (bob,) = (cell for cell in cells(book, *COLUMNS) if cell[3] == "s2")
    assert bob[1:3] == ("conflict", "")
    with open_gradebook(book, tiny.name) as opened:
        assert [grade.total for grade in opened.grades() if grade.student == "s2"] == [2.0]


def test_an_interrupted_one_continues_with_the_same_command_and_blocks_another(
    book: Path, grader: Grader, tmp_path: Path, tiny: Course
) -> None:
    late = folder(tmp_path / "late", s1=CENTER)
    with open_gradebook(book, tiny.name) as opened:
        opened.unfinished = ADDING
    told = grader("report", book, *COURSE)
    assert (told.code, "run the same `grader grade --add` again" in told.err) == (2, True)
    assert grader("grade", "--add", late, "--out", book, "--no-pages", *COURSE).code == 0
    assert grader("report", book, *COURSE).code == 0


def test_after_an_interrupted_grading_of_the_class_nothing_is_added(
    book: Path, grader: Grader, tmp_path: Path, tiny: Course
) -> None:
    with open_gradebook(book, tiny.name) as opened:
        opened.unfinished = "grader grade"
    late = folder(tmp_path / "late", s1=CENTER)
    ran = grader("grade", "--add", late, "--out", book, *COURSE)
    assert (ran.code, "was stopped before its end" in ran.err) == (2, True)


def test_a_group_of_which_one_member_adds_a_file_shares_the_grade(
    tmp_path: Path, tiny: Course, grader: Grader
) -> None:
    (tmp_path / "roster.csv").write_text(
        "id,name,group\ns1,Jane,red\ns2,Bob,red\ns3,Cleo,\n", "utf-8"
    )
    submitted = folder(tmp_path / "class", red=WRONG, s3=CENTER)
    out = tmp_path / "out"
    roster = ("--roster", tmp_path / "roster.csv")
    call = ("--out", out, "--no-pages", *COURSE)
    assert grader("grade", submitted, "--only", "center", *roster, *call).code == 0
    late = folder(tmp_path / "late", s2=CENTER)
    assert grader("grade", "--add", late, *call).code == 0
    assert cells(out, "student", "total") == [("s1", "2"), ("s2", "2"), ("s3", "2")]
