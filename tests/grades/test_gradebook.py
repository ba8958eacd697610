"""The gradebook: what is written, when, and for whom."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from grader.grades.gradebook import existing_gradebook, open_gradebook
from grader.intake import Submission
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, Grade, SubmissionStatus, TestResult
from grader.records.rows import Adjustment, Person
from grader.wire import SourceText
from tests.support.gradebooks import correct

EXERCISES = ("center", "weigh")


def grade_of(
    student: str, *points: float, status: SubmissionStatus = "graded", message: str | None = None
) -> Grade:
    """A grade with these points, each of at most two."""
    results = tuple(
        ExerciseResult(name, "basics", got, 2.0, (TestResult("test_it", "It", "passed", got, 2.0),))
        for name, got in zip(EXERCISES, points, strict=False)
    )
    return Grade(
        student,
        student,
        status,
        sum(points),
        4.0,
        "seed",
        "0f",
        ("process",),
        "2.13.0",
        0.4,
        results,
        message,
    )


def table(folder: Path) -> list[list[str]]:
    """The cells of ``gradebook.csv``."""
    with (folder / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def written(folder: Path, *grades: Grade) -> list[list[str]]:
    """Record these, and return the rows below the header, as far as they hold points."""
    with open_gradebook(folder, "tiny") as book:
        for grade in grades:
            book.record(grade)
        book.exercises = EXERCISES
        book.write_files()
    return [row[: 5 + len(EXERCISES)] for row in table(folder)[1:]]


# --- the table -----------------------------------------------------------------------------------


def test_the_columns_are_those_of_the_contract(tmp_path: Path) -> None:
    written(tmp_path, grade_of("ada", 2, 1))
    header = (tmp_path / "gradebook.csv").read_text("utf-8").split("\n")[0]
    assert header == "student,submission,status,total,max,center,weigh,late,attempts,adjustment"


def test_students_are_rows_in_order_of_their_names(tmp_path: Path) -> None:
    rows = written(tmp_path, grade_of("cleo", 0, 0), grade_of("ada", 2, 1), grade_of("bob", 1, 1))
    assert rows == [
        ["ada", "ada", "graded", "3", "4", "2", "1"],
        ["bob", "bob", "graded", "2", "4", "1", "1"],
        ["cleo", "cleo", "graded", "0", "4", "0", "0"],
    ]


def test_points_have_no_needless_digits_and_no_less_than_three(tmp_path: Path) -> None:
    ((_, _, _, total, _, first, second),) = written(tmp_path, grade_of("ada", 1.333, 0.5))
    assert (total, first, second) == ("1.833", "1.333", "0.5")


def test_what_the_grader_did_not_find_out_is_an_empty_cell_and_no_zero(tmp_path: Path) -> None:
    (row,) = written(tmp_path, grade_of("ada", 2, 0, status="grader_error"))
    assert row == ["ada", "ada", "grader_error", "", "4", "", ""]


def test_an_exercise_that_was_not_graded_is_an_empty_cell(tmp_path: Path) -> None:
    (row,) = written(tmp_path, grade_of("ada", 2))
    assert row[-2:] == ["2", ""]


@pytest.mark.parametrize("status", ["unreadable", "empty"])
def test_who_handed_in_nothing_has_zeros_and_the_reason(
    tmp_path: Path, status: SubmissionStatus
) -> None:
    (row,) = written(tmp_path, grade_of("ada", 0, 0, status=status))
    assert row == ["ada", "ada", status, "0", "4", "0", "0"]


@pytest.mark.parametrize(
    "name", ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", '="a"', "=1,2"]
)
def test_a_cell_that_a_spreadsheet_could_run_is_made_harmless(tmp_path: Path, name: str) -> None:
    (row,) = written(tmp_path, grade_of(name, 1, 1))
    assert row[:2] == [f"'{name}", f"'{name}"]


@pytest.mark.parametrize(
    "name", ["O'Neil, Ada", 'the "best"', "two\nlines", "two\rrows", "Zoë 李", "a=b", "x-y"]
)
def test_other_names_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    (row,) = written(tmp_path, grade_of(name, 1, 1))
    assert row[:3] == [name, name, "graded"]


# --- the lines -----------------------------------------------------------------------------------


def test_how_a_submission_came_stands_behind_the_points(tmp_path: Path) -> None:
    late = msgspec.structs.replace(grade_of("ada", 2, 1), late=True, attempts=3)
    written(tmp_path, late, grade_of("bob", 1, 1))
    assert [row[7:] for row in table(tmp_path)[1:]] == [["late", "3", ""], ["", "1", ""]]


def test_a_roster_adds_its_columns_and_those_who_handed_in_nothing(tmp_path: Path) -> None:
    people = {
        "ada": Person("s1", "Ada L.", "ada@x.edu", extra={"section": "=A"}),
        "zoe": Person("s2", "Zoë", extra={"section": "B"}),
    }
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 2, 1))
        book.set_people(people)
        book.exercises = EXERCISES
        book.write_files()
    header, ada, zoe = table(tmp_path)
    assert header[-4:] == ["id", "name", "email", "section"]
    assert ada[-4:] == ["s1", "Ada L.", "ada@x.edu", "'=A"]
    assert zoe == ["zoe", "", "absent", "", "", "", "", "", "0", "", "s2", "Zoë", "", "B"]


# --- corrections ---------------------------------------------------------------------------------


def test_a_correction_counts_and_stands_apart_from_what_was_computed(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 2, 1))
        correct(book, "ada", Adjustment("weigh", -0.5, "handed in a day late"))
        book.exercises = EXERCISES
        book.write_files()
        (row,) = book.rows()
    assert table(tmp_path)[1][3:] == ["2.5", "4", "2", "0.5", "", "1", "-0.5"]
    assert row.grade is not None
    assert (row.grade.total, row.total) == (3, 2.5)


def test_a_correction_outlives_a_regrading_and_a_second_one_replaces_it(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 0, 0))
        correct(book, "ada", Adjustment("weigh", 1, "a typo in the statement"))
        correct(book, "ada", Adjustment("weigh", 2, "a typo in the statement"))
        book.record(grade_of("ada", 1, 0))
        (row,) = book.rows()
        assert row.points == {"center": 1, "weigh": 2}
        correct(book, "ada", Adjustment("weigh", 0, ""))
        assert book.rows()[0].adjustments == ()


# --- what else is kept ---------------------------------------------------------------------------


def test_the_text_that_was_graded_comes_back_as_it_was(tmp_path: Path) -> None:
    handed_in = Submission("ada", (SourceText("a.py", ("x = 1\n",)),), ("b.py: too large",))
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 1, 1), handed_in)
    with existing_gradebook(tmp_path, "tiny") as book:
        assert book.submission("ada") == handed_in
        assert list(book.submissions()) == [handed_in]


def test_a_group_gets_one_grade_in_several_rows(tmp_path: Path) -> None:
    handed_in = Submission("team-7", (), group=("ada", "bob"))
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("team-7", 2, 1), handed_in)
        rows = [(row.student, row.grade.submission, row.total) for row in book.rows() if row.grade]
    assert rows == [("ada", "team-7", 3), ("bob", "team-7", 3)]


def test_what_a_regrading_replaced_is_kept(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 0, 0))
        run = book.put_aside()
        book.record(grade_of("ada", 2, 0))
        assert [grade.total for grade in book.grades()] == [2]
        assert {student: grade.total for student, grade in book.earlier(run).items()} == {"ada": 0}
        assert book.put_aside() == run + 1


def test_who_is_to_be_forgotten_is_nowhere_in_the_file(tmp_path: Path) -> None:
    secret = "Ada Lovelace of Ockham"
    handed_in = Submission("ada", (SourceText("a.py", (f"# {secret}",)),))
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 1, 1, message=secret), handed_in)
        book.set_people({"ada": Person(name=secret)})
        book.put_aside()
        correct(book, "ada", Adjustment("weigh", 1, secret))
        book.record(grade_of("bob", 1, 1), Submission("bob", ()))
        book.forget("ada")
        assert [row.student for row in book.rows()] == ["bob"]
        assert [one.student for one in book.submissions()] == ["bob"]
    assert secret.encode() not in (tmp_path / "grades.db").read_bytes()


def test_a_folder_without_a_gradebook_is_told(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="no gradebook in"), existing_gradebook(tmp_path, "tiny"):
        pass


# --- lines of results ----------------------------------------------------------------------------


def test_results_are_one_grade_a_line_and_come_back_as_they_were(tmp_path: Path) -> None:
    grades = [grade_of("ada", 2, 1), grade_of("bob\nbaker", 0, 0, message="line\nbreak")]
    written(tmp_path, *reversed(grades))
    lines = (tmp_path / "results.jsonl").read_bytes().splitlines()
    assert [Grade.from_json(line) for line in lines] == grades


def test_a_line_has_the_keys_of_the_schema(tmp_path: Path) -> None:
    written(tmp_path, grade_of("ada", 2, 1))
    line = json.loads((tmp_path / "results.jsonl").read_text("utf-8"))
    assert list(line)[:5] == ["schema", "student", "submission", "status", "total"]
    assert line["schema"] == 1
    assert {
        "schema",
        "student",
        "submission",
        "status",
        "total",
        "max",
        "seed",
        "course",
        "isolation",
        "torch",
        "seconds",
        "exercises",
    } <= line.keys()
    assert line["isolation"] == ["process"]
    exercise = line["exercises"][0]
    assert exercise.keys() == {"name", "unit", "points", "max", "tests"}
    assert exercise["tests"][0] == {
        "name": "test_it",
        "title": "It",
        "status": "passed",
        "points": 2.0,
        "max": 2.0,
        "hidden": True,
        "message": None,
        "mistake": None,
        "hint": None,
        "picture": None,
    }


# --- many runs -----------------------------------------------------------------------------------


def test_a_new_grade_replaces_the_old_one(tmp_path: Path) -> None:
    written(tmp_path, grade_of("ada", 0, 0), grade_of("bob", 1, 1))
    rows = written(tmp_path, grade_of("ada", 2, 2))
    assert [row[3] for row in rows] == ["4", "2"]


def test_who_is_gone_is_forgotten(tmp_path: Path) -> None:
    written(tmp_path, grade_of("ada", 0, 0), grade_of("bob", 1, 1), grade_of("cleo", 1, 1))
    with open_gradebook(tmp_path, "tiny") as book:
        book.keep_only(["bob", "dan"])
        assert [grade.student for grade in book.grades()] == ["bob"]


def test_a_grade_is_safe_as_soon_as_it_is_recorded(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 2, 1))
        with open_gradebook(tmp_path, "tiny") as another:
            assert [grade.total for grade in another.grades()] == [3]


def test_the_same_grades_give_the_same_bytes(tmp_path: Path) -> None:
    grades = [grade_of("ada", 2, 1), grade_of("bob", 0, 0)]
    written(tmp_path / "one", *grades)
    written(tmp_path / "two", *reversed(grades))
    for name in ("gradebook.csv", "results.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_no_draft_is_left_where_a_file_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "gradebook.csv").mkdir()
    with open_gradebook(tmp_path, "tiny") as book, pytest.raises((OSError, CallError)):
        book.write_files()
    assert {path.name for path in tmp_path.iterdir()} == {"grades.db", "gradebook.csv"}


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert written(tmp_path / "new" / "deep", grade_of("ada", 1, 1))


# --- strangers -----------------------------------------------------------------------------------


def refused(folder: Path) -> str:
    """What is said about a folder that cannot take grades."""
    with pytest.raises(CallError) as error, open_gradebook(folder, "tiny"):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_of_another_course_is_refused_with_both_names(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "another"):
        pass
    before = (tmp_path / "grades.db").read_bytes()
    assert re.search("'another'.*'tiny'", refused(tmp_path))
    assert (tmp_path / "grades.db").read_bytes() == before


def test_a_file_is_no_folder_for_grades(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x", "utf-8")
    assert "is a file" in refused(tmp_path / "out")
    assert "is a file" in refused(tmp_path / "out" / "deeper")


@pytest.mark.parametrize("kind", ["text", "another database", "a folder"])
def test_what_is_called_like_a_gradebook_and_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "grades.db"
    if kind == "text":
        path.write_text("no database", "utf-8")
    elif kind == "a folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE other (x)")
        connection.close()
    assert "not a gradebook of this kit" in refused(tmp_path)


def test_a_gradebook_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny"):
        pass
    connection = sqlite3.connect(tmp_path / "grades.db")
    with connection:
        connection.execute("UPDATE about SET value = '99' WHERE key = 'version'")
    connection.close()
    assert "99" in refused(tmp_path)


def test_a_line_says_what_follows_and_only_where_something_does(tmp_path: Path) -> None:
    (first, *rest) = grade_of("ada", 1).exercises
    test = TestResult("value", "The values are right", "failed", 0, 1, mistake="It is doubled")
    follows = msgspec.structs.replace(test, follows="center")
    for one, said in ((test, False), (follows, True)):
        exercise = msgspec.structs.replace(first, tests=(one,))
        grade = msgspec.structs.replace(grade_of("ada", 1), exercises=(exercise, *rest))
        line = grade.to_json()
        assert (b'"follows":"center"' in line, b"follows" in line) == (said, said)
        assert Grade.from_json(line) == grade
