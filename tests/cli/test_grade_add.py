"""`grader grade --add`: a late file, without the class."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.grades.gradebook import ADDING, open_gradebook
from grader.intake import Submission
from grader.intake.arrivals import as_earlier
from grader.records.grade import Grade
from grader.wire import SourceText
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
    late, other = folder(tmp_path / "late", s1=CENTER), folder(tmp_path / "other", s2=CENTER)
    with open_gradebook(book, tiny.name) as opened:
        opened.unfinished = f"{ADDING} {late}"
    told = grader("report", book, *COURSE)
    assert (told.code, f"run the same `grader grade --add {late}` again" in told.err) == (2, True)
    assert grader("grade", "--add", other, "--out", book, "--no-pages", *COURSE).code == 2
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


def test_a_namesake_is_another_student_and_keeps_the_name_that_the_gradebook_has(
    tmp_path: Path, grader: Grader
) -> None:
    out = tmp_path / "out"
    call = ("--out", out, "--no-pages", *COURSE)
    first = folder(tmp_path / "a", leeann_101_9001_basics=CENTER, poben_103_9003_basics=WRONG)
    assert grader("grade", first, "--only", "center", *call).code == 0
    second = folder(tmp_path / "b", leeann_102_9002_basics=WRONG, poben_103_9004_basics=CENTER)
    assert grader("grade", "--add", second, *call).code == 0
    told = [("leeann", "2"), ("leeann_102", "0"), ("poben", "2")]
    assert cells(out, "student", "total") == told
    third = folder(tmp_path / "c", leeann_102_9005_basics=CENTER, leeann_101_9006_basics=WRONG)
    assert grader("grade", "--add", third, *call).code == 0
    assert cells(out, "student", "total") == [
        ("leeann", "0"),
        ("leeann_102", "2"),
        ("poben", "2"),
    ]


def test_decisions_about_an_absent_student_count_when_the_submission_arrives(
    book: Path, grader: Grader, tmp_path: Path
) -> None:
    assert grader("excuse", book, "Dan Moe", "--reason", "ill", *COURSE).code == 0
    late = folder(tmp_path / "late", Dan_Moe=CENTER)
    assert grader("grade", "--add", late, "--out", book, *COURSE).code == 0
    assert cells(book, *COLUMNS)[0][:2] == ("Dan_Moe", "excused")
    assert "ill" in grader("history", book, "Dan Moe", *COURSE).out


def test_of_an_absent_student_with_points_no_test_is_said_to_have_passed(
    book: Path, grader: Grader
) -> None:
    call = ("adjust", book, "Dan Moe", "total", "+1", "--reason", "oral exam")
    assert grader(*call, *COURSE).code == 0
    told = grader("explain", book, "Dan Moe", *COURSE)
    assert (told.code, "oral exam" in told.out, "passed" in told.out) == (0, True, False)


def test_a_new_text_never_has_the_time_of_an_earlier_one(grader: Grader, tmp_path: Path) -> None:
    out, times = tmp_path / "out", tmp_path / "times.csv"
    call = ("--out", out, "--no-pages", *COURSE)
    times.write_text("student,time\nann,2026-12-01 10:00Z\nben,2026-12-01 11:00Z\n", "utf-8")
    submitted = folder(tmp_path / "class", ann=CENTER, ben=CENTER)
    first = grader("grade", submitted, "--only", "center", "--times", times, *call)
    assert first.code == 0
    late = folder(tmp_path / "late", ann=WRONG)
    assert grader("grade", "--add", late, *call).code == 0
    assert times_in(out) == {"ann": "", "ben": "2026-12-01T11:00:00Z"}
    times.write_text("student,time\nann,2026-12-03 09:00Z\n", "utf-8")
    assert grader("grade", "--add", late, "--times", times, *call).code == 0
    assert times_in(out) == {"ann": "2026-12-03T09:00:00Z", "ben": "2026-12-01T11:00:00Z"}


def times_in(out: Path) -> dict[str, str]:
    lines = (out / "results.jsonl").read_bytes().splitlines()
    grades = map(Grade.from_json, lines)
    return {grade.student: grade.submitted for grade in grades}


def test_two_replaced_texts_of_one_time_have_two_names() -> None:
    moment = datetime(2026, 12, 1, 10, tzinfo=UTC)
    one, other = (
        as_earlier(Submission("ann", (SourceText("a.py", (text,)),), submitted=moment))
        for text in (CENTER, WRONG)
    )
    assert one.student != other.student
