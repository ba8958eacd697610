"""Roads out: tables of Canvas and Moodle, built to the letter of what they write."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from grader.grades.gradebook import open_gradebook
from grader.records.grade import ExerciseResult, Grade, SubmissionStatus, TestResult
from grader.records.rows import Adjustment, Person
from tests.conftest import Grader
from tests.support.gradebooks import correct
from tests.support.places import TINY

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Quiz 1 (11),A tiny course (12),Final Score
    Points Possible,,,,,5.00,10.00,(read only)
"Doe, Jane",12345,s1,jane@x.edu,"Monday, A",4.00,,90.1
"Roe, Bob",,s2,bob@x.edu,B,3.00,2.00,80.0
"O'Neil, Zoë",,,,B,,EX,
"Poe, Cleo",,,cleo@x.edu,B,,1.00,
"Student, Test",99999,,abc,,,,
"""

MOODLE = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
"Participant 678","Jane Doe",jane@x.edu,"Submitted for grading",,10.00,Yes,"Monday, 2 November 2026, 10:00 AM",-,
"Participant 679","Bob Roe",bob@x.edu,"Submitted for grading",3.00,10.00,No,"Monday, 2 November 2026, 10:05 AM",-,locked
"Participant 680","Stranger",s@x.edu,"No submission",,10.00,Yes,-,-,
"""  # noqa: E501

PEOPLE = {
    "doejane": Person("", "Jane Doe", "jane@x.edu", canvas="12345", moodle="678"),
    "roebob": Person("s2", "Bob Roe", "bob@x.edu"),
    "oneilzoe": Person("", "Zoë O'Neil"),
    "absent": Person("s9", "Cleo Poe", "cleo@x.edu"),
}


def grade_of(student: str, *points: float, status: SubmissionStatus = "graded") -> Grade:
    names = ("center", "staircase", "weigh", "Projection")
    exercises = tuple(
        ExerciseResult(name, "layers" if name == "Projection" else "basics", got, most)
        for name, got, most in zip(names, points, (2, 1, 3, 4), strict=True)
    )
    return Grade(
        student, student, status, sum(points), 10.0, "the seed", "0f", (), "2.13.0", 0.4, exercises
    )


@pytest.fixture
def grades(tmp_path: Path) -> Path:
    """A gradebook of the tiny course: Jane 8.5 (one by hand), Bob 10, Zoë 0, Cleo absent."""
    with open_gradebook(tmp_path / "grades", "tiny") as book:
        for grade in (
            grade_of("doejane", 2, 0, 1.5, 4),
            grade_of("roebob", 2, 1, 3, 4),
            grade_of("oneilzoe", 0, 0, 0, 0),
        ):
            book.record(grade)
        correct(book, "doejane", Adjustment("staircase", 1, "a typo in the statement"))
        book.set_people(PEOPLE)
        book.exercises = ("center", "staircase", "weigh", "Projection")
    return tmp_path / "grades"


Export = Callable[..., Any]


@pytest.fixture
def export(cold_grader: Grader, grades: Path, tmp_path: Path) -> Export:
    """Export, and return the cells of the table and what was said about it."""

    def run(to: str, *arguments: str | Path, course: Path = TINY) -> tuple[list[list[str]], str]:
        ran = cold_grader("export", grades, "--to", to, *arguments, "--course", course)
        assert ran.code == 0, ran.err
        path = Path(ran.out.strip().splitlines()[-1])
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.reader(file)), ran.err

    return run


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


# --- Canvas --------------------------------------------------------------------------------------


def test_a_table_that_canvas_exported_is_filled_in_and_nothing_else_changes(
    export: Export, tmp_path: Path
) -> None:
    table, said = export("canvas", "--into", written(tmp_path / "canvas.csv", CANVAS))
    before = list(csv.reader(CANVAS.splitlines()))
    assert [row[6] for row in table] == [
        "A tiny course (12)",
        "10.00",
        "8.5",
        "2.00",
        "EX",
        "1.00",
        "",
    ]
    assert [row[:6] + row[7:] for row in table] == [row[:6] + row[7:] for row in before]
    assert "1 row filled in, in the column 'A tiny course (12)'" in said
    assert "excused in Canvas, and left unchanged: 1 row" in said
    assert "no grade for 2 rows, left as before: 'Poe, Cleo', 'Student, Test'" in said


def test_rows_of_nobody_in_a_table_of_canvas_stay_and_are_not_counted(
    export: Export, tmp_path: Path
) -> None:
    head, rest = CANVAS.split("\n", 1)
    text = f"{head}\n,,,,,Manual Posting,Manual Posting,\n\n{rest}"
    table, said = export("canvas", "--into", written(tmp_path / "canvas.csv", text))
    assert table[1] == [*[""] * 5, "Manual Posting", "Manual Posting", ""]
    assert "no grade for 2 rows, left as before: 'Poe, Cleo', 'Student, Test'" in said


def test_a_table_with_a_quote_that_is_not_closed_is_refused_with_its_line(
    cold_grader: Grader, grades: Path, tmp_path: Path
) -> None:
    path = written(tmp_path / "canvas.csv", CANVAS.replace('"Poe, Cleo"', '"Poe, Cleo'))
    ran = cold_grader("export", grades, "--to", "canvas", "--into", path, "--course", TINY)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"{path}:6: the quotes in this row do not match" in ran.err
    assert not (grades / "canvas.csv").exists()


def test_an_upload_keeps_the_form_of_the_table_that_it_came_from(
    export: Export, grades: Path, tmp_path: Path
) -> None:
    text = "\ufeff" + CANVAS.replace(",", ";").replace("\n", "\r\n")
    export("canvas", "--into", written(tmp_path / "canvas.csv", text))
    upload = (grades / "canvas.csv").read_bytes()
    assert upload.startswith(b"\xef\xbb\xbfStudent;ID;")
    assert upload.count(b"\r\n") == upload.count(b"\n") == 7


def test_a_column_that_is_in_doubt_is_asked_for(
    cold_grader: Grader, export: Export, grades: Path, tmp_path: Path
) -> None:
    path = written(tmp_path / "canvas.csv", CANVAS.replace("A tiny course", "Homework"))
    ran = cold_grader("export", grades, "--to", "canvas", "--into", path, "--course", TINY)
    assert ran.code == 2
    assert "--column TITLE; its assignments: 'Quiz 1 (11)', 'Homework (12)'" in ran.err
    table, _ = export("canvas", "--into", path, "--column", "Homework")
    assert table[2][6] == "8.5"


OWN = "A tiny course (12)"
ANOTHER_COURSE = """\
Student,ID,SIS User ID,SIS Login ID,Section,A tiny course (77)
    Points Possible,,,,,10.00
"Li, Ann",1,s7,ann@x.edu,A,
"""


@pytest.mark.parametrize(
    ("to", "text", "arguments", "problem"),
    [
        (
            "canvas",
            CANVAS,
            ["--column", "Quiz 1"],
            "these grades are for 'A tiny course', and {} has the column 'A tiny course (12)'",
        ),
        ("canvas", CANVAS, ["--column", "Quiz 1 (11)"], "another assignment's: leave out --column"),
        (
            "canvas",
            CANVAS.replace("Quiz 1 (11),", "").replace(OWN, "Homework (12)"),
            [],
            "no column is called 'A tiny course': --column TITLE; its assignments: 'Homework (12)'",
        ),
        (
            "canvas",
            CANVAS.replace("Quiz 1 (11)", "A tiny course (11)"),
            [],
            "several columns are called 'A tiny course': --column TITLE; its assignments: 'A tiny",
        ),
        (
            "canvas",
            CANVAS.replace("Quiz 1", "Homework").replace(OWN, "Homework (12)"),
            ["--column", "Homework"],
            "several columns are called 'Homework' in {}: name one with its number",
        ),
        ("canvas", CANVAS, ["--column", "Section"], "no column is called 'Section' in {}"),
        ("canvas", CANVAS, ["--column", "Quiz"], "no column is called 'Quiz' in {}"),
        (
            "canvas",
            CANVAS.replace(OWN, "Homework (12)"),
            ["--column", "Final Score"],
            "Canvas computes 'Final Score' itself",
        ),
        (
            "canvas",
            ANOTHER_COURSE,
            [],
            "{} has no line of a student in this gradebook, so nothing was written",
        ),
        ("canvas", CANVAS.partition("\n")[0] + "\n", [], "{} has no line of a student"),
        ("moodle", MOODLE, ["--column", "Feedback comments"], "in the column 'Grade', and not in"),
        ("moodle", MOODLE, ["--column", "Maximum Grade"], "in the column 'Grade', and not in"),
        (
            "moodle",
            MOODLE.replace(",Grade,Maximum", ",Bewertung,Best"),
            [],
            "{} has no column Grade: name the grade column with --column TITLE; it has: Identifier",
        ),
        (
            "moodle",
            MOODLE.replace(",Grade,Maximum", ",Bewertung,Best"),
            ["--column", "Feedback comments"],
            "in the column 'Bewertung', and not in 'Feedback comments'",
        ),
        (
            "moodle",
            MOODLE.replace("678", "1").replace("679", "2").replace("Jane Doe", "Ann Li")
            .replace("Bob Roe", "Ben Li").replace("jane@", "a@").replace("bob@", "b@"),
            [],
            "{} has no line of a student in this gradebook",
        ),
    ],
)  # fmt: skip
def test_the_wrong_table_or_column_is_refused_and_nothing_is_written(
    cold_grader: Grader,
    grades: Path,
    tmp_path: Path,
    to: str,
    text: str,
    arguments: list[str],
    problem: str,
) -> None:
    path, out = written(tmp_path / "into.csv", text), tmp_path / "out.csv"
    call = ("export", grades, "--to", to, "--into", path, "--out", out, *arguments)
    ran = cold_grader(*call, "--course", TINY)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem.format(path) in ran.err
    assert not out.exists()


def test_other_points_than_canvas_has_are_told(export: Export, tmp_path: Path) -> None:
    path = written(tmp_path / "canvas.csv", CANVAS.replace("10.00", "100"))
    _, said = export("canvas", "--into", path)
    assert "Canvas has 100 points possible, and these grades have a maximum of 10" in said


@pytest.mark.parametrize("points", ["100", "100.00", "100,00", "²", "(read only)"])
@pytest.mark.parametrize("most", [10, 11.7, 4.1, 61])
def test_the_same_points_as_canvas_has_are_no_remark(
    export: Export, grades: Path, with_assignments: Path, tmp_path: Path, points: str, most: float
) -> None:
    path = with_assignments / "course.toml"
    path.write_text(path.read_text("utf-8").replace("points = 10\n", "points = 100\n"), "utf-8")
    exercises = (
        ExerciseResult("center", "basics", 0.0, round(most - 1, 3)),
        ExerciseResult("weigh", "basics", 0.0, 1.0),
    )
    with open_gradebook(grades, "tiny") as book:
        for grade in list(book.grades()):
            book.record(structs.replace(grade, exercises=exercises, max=most))
    table = CANVAS.replace("A tiny course", "ps1").replace("10.00", f'"{points}"')
    into = written(tmp_path / "canvas.csv", table)
    _, said = export("canvas", "--into", into, "--assignment", "ps1", course=with_assignments)
    assert "points possible" not in said


def test_who_has_a_grade_and_is_not_in_the_table_is_told(export: Export, tmp_path: Path) -> None:
    lines = [line for line in CANVAS.splitlines() if "Roe" not in line]
    _, said = export("canvas", "--into", written(tmp_path / "canvas.csv", "\n".join(lines)))
    assert "1 with a grade, but not in canvas.csv: roebob" in said


def test_without_a_table_of_canvas_there_is_a_fresh_one(export: Export) -> None:
    table, _ = export("canvas")
    assert table[:2] == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "A tiny course"],
        ["    Points Possible", "", "", "", "", "10"],
    ]
    assert ["Jane Doe", "12345", "", "jane@x.edu", "", "8.5"] in table
    assert ["Cleo Poe", "", "s9", "cleo@x.edu", "", ""] in table


def test_a_roster_of_canvas_numbers_tells_no_ids_of_the_university(
    export: Export, grades: Path
) -> None:
    with open_gradebook(grades, "tiny") as book:
        numbers = {"doejane": "12345", "absent": "12346"}
        book.set_people(
            {
                student: structs.replace(PEOPLE[student], id=number)
                for student, number in numbers.items()
            }
        )
    table, _ = export("canvas")
    known = {row[0]: row[1:3] for row in table}
    assert (known["Jane Doe"], known["Cleo Poe"]) == (["12345", ""], ["12346", ""])


# --- grades that a person changed ----------------------------------------------------------------


EMPTY = CANVAS.replace("3.00,2.00,", "3.00,,")


@pytest.fixture
def column(export: Export, tmp_path: Path) -> Callable[..., tuple[list[str], str]]:
    """Fill in a table from Canvas; return Jane's and Bob's cells, and what was said."""

    def run(text: str, *arguments: str) -> tuple[list[str], str]:
        table, said = export("canvas", "--into", written(tmp_path / "canvas.csv", text), *arguments)
        return [row[6] for row in table[2:4]], said

    return run


def regraded(grades: Path, *points: float, student: str = "roebob") -> None:
    with open_gradebook(grades, "tiny") as book:
        book.record(grade_of(student, *points))


Cells = Callable[..., tuple[list[str], str]]


def test_a_grade_that_a_person_entered_stays_and_is_listed(column: Cells) -> None:
    cells, said = column(CANVAS)
    assert cells == ["8.5", "2.00"]
    assert "left unchanged: 1 grade that this gradebook did not write there" in said
    assert "\n  roebob Bob Roe: 2 there, 10 in this gradebook\n" in said
    assert "--overwrite roebob" in said
    assert "--overwrite-all" in said


@pytest.mark.parametrize("choice", [["--overwrite", "Bob Roe"], ["--overwrite-all"]])
def test_a_grade_that_a_person_entered_is_overwritten_on_request(
    column: Cells, choice: list[str]
) -> None:
    cells, said = column(CANVAS, *choice)
    assert cells == ["8.5", "10"]
    assert "2 rows filled in" in said
    assert "left unchanged: 1 grade" not in said


def test_only_the_named_students_grade_is_overwritten(column: Cells) -> None:
    cells, _ = column(CANVAS, "--overwrite", "doejane")
    assert cells == ["8.5", "2.00"]


def test_a_grade_that_an_export_wrote_is_replaced_after_a_regrading(
    column: Cells, grades: Path
) -> None:
    column(EMPTY)
    regraded(grades, 2, 0, 0, 4)
    cells, said = column(EMPTY.replace("3.00,,", "3.00,10.00,"))
    assert cells == ["8.5", "6"]
    assert "did not write" not in said


def test_a_grade_that_a_person_raised_after_an_export_stays(column: Cells, grades: Path) -> None:
    column(EMPTY)
    regraded(grades, 2, 0, 0, 4)
    cells, said = column(EMPTY.replace("3.00,,", "3.00,10.5,"))
    assert cells == ["8.5", "10.5"]
    assert "roebob Bob Roe: 10.5 there, 6 in this gradebook" in said


def test_a_grade_that_a_person_put_back_stays(column: Cells, grades: Path) -> None:
    """The kit wrote 10 and then 6; the person restores 10."""
    column(EMPTY)
    regraded(grades, 2, 0, 0, 4)
    ours = EMPTY.replace("3.00,,", "3.00,10.00,")
    assert column(ours)[0] == ["8.5", "6"]
    cells, said = column(ours)
    assert cells == ["8.5", "10.00"]
    assert "10 there, 6 in this gradebook" in said


def test_the_same_export_twice_gives_the_same_bytes(
    cold_grader: Grader, column: Cells, grades: Path, tmp_path: Path
) -> None:
    column(EMPTY)
    regraded(grades, 2, 0, 0, 4)
    path = written(tmp_path / "now.csv", EMPTY.replace("3.00,,", "3.00,10.00,"))
    call = ("export", grades, "--to", "canvas", "--into", path, "--course", TINY)
    first = cold_grader(*call), (grades / "canvas.csv").read_bytes()
    assert (cold_grader(*call), (grades / "canvas.csv").read_bytes()) == first
    assert b",6," in first[1]


@pytest.mark.parametrize("same", ["10", "10.0", "10.000", '"10,00"', " 10 "])
def test_an_equal_grade_is_no_change(column: Cells, same: str) -> None:
    cells, said = column(EMPTY.replace("3.00,,", f"3.00,{same},"))
    assert cells == ["8.5", same.strip('"')]
    assert "1 row filled in" in said
    assert "1 row had the same grade already" in said
    assert "did not write" not in said


def test_a_grade_that_canvas_shows_rounded_is_the_one_that_was_written(
    column: Cells, grades: Path
) -> None:
    regraded(grades, 2, 1, 1.333, 4)
    column(EMPTY)
    regraded(grades, 2, 1, 0, 4)
    cells, said = column(EMPTY.replace("3.00,,", "3.00,8.33,"))
    assert cells == ["8.5", "7"]
    assert "did not write" not in said


@pytest.mark.parametrize("text", ["A-", "complete", "8.4", "0"])
def test_any_other_content_of_a_cell_is_a_persons(column: Cells, text: str) -> None:
    cells, said = column(EMPTY.replace("3.00,,", f"3.00,{text},"))
    assert cells == ["8.5", text]
    assert f"roebob Bob Roe: {text} there, 10 in this gradebook" in said


def test_a_dash_is_an_empty_cell(column: Cells) -> None:
    assert column(EMPTY.replace("3.00,,", "3.00,-,"))[0] == ["8.5", "10"]


def test_a_new_table_counts_as_written_too(export: Export, column: Cells, grades: Path) -> None:
    export("canvas")
    regraded(grades, 2, 0, 0, 4)
    assert column(EMPTY.replace("3.00,,", "3.00,10.00,"))[0] == ["8.5", "6"]


def test_each_column_has_a_memory_of_its_own(export: Export, column: Cells, tmp_path: Path) -> None:
    column(EMPTY)
    other = EMPTY.replace("A tiny course (12)", "Make-up (13)").replace("3.00,,", "3.00,10.5,")
    table, said = export(
        "canvas", "--into", written(tmp_path / "b.csv", other), "--column", "Make-up"
    )
    assert table[3][6] == "10.5"
    assert "10.5 there, 10 in this gradebook" in said


def test_two_columns_of_one_title_have_a_memory_each(
    export: Export, grades: Path, tmp_path: Path
) -> None:
    """The kit writes 10 into the first; the 10 in the second is a person's."""
    twins = EMPTY.replace("Quiz 1 (11)", "A tiny course (11)").replace("B,3.00,,", "B,,10,")
    into = written(tmp_path / "canvas.csv", twins)
    export("canvas", "--into", into, "--column", "A tiny course (11)")
    regraded(grades, 2, 0, 0, 4)
    _, said = export("canvas", "--into", into, "--column", "A tiny course (12)")
    assert "roebob Bob Roe: 10 there, 6 in this gradebook" in said


def test_a_worksheet_of_moodle_keeps_what_a_person_entered(export: Export, tmp_path: Path) -> None:
    text = MOODLE.replace("3.00,10.00,No", '"7,50",10.00,Yes')
    path = written(tmp_path / "moodle.csv", text)
    table, said = export("moodle", "--into", path)
    assert [row[4] for row in table] == ["Grade", "8.5", "7,50", ""]
    assert "roebob Bob Roe: 7.5 there, 10 in this gradebook" in said
    table, _ = export("moodle", "--into", path, "--overwrite-all")
    assert table[2][4] == "10"


def test_an_export_that_wrote_no_file_is_not_remembered(
    cold_grader: Grader, column: Cells, grades: Path, tmp_path: Path
) -> None:
    path = written(tmp_path / "canvas.csv", EMPTY)
    missing = tmp_path / "no" / "such.csv"
    call = ("export", grades, "--to", "canvas", "--into", path, "--out", missing)
    assert cold_grader(*call, "--course", TINY).code == 2
    regraded(grades, 2, 0, 0, 4)
    assert column(EMPTY.replace("3.00,,", "3.00,10.00,"))[0] == ["8.5", "10.00"]


def test_who_is_forgotten_is_gone_from_the_memory_of_exports(
    cold_grader: Grader, column: Cells, grades: Path
) -> None:
    column(EMPTY)
    ran = cold_grader("forget", grades, "roebob", "--yes", "--course", TINY)
    assert "exported grades (1)" in ran.out
    assert b"roebob" not in (grades / "grades.db").read_bytes()


def test_overwriting_needs_a_table_of_the_system(cold_grader: Grader, grades: Path) -> None:
    ran = cold_grader("export", grades, "--to", "canvas", "--overwrite-all", "--course", TINY)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "--into" in ran.err


# --- what each status exports --------------------------------------------------------------------


@pytest.fixture
def statuses(grades: Path) -> Path:
    """The gradebook with a student of each status besides."""
    without: tuple[tuple[str, SubmissionStatus, str], ...] = (
        ("pdf", "unreadable", "hw.pdf: a PDF is not read"),
        ("nothing", "empty", "no .py file and no notebook was submitted"),
        ("fault", "grader_error", "Traceback:\nOSError: no space left"),
    )
    with open_gradebook(grades, "tiny") as book:
        for student, status, message in without:
            grade = structs.replace(grade_of(student, 0, 0, 0, 0, status=status), message=message)
            book.record(grade)
        stub = grade_of("stub", 0, 0, 0, 0)
        missing = TestResult("exists", "the answer exists", "missing")
        exercises = tuple(structs.replace(e, tests=(missing,)) for e in stub.exercises)
        book.record(structs.replace(stub, exercises=exercises))
        book.set_people({**PEOPLE, "twice": Person("", "Tom Wice")})
        book.conflicts = {"twice": "two submissions are called 'twice': a and b; rename one"}
    return grades


BLANK = {"pdf", "nothing", "fault", "Tom Wice", "Cleo Poe"}


@pytest.mark.usefixtures("statuses")
def test_where_nothing_could_be_judged_the_cell_is_empty_and_the_reason_is_listed(
    export: Export,
) -> None:
    table, said = export("canvas")
    assert {row[0] for row in table[2:] if row[-1] == ""} == BLANK
    assert {row[0]: row[-1] for row in table}["stub"] == "0"
    assert said == (
        "no grade for 5 students, since there is nothing to judge:\n"
        "  absent: absent Cleo Poe\n"
        "  fault: grader_error (OSError: no space left)\n"
        "  nothing: empty (no .py file and no notebook was submitted)\n"
        "  pdf: unreadable (hw.pdf: a PDF is not read)\n"
        "  twice Tom Wice: conflict (two submissions are called 'twice': a and b; rename one)\n"
        "0 points for 1 student, who submitted no answer, or left all stubs as they were: stub\n"
    )


@pytest.mark.usefixtures("statuses")
def test_a_spreadsheet_and_result_files_leave_the_same_students_without_points(
    cold_grader: Grader, export: Export, grades: Path, tmp_path: Path
) -> None:
    table, said = export("csv")
    empty = {"pdf", "nothing", "fault", "twice", "absent"}
    assert {row[0] for row in table[1:] if row[3] == ""} == empty
    assert all(cell == "" for row in table[1:] if row[0] in empty for cell in row[5:9])
    assert "no grade for 5 students" in said
    call = ("export", grades, "--to", "gradescope", "--out", tmp_path / "out", "--course", TINY)
    assert "no grade for 5 students" in cold_grader(*call).err
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert there == {"doejane", "oneilzoe", "roebob", "stub"}


@pytest.mark.usefixtures("statuses")
def test_points_that_a_person_gave_for_an_unreadable_submission_are_exported(
    export: Export, grades: Path
) -> None:
    with open_gradebook(grades, "tiny") as book:
        correct(book, "pdf", Adjustment("weigh", 1.5, "read by hand"))
    table, said = export("canvas")
    assert {row[0]: row[-1] for row in table}["pdf"] == "1.5"
    assert "no grade for 4 students" in said


# --- Moodle --------------------------------------------------------------------------------------


def test_a_worksheet_of_moodle_is_filled_in_where_moodle_lets_it(
    export: Export, tmp_path: Path
) -> None:
    table, said = export("moodle", "--into", written(tmp_path / "moodle.csv", MOODLE))
    before = list(csv.reader(MOODLE.splitlines()))
    assert [row[4] for row in table] == ["Grade", "8.5", "3.00", ""]
    assert [row[:4] + row[5:] for row in table] == [row[:4] + row[5:] for row in before]
    assert "1 row filled in" in said
    assert "locked in Moodle, and left unchanged: 1 row" in said
    assert "no grade for 1 row, left as before: 'Stranger'" in said


def test_without_a_number_in_moodle_a_worksheet_is_asked_for(
    cold_grader: Grader, tmp_path: Path
) -> None:
    with open_gradebook(tmp_path / "grades", "tiny") as book:
        book.record(grade_of("doejane", 2, 0, 1.5, 4))
    ran = cold_grader("export", tmp_path / "grades", "--to", "moodle", "--course", TINY)
    assert ran.code == 2
    assert "--into WORKSHEET" in ran.err
    assert not (tmp_path / "grades" / "moodle.csv").exists()


def test_a_worksheet_with_another_maximum_is_told(export: Export, tmp_path: Path) -> None:
    text = MOODLE.replace("10.00", "100.00")
    _, said = export("moodle", "--into", written(tmp_path / "moodle.csv", text))
    assert "Moodle has a maximum grade of 100.00, and these grades have one of 10: set" in said


def test_a_worksheet_in_another_language_is_filled_in_with_its_comma(
    export: Export, tmp_path: Path
) -> None:
    text = (
        "ID;Vollständiger Name;E-Mail-Adresse;Status;Bewertung;Bestwertung\n"
        'Teilnehmer/in 678;Jane Doe;jane@x.edu;Zur Bewertung abgegeben;;"10,00"\n'
    )
    path = written(tmp_path / "moodle.csv", text)
    export("moodle", "--into", path, "--column", "Bewertung")
    with (tmp_path / "grades" / "moodle.csv").open(newline="", encoding="utf-8") as file:
        row = list(csv.reader(file, delimiter=";"))[1]
    assert row[4:] == ["8,5", "10,00"]


GERMAN = """\
Identifikator,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Höchstwert,Änderbar,Feedback
Teilnehmer/in 678,Jane Doe,jane@x.edu,Abgegeben,,"100,00",Ja,
Teilnehmer/in 679,Bob Roe,bob@x.edu,Abgegeben,,"100,00",Nein,
"""


def test_a_worksheet_in_another_language_has_a_maximum_and_locks_too(
    export: Export, tmp_path: Path
) -> None:
    path = written(tmp_path / "moodle.csv", GERMAN)
    table, said = export("moodle", "--into", path, "--column", "Bewertung")
    assert [row[4] for row in table] == ["Bewertung", "8,5", ""]
    assert "Moodle has a maximum grade of 100,00, and these grades have one of 10: set" in said
    assert "locked in Moodle, and left unchanged: 1 row" in said


def test_the_same_maximum_in_another_language_is_no_remark(export: Export, tmp_path: Path) -> None:
    path = written(tmp_path / "moodle.csv", GERMAN.replace("100,00", "10,00"))
    _, said = export("moodle", "--into", path, "--column", "Bewertung")
    assert "maximum" not in said


def test_a_fresh_worksheet_has_those_whom_moodle_knows_by_number(export: Export) -> None:
    table, said = export("moodle")
    assert table[0][0], table[0][4] == ("Identifier", "Grade")
    assert [(row[0], row[4], row[5]) for row in table[1:]] == [("Participant 678", "8.5", "10")]
    assert "2 with a grade, but not in the worksheet: oneilzoe, roebob" in said


# --- Gradescope ----------------------------------------------------------------------------------


def test_gradescope_gets_results_for_each_student_who_has_a_grade(
    cold_grader: Grader, grades: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    call = ("export", grades, "--to", "gradescope", "--out", out, "--course", TINY)
    assert cold_grader(*call).code == 0
    assert {path.name for path in out.iterdir()} == {"doejane", "oneilzoe", "roebob"}
    text = (out / "roebob" / "results.json").read_text("utf-8")
    assert json.loads(text)["score"] == 10
    assert "the seed" not in text
    jane = json.loads((out / "doejane" / "results.json").read_text("utf-8"))
    assert jane["score"] == 8.5
    assert "staircase +1\n\n    a typo in the statement" in jane["output"]
    again = cold_grader(*call)
    assert (again.code, again.err.count("\n")) == (2, 1)


def test_gradescope_gets_the_points_of_an_assignment_in_corrections_too(
    cold_grader: Grader, grades: Path, with_assignments: Path, tmp_path: Path
) -> None:
    with open_gradebook(grades, "tiny") as book:
        correct(book, "doejane", Adjustment("weigh", 1, "another typo"))
    out = tmp_path / "results"
    call = ("export", grades, "--to", "gradescope", "--assignment", "ps1", "--out", out)
    assert cold_grader(*call, "--course", with_assignments).code == 0
    jane = json.loads((out / "doejane" / "results.json").read_text("utf-8"))
    assert jane["score"] == 9, "4.5 of 5, and that counts 10"
    assert "weigh +2\n\n    another typo" in jane["output"]


# --- without names -------------------------------------------------------------------------------


def test_a_table_without_names_tells_points_and_nobody(export: Export, grades: Path) -> None:
    table, _ = export("csv", "--anonymous")
    assert (grades / "grades.csv").is_file()
    text = "\n".join(",".join(row) for row in table)
    assert not {"doejane", "Jane", "x.edu", "s9"} & set(re.split(r"[,\n@ ]", text))
    assert sorted(row[3] for row in table[1:]) == ["", "0", "10", "8.5"]
    assert len({row[0] for row in table[1:]}) == 4


# --- parts, and what is refused ------------------------------------------------------------------


@pytest.fixture
def with_assignments(tmp_path: Path) -> Path:
    """The tiny course with an assignment that counts twice its points."""
    text = (TINY / "exercises" / "course.toml").read_text("utf-8")
    more = '\n[[assignment]]\nname = "ps1"\nexercises = ["center", "weigh"]\npoints = 10\n'
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "course.toml").write_text(text + more, "utf-8")
    return tmp_path / "course"


def test_an_assignment_is_exported_alone_and_counts_what_the_course_says(
    export: Export, with_assignments: Path
) -> None:
    table, _ = export("canvas", "--assignment", "ps1", course=with_assignments)
    assert table[0][-1] == "ps1"
    assert [row[-1] for row in table[1:]] == ["10", "", "7", "0", "10"]
    table, _ = export("csv", "--assignment", "ps1", course=with_assignments)
    assert table[0][:7] == ["student", "submission", "status", "total", "max", "center", "weigh"]
    assert table[2][3:7] == ["7", "10", "4", "3"]


@pytest.mark.parametrize(
    ("to", "most"),
    [
        ("canvas", lambda table: table[1][-1]),
        ("moodle", lambda table: table[1][5]),
        ("csv", lambda table: table[2][4]),
    ],
)
@pytest.mark.parametrize("points", [10, 100, 0.7, 33.333, 41.7])
def test_every_export_of_an_assignment_has_the_points_of_the_course(
    export: Export,
    with_assignments: Path,
    to: str,
    most: Callable[[list[list[str]]], str],
    points: float,
) -> None:
    path = with_assignments / "course.toml"
    text = path.read_text("utf-8")
    path.write_text(text.replace("points = 10\n", f"points = {points}\n"), "utf-8")
    table, _ = export(to, "--assignment", "ps1", course=with_assignments)
    assert float(most(table)) == points


def test_the_cells_of_a_spreadsheet_count_as_its_total_does(
    cold_grader: Grader, export: Export, grades: Path, with_assignments: Path
) -> None:
    with open_gradebook(grades, "tiny") as book:
        correct(book, "doejane", Adjustment("weigh", 0.5, "another typo"))
    table, _ = export("csv", "--assignment", "ps1", course=with_assignments)
    jane = dict(zip(table[0], table[2], strict=True))
    told = {name: jane[name] for name in ("total", "max", "center", "weigh", "adjustment")}
    assert told == {"total": "8", "max": "10", "center": "4", "weigh": "4", "adjustment": "1"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--to", "csv", "--into", "x.csv"], "--into and --column are for canvas and moodle"),
        (["--to", "csv", "--out", "no/such/folder.csv"], "folder.csv cannot be written"),
        (["--to", "canvas", "--anonymous"], "--anonymous is for csv"),
        (["--to", "gradescope", "--out", "-"], "a folder of files: --out - is for tables"),
        (["--to", "canvas", "--into", "nothing.csv"], "nothing.csv: No such file"),
        (["--to", "moodle", "--assignment", "ps9"], "no assignment called 'ps9'"),
    ],
)
def test_an_export_that_makes_no_sense_is_one_line(
    cold_grader: Grader, grades: Path, arguments: list[str], problem: str
) -> None:
    ran = cold_grader("export", grades, *arguments, "--course", TINY)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert problem in ran.err


@pytest.mark.parametrize("to", ["csv", "moodle"])
def test_a_table_goes_to_standard_output_as_it_goes_to_a_file(
    cold_grader: Grader,
    grades: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    to: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["export", str(grades), "--to", to, "--course", str(TINY)]
    assert cold_grader(*call, "--out", "file.csv").code == 0
    before = sorted(tmp_path.iterdir())
    ran = subprocess.run(
        [sys.executable, "-m", "grader", *call, "--out", "-"], capture_output=True, check=True
    )
    assert ran.stdout == (tmp_path / "file.csv").read_bytes()
    assert sorted(tmp_path.iterdir()) == before


def test_what_was_exported_from_canvas_is_never_written_over(
    cold_grader: Grader, grades: Path, tmp_path: Path
) -> None:
    path = written(tmp_path / "canvas.csv", CANVAS)
    call = ("export", grades, "--to", "canvas", "--into", path, "--out", path, "--course", TINY)
    ran = cold_grader(*call)
    assert ran.code == 2
    assert path.read_text("utf-8") == CANVAS


def test_a_folder_without_grades_has_nothing_to_export(cold_grader: Grader, tmp_path: Path) -> None:
    ran = cold_grader("export", tmp_path, "--to", "csv", "--course", TINY)
    assert ran.code == 2
    assert "there is no gradebook in" in ran.err
