"""What a person decides about a student: points, comments, extensions, excuses, wrong names."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from grader.cli.revisions import UNTIMED
from grader.grades.changes import LATENESS
from grader.grades.gradebook import existing_gradebook
from grader.intake import Submission
from grader.wire import SourceText
from tests.cli.test_streams import read_only
from tests.conftest import Grader
from tests.grades.conftest import DUE, totals
from tests.grades.test_gradebook import grade_of
from tests.support.places import TINY

# --- lateness ------------------------------------------------------------------------------------


def test_late_work_loses_what_the_rule_says_and_time_can_be_given(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    assert totals(book) == {"ada": 3, "bob": 2.4, "cleo": 3, "hw1": 0, "zoe": None}
    code, told = decide("extend", "bob", "2026-12-03 23:59", "--reason", "ill")
    assert (code, told) == (0, "bob: extended until 2026-12-03 23:59 CET\n  total 2.4 → 3\n")
    assert totals(book)["bob"] == 3
    decide("extend", "s1", "1 day")
    assert totals(book)["bob"] == 2.7
    assert decide("extend", "bob", "--undo") == (0, "bob: extension removed\n  total 2.7 → 2.4\n")


def test_an_extension_says_that_a_time_is_not_known(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    """Else an instructor would believe that the new due time was compared with it."""
    code, told = decide("extend", "cleo", "1 day")
    assert (code, told.splitlines()[1]) == (0, f"  {UNTIMED}")
    assert UNTIMED not in decide("extend", "cleo", "--undo")[1]


def test_a_penalty_is_taken_back_or_set_by_hand(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    assert decide("adjust", "bob", "late", "=0", "--reason", "the server was down")[0] == 0
    assert totals(book)["bob"] == 3
    assert decide("adjust", "bob", "late", "0")[0] == 0
    assert totals(book)["bob"] == 2.4
    decide("adjust", "cleo", "late", "-1", "--reason", "a day late, as the mail says")
    assert totals(book)["cleo"] == 2
    code, told = decide("adjust", "bob", "late", "+1", "--reason", "x")
    assert (code, "bob loses 0.6 points for lateness" in told) == (2, True)
    code, told = decide("adjust", "bob", "late", "-9", "--reason", "x")
    assert (code, "lateness cannot take away more" in told) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("extend", "bob", "soon"), "'soon' is no time: write a date and a time, as in"),
        (("extend", "bob", "2026-11-30 12:00"), "is not after the due time, 2026-12-01 23:59 CET"),
        (("extend", "bob", "2026-12-04"), "'2026-12-04' is no time: write a date and a time"),
        (("extend", "bob"), "name a student and a time"),
        (("extend", "nobody", "3 days"), "there is no student called 'nobody'"),
        (("excuse",), "name a student; or a table"),
        (("comment", "ada"), "name a student and a text"),
        (("comment", "ada", "wiegh", "Nice."), "did you mean weigh?"),
        (("comment", "ada", "weigh", "Nice", "use"), "write the comment in quotes"),
        (("assign", "hw9", "zoe"), "there is no submission called 'hw9'"),
        (("assign", "hw1"), "name the student whose submission it is"),
        (("assign", "hw1", "ada"), "ada has a submission"),
        (("assign", "hw1", "--undo"), "is assigned to nobody"),
        (("adjust", "zoe", "weigh", "1", "--reason", "x"), "zoe has no submission"),
        (("adjust", "ada", "essay", "-1", "--reason", "x"), "you cannot take away more"),
        (("adjust", "ada", "weigh", "=-1", "--reason", "x"), "cannot be below 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line_and_changes_nothing(  # type: ignore[no-untyped-def]
    decide, book: Path, arguments: tuple[str, ...], told: str
) -> None:
    before = (book / "gradebook.csv").read_bytes()
    code, said = decide(*arguments)
    assert (code, told in said, said.count("\n")) == (2, True, 1), said
    assert (book / "gradebook.csv").read_bytes() == before
    with existing_gradebook(book, "tiny") as opened:
        assert opened.decisions() == []


# --- marks by hand -------------------------------------------------------------------------------


def test_a_unit_the_total_and_a_question_are_marked_and_lateness_is_a_share_of_all(  # type: ignore[no-untyped-def]
    decide, book: Path
) -> None:
    decide("adjust", "bob", "essay", "=4", "--reason", "no source")
    decide("adjust", "bob", "weigh", "=2", "--reason", "read by hand")
    decide("adjust", "bob", "basics", "+0.5", "--reason", "a nice test")
    code, told = decide("adjust", "bob", "total", "-1", "--reason", "copied a docstring")
    # center 2 + weigh 2 + essay 4 + unit 0.5 - 1 = 7.5; a day and an hour late: -20 % = -1.5
    assert (code, totals(book)["bob"]) == (0, 6.0)
    assert told == ("bob: total 8.5 → 7.5, total 6.8 → 6\ncorrected by -1: copied a docstring\n")


def test_a_question_is_marked_for_a_student_without_a_submission(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("adjust", "zoe", "essay", "=4.5", "--reason", "on paper")
    assert totals(book)["zoe"] == 4.5
    with existing_gradebook(book, "tiny") as opened:
        zoe = next(row for row in opened.rows() if row.student == "zoe")
    assert (zoe.status, zoe.judged, zoe.unmarked) == ("absent", True, [])


def test_a_table_adds_in_one_column_and_sets_in_another(  # type: ignore[no-untyped-def]
    decide, book: Path, tmp_path: Path
) -> None:
    file = tmp_path / "marks.csv"
    file.write_text(
        "student,question,points,set,reason\nada,essay,,4,good\nbob,weigh,1,,typo\nzoe,essay,,=0,none\n"
    )
    assert decide("adjust", "--from", str(file))[0] == 0
    assert totals(book) == {"ada": 7, "bob": 3.2, "cleo": 3, "hw1": 0, "zoe": 0}
    file.write_text("student,exercise,set,reason\nada,essay,5,better\n")
    assert decide("adjust", "--from", str(file))[0] == 0
    assert totals(book)["ada"] == 8
    file.write_text("student,part,points,set,reason\nada,essay,1,4,both\n")
    code, told = decide("adjust", "--from", str(file))
    assert (code, "not both" in told) == (2, True)


def test_a_set_of_points_stays_when_a_test_is_mended(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("adjust", "ada", "weigh", "=1.5", "--reason", "read by hand")
    with existing_gradebook(book, "tiny") as opened:
        opened.record(grade_of("ada", 2, 2))
    assert totals(book)["ada"] == 3.5


# --- excuses, comments, history ------------------------------------------------------------------


def test_an_excused_student_has_no_total_until_the_excuse_is_taken_back(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    assert decide("excuse", "ada", "--reason", "in hospital") == (
        0,
        "ada: excused\n  total 3 → no points\n",
    )
    assert totals(book)["ada"] is None
    with (book / "gradebook.csv").open(newline="") as file:
        ada = next(line for line in csv.DictReader(file) if line["student"] == "ada")
    assert (ada["status"], ada["total"], ada["weigh"]) == ("excused", "", "1")
    decide("excuse", "ada", "--undo")
    assert totals(book)["ada"] == 3


def test_tables_of_extensions_and_excuses_leave_other_assignments_out(  # type: ignore[no-untyped-def]
    decide, book: Path, tmp_path: Path
) -> None:
    file = tmp_path / "more.csv"
    file.write_text("student,assignment,until,reason\nbob,ps1,3 days,ill\nada,ps2,3 days,ill\n")
    assert decide("extend", "--from", str(file)) == (
        0,
        "bob: extended until 2026-12-04 23:59 CET\n  total 2.4 → 3\n",
    )
    file.write_text("student,assignment,reason\ncleo,ps2,ill\nzoe,,left\n")
    assert decide("excuse", "--from", str(file)) == (0, "zoe: excused\n")
    file.write_text("student,assignment,until\nbob,ps9,3 days\nnobody,ps1,3 days\n")
    code, told = decide("extend", "--from", str(file))
    assert code == 2
    assert "line 2: there is no assignment called 'ps9'" in told
    assert "line 3: there is no student called 'nobody'" in told


def test_the_history_says_when_what_why_and_by_whom(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("adjust", "ada", "weigh", "+1", "--reason", "typo")
    decide("adjust", "ada", "weigh", "+0.5", "--reason", "a smaller typo")
    decide("comment", "ada", "weigh", "Nice use of exp.")
    decide("extend", "bob", "3 days", "--reason", "ill")
    decide("excuse", "bob", "--reason", "very ill")
    decide("excuse", "bob", "--undo")
    code, told = decide("history")
    lines = told.splitlines()
    assert code == 0
    assert [line.split("  ", 1)[1] for line in lines] == [
        "ada: weigh: +1: typo",
        "ada: weigh: +0.5: a smaller typo",
        "ada: comment about weigh: Nice use of exp.",
        "bob: extended until 2026-12-04 23:59 CET: ill",
        "bob: excused: very ill",
        "bob: no longer excused",
    ]
    assert all(" by " in line and line.startswith("20") for line in lines)
    found = json.loads(decide("history", "bob", "--json")[1])
    assert [one["kind"] for one in found] == ["extension", "excused", "excused"]


def test_the_same_decision_twice_is_one(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("comment", "ada", "Well done.")
    before = (book / "gradebook.csv").read_bytes()
    assert decide("comment", "ada", "Well done.") == (
        0,
        "nothing is new: these decisions stand already\n",
    )
    assert (book / "gradebook.csv").read_bytes() == before
    with existing_gradebook(book, "tiny") as opened:
        assert len(opened.decisions()) == 1


# --- people --------------------------------------------------------------------------------------


def test_a_submission_under_a_wrong_name_is_assigned_and_given_back(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    before = (book / "gradebook.csv").read_bytes()
    decide("adjust", "hw1", "late", "=0", "--reason", "the upload failed")
    code, told = decide("assign", "hw1", "zoe")
    assert (code, told) == (0, "zoe: submission 'hw1' is theirs\n  total no points → 3\n")
    assert totals(book) == {"ada": 3, "bob": 2.4, "cleo": 3, "zoe": 3}
    assert decide("assign", "hw1", "--undo")[0] == 0
    decide("adjust", "hw1", "late", "0")
    assert (book / "gradebook.csv").read_bytes() == before


def test_a_student_with_two_submissions_has_no_grade_until_one_is_taken_back(  # type: ignore[no-untyped-def]
    decide, book: Path
) -> None:
    decide("assign", "hw1", "zoe")
    with existing_gradebook(book, "tiny") as opened:
        opened.record(grade_of("zoe", 1, 1), Submission("zoe", (SourceText("a.py", ("zoe",)),)))
        (zoe,) = [row for row in opened.rows() if row.student == "zoe"]
        assert (zoe.status, zoe.total) == ("conflict", None)
        assert "zoe has the submission 'zoe' of their own, and 'hw1' was assigned" in zoe.ungraded
    decide("assign", "hw1", "--undo")
    assert totals(book)["zoe"] == 2
    with existing_gradebook(book, "tiny") as opened:
        opened.keep_only(["zoe"])
        assert [row.student for row in opened.rows() if row.grade is not None] == ["zoe"]


def test_an_assignment_is_taken_back_also_when_its_submission_is_gone(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("assign", "hw1", "zoe")
    with existing_gradebook(book, "tiny") as opened:
        opened.keep_only(["ada", "bob", "cleo"])
    assert decide("assign", "hw1", "--undo")[0] == 0
    with existing_gradebook(book, "tiny") as opened:
        assert opened.decisions()[-1].removed


def test_an_assigned_submission_is_forgotten_with_its_student(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("assign", "hw1", "zoe")
    assert decide("forget", "zoe", "--yes")[0] == 0
    assert "hw1" not in (book / "gradebook.csv").read_text()
    with existing_gradebook(book, "tiny") as opened:
        assert opened.submission("hw1") is None
        assert opened.decisions() == []


# --- an older gradebook --------------------------------------------------------------------------


def make_old(path: Path) -> None:
    """Turn a gradebook into one of version 3, in which ada has a correction."""
    with sqlite3.connect(path) as old:
        old.execute("DROP TABLE decisions")
        old.execute("DROP TABLE versions")
        old.execute(
            "CREATE TABLE adjustments (student TEXT NOT NULL, exercise TEXT NOT NULL, "
            "points INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (student, exercise)) STRICT"
        )
        old.execute("INSERT INTO adjustments VALUES ('ada', 'weigh', 750, 'typo')")
        old.execute("UPDATE about SET value = '3' WHERE key = 'version'")
    old.close()


def test_a_gradebook_of_the_version_before_keeps_its_corrections(decide, book: Path) -> None:  # type: ignore[no-untyped-def]
    decide("adjust", "ada", "weigh", "+0.75", "--reason", "typo")
    before = (book / "gradebook.csv").read_bytes()
    make_old(book / "grades.db")
    assert decide("history")[1] == "earlier  ada: weigh: +0.75: typo\n"
    assert totals(book)["ada"] == 3.75
    decide("comment", "ada", "Hello.")
    assert (book / "gradebook.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (("history",), 0, "earlier  ada: weigh: +0.75: typo\n"),
        (("explain", "ada"), 0, "corrected by +0.75: typo"),
        (("comment", "ada", "Hello."), 2, "cannot be written"),
    ],
)
def test_an_old_gradebook_that_may_not_be_written_can_be_read(  # type: ignore[no-untyped-def]
    decide, book: Path, command: tuple[str, ...], code: int, told: str
) -> None:
    make_old(book / "grades.db")
    with read_only(book):
        ended, said = decide(*command)
    assert (ended, told in said) == (code, True), said
    with closing(sqlite3.connect(book / "grades.db")) as old:
        assert old.execute("SELECT count(*) FROM adjustments").fetchone() == (1,)


def test_grades_of_a_private_course_are_not_changed_by_the_rules_of_the_public_one(
    grader: Grader, course: Path, tmp_path: Path
) -> None:
    """Its rules on what students may see would be lost, too."""
    (tmp_path / "ada.py").write_text("x = 1\n", "utf-8")
    out = tmp_path / "out"
    grade = "grade", tmp_path / "ada.py", "--out", out, "--assignment", "ps1"
    assert grader(*grade, "--course", course, "--seed", "s").code == 0
    for command in (("adjust", out, "ada", "center", "+1", "--reason", "a"), ("report", out)):
        page = (out / "feedback" / "ada.html").read_bytes()
        refused = grader(*command, "--course", TINY / "exercises")
        told = "'tiny/course', but this is 'tiny': name that course with --course"
        assert (refused.code, told in refused.err) == (2, True)
        assert (out / "feedback" / "ada.html").read_bytes() == page
        assert grader(*command, "--course", course).code == 0


# --- what the same folder is graded for ----------------------------------------------------------


def test_a_gradebook_of_an_assignment_does_not_become_one_of_the_whole_course(
    grader: Grader, book: Path, course: Path, tmp_path: Path
) -> None:
    (tmp_path / "ada.py").write_text("x = 1\n", "utf-8")
    before = totals(book)
    ran = grader("grade", tmp_path / "ada.py", "--out", book, "--course", course, "--seed", "s")
    assert (ran.code, "holds grades of the assignment ps1: pass --assignment ps1" in ran.err) == (
        2,
        True,
    )
    assert totals(book) == before


def test_where_times_are_known_the_mark_of_the_system_does_not_count(  # type: ignore[no-untyped-def]
    decide, book: Path
) -> None:
    with existing_gradebook(book, "tiny") as opened:
        early = f"{DUE - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}"
        grade = msgspec.structs.replace(grade_of("cleo", 2, 1), late=True, submitted=early)
        opened.record(grade)
        opened.write_files()
    with (book / "gradebook.csv").open(newline="") as file:
        late = {line["student"]: line["late"] for line in csv.DictReader(file)}
    assert (late["cleo"], late["bob"]) == ("", "late")


# --- what changed --------------------------------------------------------------------------------


def test_another_due_time_changes_grades_without_grading_again_and_diff_says_why(
    grader: Grader, course: Path, tmp_path: Path
) -> None:
    for name in ("ada", "bob"):
        (tmp_path / f"{name}.py").write_text("def center(x):\n    return x - x.mean()\n", "utf-8")
    times = tmp_path / "times.csv"
    times.write_text("student,time\nada,2026-12-01 12:00\nbob,2026-12-01 13:00\n", "utf-8")
    out = tmp_path / "grades"
    rest = ("--out", out, "--course", course, "--no-pages", "--seed", "s")
    both = (tmp_path / "ada.py", tmp_path / "bob.py")
    ran = grader("grade", *both, "--assignment", "ps1", "--times", times, *rest)
    assert ran.code == 0, ran.err
    assert "essay is not marked yet, and counts 0, for 2 students (ada, bob)" in ran.out
    before = totals(out)
    text = (course / "course.toml").read_text("utf-8")
    (course / "course.toml").write_text(text.replace("-12-01T23", "-11-30T23"), "utf-8")
    ran = grader("grade", "--again", *rest)
    assert "2 of 2 are reused" in ran.out
    assert f"late: {LATENESS} for 2 students, -0.2 each" in ran.out
    assert "late: 0.4 points subtracted from 2 students (ada, bob)" in ran.out
    assert before == {"ada": 2.0, "bob": 2.0}
    assert totals(out) == {"ada": 1.8, "bob": 1.8}


def test_times_without_an_assignment_are_said_to_cost_no_points(
    cold_grader: Grader, course: Path, tmp_path: Path
) -> None:
    answer, times = tmp_path / "ada.py", tmp_path / "times.csv"
    answer.write_text("def center(x):\n    return x - x.mean()\n", "utf-8")
    times.write_text("student,time\nada,2026-12-09 12:00\n", "utf-8")
    call = ("grade", answer, "--times", times, "--dry-run", "--course", course)
    assert "these times cost no points: add --assignment ps1" in cold_grader(*call).err
    assert not cold_grader(*call, "--assignment", "ps1").err
