"""Lines of a total on every road out: tables, exports, pages, explanations, comparisons."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.grades.gradebook import existing_gradebook
from grader.grades.remarks import remarks
from grader.intake import Submission
from grader.records.lateness import Policy
from grader.records.rows import Person
from grader.report import write_anonymous, write_pages
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.conftest import DUE, totals
from tests.grades.test_gradebook import grade_of

Decide = Callable[..., tuple[int, str]]
PRIVATE = "a private reason"
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,PS1 (7)
    Points Possible,,,,,11.00
Ada,,s0,,A,
Bob,,s1,,A,
Cleo,,s2,,A,2
Zoe,,s3,,A,
"""


@pytest.fixture
def decided(decide: Decide, book: Path) -> Path:
    """Bob has one of everything; ada is excused, and zoe has only an essay."""
    for command, *rest in (
        ("adjust", "bob", "essay", "=4", "--reason", "no source"),
        ("adjust", "bob", "weigh", "=1.5", "--reason", "read by hand"),
        ("adjust", "bob", "basics", "+0.5", "--reason", "a nice test"),
        ("adjust", "bob", "total", "-1", "--reason", "copied"),
        ("comment", "bob", "Come and see me."),
        ("comment", "bob", "weigh", "Nice use of exp."),
        ("extend", "bob", "5 hours", "--reason", PRIVATE),
        ("excuse", "ada", "--reason", PRIVATE),
        ("adjust", "zoe", "essay", "=5", "--reason", "on paper"),
    ):
        assert decide(command, *rest)[0] == 0
    return book


def line_of(table: Path, student: str) -> dict[str, str]:
    """A student's line of a table."""
    with table.open(newline="", encoding="utf-8") as file:
        return next(line for line in csv.DictReader(file) if line["student"] == student)


# --- tables and exports --------------------------------------------------------------------------


def test_a_table_has_columns_only_for_what_is_used(decide: Decide, book: Path) -> None:
    before = (book / "gradebook.csv").read_text("utf-8").partition("\n")[0]
    assert "essay" in before
    assert "penalty" in before
    assert "unit_corrections" not in before
    decide("adjust", "bob", "basics", "+0.5", "--reason", "a nice test")
    after = (book / "gradebook.csv").read_text("utf-8").partition("\n")[0]
    assert after == before.replace("penalty", "unit_corrections,penalty")


def test_a_line_of_the_table_sums_to_its_total(decided: Path) -> None:
    bob = line_of(decided / "gradebook.csv", "bob")
    # 2 + 1.5 + 4 + 0.5 - 1 = 7; 25 hours late less 5 is 20 hours: a day, -0.7
    parts = ("center", "weigh", "essay", "unit_corrections", "total_correction", "penalty")
    assert [bob[part] for part in parts] == ["2", "1.5", "4", "0.5", "-1", "-0.7"]
    assert (bob["total"], bob["max"], bob["late"]) == ("6.3", "9", "late")
    zoe = line_of(decided / "gradebook.csv", "zoe")
    assert (zoe["status"], zoe["total"], zoe["essay"], zoe["center"]) == ("absent", "5", "5", "")


def test_canvas_gets_totals_with_penalties_and_excuses(
    decided: Path, decide: Decide, tmp_path: Path
) -> None:
    (tmp_path / "canvas.csv").write_text(CANVAS, "utf-8")
    code, told = decide(
        "export", "--to", "canvas", "--into", str(tmp_path / "canvas.csv"), "--out",
        str(tmp_path / "up.csv"), "--column", "PS1",
    )  # fmt: skip
    assert code == 0, told
    cells = [line.split(",")[-1] for line in (tmp_path / "up.csv").read_text("utf-8").splitlines()]
    assert cells == ["PS1 (7)", "11.00", "EX", "6.3", "2", "5"]
    for line in (
        "1 row excused: EX",
        "excused, without a grade: ada Ada",
        "essay is not marked yet, and counts 0, for 2 students (cleo Cleo, hw1)",
        "late: 3.7 points subtracted from 2 students (bob Bob, hw1)",
        "late at an unknown time, so nothing is subtracted from 1 student (cleo Cleo)",
        "cleo Cleo: 2 there, 3 in this gradebook",
    ):
        assert line in told
    decide("excuse", "ada", "--undo")
    (tmp_path / "canvas.csv").write_text(CANVAS.replace("s0,,A,", "s0,,A,EX"), "utf-8")
    call = (
        "export", "--to", "canvas", "--into", str(tmp_path / "canvas.csv"), "--out",
        str(tmp_path / "up.csv"), "--column", "PS1",
    )  # fmt: skip
    told = decide(*call)[1]
    assert "excused in Canvas, and left unchanged: 1 row (ada Ada): --overwrite NAME fills" in told
    decide(*call, "--overwrite", "ada")
    assert "Ada,,s0,,A,3" in (tmp_path / "up.csv").read_text("utf-8")
    decide("excuse", "ada")
    (tmp_path / "canvas.csv").write_text(CANVAS.replace("s0,,A,", "s0,,A,9"), "utf-8")
    code, told = decide(
        "export", "--to", "canvas", "--into", str(tmp_path / "canvas.csv"), "--out",
        str(tmp_path / "up.csv"), "--column", "PS1",
    )  # fmt: skip
    assert "left unchanged: grades of excused students that this gradebook did not write" in told
    assert "Ada,,s0,,A,9" in (tmp_path / "up.csv").read_text("utf-8")


def test_gradescope_gets_the_lines_and_the_comments(decided: Path, decide: Decide) -> None:
    assert decide("export", "--to", "gradescope")[0] == 0
    found = json.loads((decided / "gradescope" / "bob" / "results.json").read_text("utf-8"))
    assert found["score"] == 6.3
    for text in (
        "Marked by your instructor: essay +4\n\n    no source",
        "Corrected by your instructor: weigh +0.5\n\n    read by hand",
        "Corrected by your instructor: total -1\n\n    copied",
        "Submitted 20 hours late: -0.7",
        "A comment on weigh:\n\n    Nice use of exp.",
        "A comment:\n\n    Come and see me.",
    ):
        assert text in found["output"]
    assert PRIVATE not in found["output"]
    assert not (decided / "gradescope" / "ada").exists()


def test_an_assignment_with_penalties_is_exported_from_its_own_gradebook_only(
    decide: Decide, book: Path
) -> None:
    with existing_gradebook(book, "tiny") as opened:
        opened.assignment, opened.exercises = "", ("center", "staircase", "weigh")
    code, told = decide("export", "--to", "csv", "--assignment", "ps1")
    assert code == 2
    assert "was not graded as 'ps1', which has its own penalties: grade with --assignment" in told


def test_under_the_rule_of_the_learning_platform_points_are_as_computed(
    decide: Decide, book: Path
) -> None:
    with existing_gradebook(book, "tiny") as opened:
        opened.policy = Policy(DUE)
    assert totals(book) == {"ada": 3, "bob": 3, "cleo": 3, "hw1": 3, "zoe": None}
    code, told = decide("export", "--to", "csv")
    assert code == 0
    assert (
        "late, without a penalty here (the learning platform subtracts points by its own rule): "
        "bob Bob, cleo Cleo, hw1" in told
    )


def test_where_no_time_is_known_a_line_says_for_whom_nothing_is_subtracted(book: Path) -> None:
    with existing_gradebook(book, "tiny") as opened:
        opened.record(grade_of("ada", 2, 1))
        found = [*remarks(opened.rows(), opened.policy)]
    assert (
        "no time of submission is known, so nothing is subtracted from 1 student (ada Ada): "
        "`grader grade --times FILE` gives times, `grader adjust DIR STUDENT late -N` a penalty"
        in found
    )


def test_a_penalty_an_extension_and_a_comment_are_of_one_member_of_a_group(
    decide: Decide, book: Path
) -> None:
    with existing_gradebook(book, "tiny") as opened:
        (bob,) = [grade for grade in opened.grades() if grade.student == "bob"]
        pair = Submission("bob", (SourceText("a.py", ("bob",)),), group=("bob", "dan"))
        opened.record(bob, pair)
        opened.set_people({**opened.people(), "dan": Person("s9", "Dan")})
    decide("extend", "dan", "3 days")
    decide("comment", "dan", "Well done.")
    assert {name: totals(book)[name] for name in ("bob", "dan")} == {"bob": 2.4, "dan": 3}
    with existing_gradebook(book, "tiny") as opened:
        said = {row.student: len(row.comments) for row in opened.rows()}
    assert (said["bob"], said["dan"]) == (0, 1)


# --- pages ---------------------------------------------------------------------------------------


def words(page: Path) -> str:
    """The text of a page, on one line."""
    text = re.sub(
        r"<style.*?</style>|<script.*?</script>|<[^>]+>", " ", page.read_text("utf-8"), flags=re.S
    )
    return " ".join(text.split())


def test_a_students_page_shows_how_the_points_add_up(decided: Path, course: Path) -> None:
    with existing_gradebook(decided, "tiny") as opened:
        write_pages(opened, load_course(course))
    page = words(decided / "feedback" / "bob.html")
    assert "6.3 of 9 points" in page
    assert "submitted at 2026-12-03 00:59 CET submitted 20 hours late" in page
    assert "From your instructor Come and see me." in page
    assert (
        "How the points add up exercises 3.5 of 4 essay no source 4 of 5 Functions of a tensor and "
        "of a number corrected by your instructor: a nice test +0.5 whole corrected by your "
        "instructor: copied −1 late submitted 20 hours late: −10 % −0.7 total 6.3" in page
    )
    assert "A claim, a reason, a source." in page
    assert "1 as computed, set to 1.5 by your instructor: read by hand" in page
    assert "Your instructor: Nice use of exp." in page
    excused = words(decided / "feedback" / "ada.html")
    assert "You are excused: this work does not count." in excused
    for name in ("ada", "bob"):
        assert PRIVATE not in (decided / "feedback" / f"{name}.html").read_text("utf-8")


def test_the_class_page_lists_what_is_not_marked_and_no_private_reason(
    decided: Path, course: Path
) -> None:
    with existing_gradebook(decided, "tiny") as opened:
        write_pages(opened, load_course(course))
        write_anonymous(opened, load_course(course))
    page = words(decided / "report.html")
    assert "excused, without a grade: ada Ada" in page
    assert "essay is not marked yet, and counts 0, for 2 students (cleo Cleo, hw1)" in page
    assert "late: 3.7 points subtracted from 2 students (bob Bob, hw1)" in page
    for name in ("report.html", "report-anonymous.html"):
        text = (decided / name).read_text("utf-8")
        assert not any(one in text for one in (PRIVATE, "Come and see me", "no source"))


# --- explanations and comparisons ----------------------------------------------------------------


def test_explain_lists_lines_and_comments(decided: Path, decide: Decide) -> None:
    code, told = decide("explain", "bob")
    assert (code, told.splitlines()[:12]) == (
        0,
        [
            "bob  6.3 of 9 points",
            "  comment: Come and see me.",
            "  comment on weigh: Nice use of exp.",
            "  essay  +4",
            "    set to 4: no source",
            "  basics  +0.5",
            "    corrected by +0.5: a nice test",
            "  total  -1",
            "    corrected by -1: copied",
            "  late  -0.7",
            "    submitted 20 hours late: 10 % of the points",
            "  weigh  1.5 of 2",
        ],
    )
    code, told = decide("explain", "ada")
    assert (code, "ada is excused: the grade does not count" in told) == (2, True)


def test_diff_says_which_line_changed_and_why(
    decide: Decide, cold_grader: Grader, book: Path, course: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    (before / "grades.db").write_bytes((book / "grades.db").read_bytes())
    decide("adjust", "ada", "essay", "=4", "--reason", "good")
    decide("excuse", "cleo")
    decide("extend", "bob", "3 days")
    ran = cold_grader("diff", before, book, "--course", course, "--csv", tmp_path / "mail.csv")
    assert "ada  3 → 7\n  essay  0 → 4\n    set to 4: good\n" in ran.out
    assert "cleo  3 → no points\n  graded → excused\n" in ran.out
    assert "bob  2.4 → 3\n  late  -0.6 → 0\n    the due time, the rule, an extension" in ran.out
    assert "3 of 5 grades changed" in ran.out
    assert "essay 0 → 4 (set to 4: good)" in line_of(tmp_path / "mail.csv", "ada")["reasons"]


def test_a_page_that_stays_the_same_is_not_written_again(
    decided: Path, course: Path, decide: Decide
) -> None:
    def times() -> dict[str, int]:
        return {path.stem: path.stat().st_mtime_ns for path in (decided / "feedback").iterdir()}

    with existing_gradebook(decided, "tiny") as opened:
        write_pages(opened, load_course(course))
    before = times()
    decide("comment", "cleo", "Well done.")
    changed = {name for name, time in times().items() if before[name] != time}
    assert changed == {"cleo"}


def test_a_page_ends_with_the_courses_words_on_how_to_ask_again(
    decided: Path, course: Path
) -> None:
    with (course / "course.toml").open("a", encoding="utf-8") as file:
        file.write('\n[feedback]\nask = "Write to <staff@x.edu> within a week."\n')
    with existing_gradebook(decided, "tiny") as opened:
        write_pages(opened, load_course(course))
    page = (decided / "feedback" / "bob.html").read_text("utf-8")
    assert "Write to &lt;staff@x.edu&gt; within a week." in page
    assert "Graded with attention-grader" in page


def test_a_correction_that_sets_points_is_told_as_one(
    decide: Decide, cold_grader: Grader, decided: Path, course: Path, tmp_path: Path
) -> None:
    assert "points are never below 0" not in decide("explain", "bob")[1]
    before = tmp_path / "before"
    before.mkdir()
    (before / "grades.db").write_bytes((decided / "grades.db").read_bytes())
    decide("adjust", "bob", "weigh", "=1.8", "--reason", "read again")
    ran = cold_grader("diff", before, decided, "--course", course)
    assert (
        "  weigh  1.5 → 1.8\n    set to 1.8 instead of 1.5: read again\n"
        "  late  -0.7 → -0.73\n    the penalty is a share of points that changed\n"
    ) in ran.out
    assert "never below 0" not in ran.out


def test_a_part_of_a_gradebook_has_nothing_of_the_whole_and_a_line_says_so(
    decided: Path, decide: Decide, course: Path
) -> None:
    text = (course / "course.toml").read_text("utf-8")
    part = '[[assignment]]\nname = "part"\nexercises = ["center"]\n\n[[manual]]'
    (course / "course.toml").write_text(text.replace("[[manual]]", part), "utf-8")
    code, told = decide("export", "--to", "csv", "--assignment", "part")
    assert code == 0
    lines = {name: line_of(decided / "grades.csv", name) for name in totals(decided)}
    assert {name: line["total"] for name, line in lines.items()} == {
        "ada": "", "bob": "2", "cleo": "2", "hw1": "2", "zoe": "",
    }  # fmt: skip
    assert "essay" not in lines["bob"]
    assert (
        "points of whole units, questions, the total or lateness are not in this part: "
        "bob, hw1, zoe" in told
    )
