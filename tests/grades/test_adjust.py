"""What a person does to a gradebook: `grader adjust` and `grader forget`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.grades.gradebook import existing_gradebook, open_gradebook
from grader.grades.table import gradebook_csv
from grader.intake import Roster, Submission
from grader.records.rows import Adjustment, Person, Row
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.gradebooks import correct
from tests.support.places import TINY

SECRET = "Ada Lovelace of Ockham"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Ada with two of four points, a pair, a grader's fault, and zoe, who handed in nothing."""
    people = {
        "ada": Person("s1", SECRET, "ada@x.edu"),
        "bob": Person("s2", "Robert"),
        "cleo": Person("s3", "Robert"),
        "zoe": Person("s4", "Zoë"),
    }
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade_of("ada", 1, 1), Submission("ada", (SourceText("a.py", (SECRET,)),)))
        book.put_aside()
        pair = Submission("pair", (SourceText("b.py", ("x = 1",)),), group=("bob", "cleo"))
        book.record(grade_of("pair", 2, 0), pair)
        book.record(grade_of("eve", 0, 0, status="grader_error"))
        book.set_people(people)
        book.roster = Roster((people["ada"],))
        book.exercises = EXERCISES
        book.write_files()
    return tmp_path


def row(folder: Path, student: str) -> dict[str, str]:
    """A student's line of ``gradebook.csv``."""
    with (folder / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return next(line for line in csv.DictReader(file) if line["student"] == student)


def adjust(cold_grader: Grader, folder: Path, *rest: str) -> tuple[int, str]:
    """How the command ended, and what it said on one line or two."""
    ran = cold_grader("adjust", folder, *rest, "--course", TINY)
    return ran.code, ran.out + ran.err


# --- adjust --------------------------------------------------------------------------------------


def test_points_are_added_and_what_was_computed_stays(cold_grader: Grader, book: Path) -> None:
    code, told = adjust(
        cold_grader, book, "ada", "weigh", "+0.5", "--reason", "typo in the statement"
    )
    assert (code, told) == (
        0,
        "ada: weigh 1 → 1.5 of 3, total 2 → 2.5\ncorrected by +0.5: typo in the statement\n",
    )
    assert [row(book, "ada")[key] for key in ("total", "weigh", "adjustment")] == [
        "2.5",
        "1.5",
        "0.5",
    ]
    with existing_gradebook(book, "tiny") as opened:
        assert next(opened.grades()).total == 2


def test_a_minus_is_no_option(cold_grader: Grader, book: Path) -> None:
    code, told = adjust(cold_grader, book, "ada", "weigh", "-.5", "--reason", "late")
    assert (code, "points are a number" in told) == (2, True)
    code, _ = adjust(cold_grader, book, "ada", "weigh", "-0.5", "--reason", "late")
    assert (code, row(book, "ada")["total"]) == (0, "1.5")


def test_a_second_correction_replaces_the_first_and_zero_takes_it_back(
    cold_grader: Grader, book: Path
) -> None:
    adjust(cold_grader, book, "ada", "weigh", "+1", "--reason", "typo")
    _, told = adjust(cold_grader, book, "ada", "weigh", "+3", "--reason", "a bonus")
    assert told == (
        "ada: weigh 2 → 4 of 3, total 3 → 5\ncorrected by +3 instead of +1: a bonus\n"
        "that is more than the exercise is worth: a bonus? 0 removes the correction\n"
    )
    _, told = adjust(cold_grader, book, "ada", "weigh", "0")
    assert told == "ada: weigh 4 → 1 of 3, total 5 → 2\nthe correction was removed\n"
    assert row(book, "ada")["adjustment"] == ""


@pytest.mark.parametrize("who", ["ada", "s1", "ADA@x.edu", "Lovelace of Ockham, Ada"])
def test_a_student_is_found_by_all_that_is_known(cold_grader: Grader, book: Path, who: str) -> None:
    assert adjust(cold_grader, book, who, "weigh", "1", "--reason", "typo")[0] == 0
    assert row(book, "ada")["weigh"] == "2"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ada", "weigh", "+1"), "give a reason with --reason"),
        (("ada", "weigh", "+1", "--reason", " "), "give a reason with --reason"),
        (("ada", "weigh", "nan", "--reason", "x"), "points are a number"),
        (("ada", "weigh", "inf", "--reason", "x"), "points are a number"),
        (("ada", "weigh", "0.0001", "--reason", "x"), "at most three decimals"),
        (("ada", "weigh", "-1.001", "--reason", "x"), "you cannot take away more than that"),
        (("ada", "weigh", "0"), "no correction in weigh to remove"),
        (("ada", "staircase", "1", "--reason", "x"), "staircase was not graded"),
        (("ada", "basics", "-9", "--reason", "x"), "you cannot take away more than that"),
        (("ada", "wiegh", "1", "--reason", "x"), "did you mean weigh?"),
        (("zoe", "weigh", "1", "--reason", "x"), "zoe has no submission"),
        (("eve", "weigh", "1", "--reason", "x"), "the grader failed on eve"),
        (("robert", "weigh", "1", "--reason", "x"), "'robert' may be bob, cleo: name one"),
        (("adda", "weigh", "1", "--reason", "x"), "did you mean ada?"),
        (("\x1b[2J", "weigh", "1", "--reason", "x"), r"no student called '\x1b[2J'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    cold_grader: Grader, book: Path, arguments: tuple[str, ...], told: str
) -> None:
    before = (book / "gradebook.csv").read_bytes()
    code, said = adjust(cold_grader, book, *arguments)
    assert (code, told in said, said.count("\n")) == (2, True, 1)
    assert (book / "gradebook.csv").read_bytes() == before


def test_a_folder_without_grades_is_refused(cold_grader: Grader, tmp_path: Path) -> None:
    code, told = adjust(cold_grader, tmp_path, "ada", "weigh", "1", "--reason", "x")
    assert (code, "there is no gradebook" in told) == (2, True)
    assert not list(tmp_path.iterdir())


# --- many at once --------------------------------------------------------------------------------


def table(folder: Path, *lines: str, head: str = "student,exercise,points,reason") -> Path:
    """A CSV of corrections."""
    path = folder / "corrections.csv"
    path.write_text("\n".join([head, *lines, ""]), "utf-8")
    return path


def corrections(folder: Path) -> dict[tuple[str, str], tuple[float, str]]:
    """What stands in the gradebook, by student and exercise."""
    with existing_gradebook(folder, "tiny") as opened:
        rows = opened.rows()
    return {(r.student, a.part): (a.points, a.reason) for r in rows for a in r.adjustments}


def test_many_corrections_are_written_at_once(cold_grader: Grader, book: Path) -> None:
    path = table(
        book, 'ada,weigh,+0.5,"typo, in the statement"', "s1,center,-1,late", "", "bob,weigh,1,typo"
    )
    code, told = adjust(cold_grader, book, "--from", str(path))
    assert (code, told) == (
        0,
        "ada: weigh 1 → 1.5 of 3, total 2 → 2.5\n"
        "corrected by +0.5: typo, in the statement\n"
        "ada: center 1 → 0 of 2, total 2.5 → 1.5\n"
        "corrected by -1: late\n"
        "bob: weigh 0 → 1 of 3, total 2 → 3\n"
        "corrected by +1: typo\n"
        "3 corrections, of 2 students\n",
    )
    assert corrections(book) == {
        ("ada", "center"): (-1, "late"),
        ("ada", "weigh"): (0.5, "typo, in the statement"),
        ("bob", "weigh"): (1, "typo"),
    }
    assert [row(book, name)["total"] for name in ("ada", "bob")] == ["1.5", "3"]


def test_columns_may_stand_in_any_order_with_others_between_them(
    cold_grader: Grader, book: Path
) -> None:
    path = table(book, "typo;asked twice;1;ada;weigh", head="Reason;Note;Points;Student;Exercise")
    assert adjust(cold_grader, book, "--from", str(path))[0] == 0
    assert corrections(book) == {("ada", "weigh"): (1, "typo")}


def test_zero_in_a_table_takes_a_correction_back(cold_grader: Grader, book: Path) -> None:
    adjust(cold_grader, book, "ada", "weigh", "+1", "--reason", "typo")
    path = table(book, "ada,weigh,0,")
    code, told = adjust(cold_grader, book, "--from", str(path))
    assert (code, told) == (
        0,
        "ada: weigh 2 → 1 of 3, total 3 → 2\nthe correction was removed\n",
    )
    assert corrections(book) == {}


def test_a_table_may_come_through_a_pipe(
    cold_grader: Grader, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.TextIOWrapper(io.BytesIO(table(book, "ada,weigh,1,typo").read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    assert adjust(cold_grader, book, "--from", "-")[0] == 0
    assert corrections(book) == {("ada", "weigh"): (1, "typo")}


WRONG_LINES = {
    "nobody,weigh,1,typo": "line 3: there is no student called 'nobody'",
    "ada,wiegh,1,typo": "line 3: there is no exercise called 'wiegh'; did you mean weigh?",
    "ada,staircase,1,typo": "line 3: staircase was not graded in this gradebook",
    "ada,weigh,much,typo": "line 3: points are a number",
    "ada,weigh,inf,typo": "line 3: points are a number",
    "ada,weigh,nan,typo": "line 3: points are a number",
    "ada,weigh,,typo": "line 3: points are a number",
    "ada,weigh,1,": "line 3: give a reason in the column reason",
    "ada,weigh,-2,late": "line 3: ada earned 1 point in weigh",
    "ada,weigh,1": "line 3: it has 3 cells, but the header has 4",
    "ada,weigh,1,typo, in the statement": "line 3: it has 5 cells, but the header has 4",
    "bob,weigh,1,again": "line 3: line 2 already corrects bob in weigh",
    "s2,weigh,1,by another name": "line 3: line 2 already corrects bob in weigh",
    "zoe,weigh,1,typo": "line 3: zoe has no submission",
    "robert,weigh,1,typo": "line 3: 'robert' may be bob, cleo: name one",
    "\x1b[2J,weigh,1,typo": r"line 3: there is no student called '\x1b[2J'",
}


@pytest.mark.parametrize(("line", "told"), WRONG_LINES.items())
def test_a_wrong_line_is_named_and_no_other_line_is_written(
    cold_grader: Grader, book: Path, line: str, told: str
) -> None:
    path = table(book, "bob,weigh,1,typo", line)
    before = (book / "gradebook.csv").read_bytes()
    code, said = adjust(cold_grader, book, "--from", str(path))
    assert (code, told in said, said.count("\n")) == (2, True, 1)
    assert "nothing was written" in said
    assert (corrections(book), (book / "gradebook.csv").read_bytes()) == ({}, before)


def test_all_wrong_lines_are_named_in_one_message(cold_grader: Grader, book: Path) -> None:
    path = table(book, '"ada",weigh,1,"two\nlines"', "nobody,weigh,1,x", "", "ada,center,inf,x")
    code, said = adjust(cold_grader, book, "--from", str(path))
    assert (code, said.count("\n")) == (2, 1)
    assert "line 4: there is no student called 'nobody'" in said
    assert "line 6: points are a number" in said
    many = table(book, *(f"nobody{k},weigh,1,x" for k in range(40)))
    code, said = adjust(cold_grader, book, "--from", str(many))
    assert (code, said.count("line ")) == (2, 5)
    assert "and 35 more" in said


TABLES = {
    "": "is empty: its first line must name the columns student, exercise, reason, points or set",
    "ada,weigh,1,typo\n": "is not a table of corrections: its first line must name the columns",
    "student,exercise,points\nada,weigh,1\n": "is not a table of corrections",
    "student,student,exercise,points,reason\n": "is not a table of corrections",
    "student,exercise,points,reason\n": "has no line below its header",
    'student,exercise,points,reason\nada,weigh,1,"typo\n': ":2: the quotes in this row",
}


@pytest.mark.parametrize(("text", "told"), TABLES.items())
def test_what_is_no_table_of_corrections_is_refused(
    cold_grader: Grader, book: Path, text: str, told: str
) -> None:
    path = book / "corrections.csv"
    path.write_text(text, "utf-8")
    code, said = adjust(cold_grader, book, "--from", str(path))
    assert (code, told in said, said.count("\n")) == (2, True, 1)
    assert corrections(book) == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ada", "--from", "x.csv"), "give nothing else"),
        (("--reason", "typo", "--from", "x.csv"), "give nothing else"),
        (("--from", "not-there.csv"), "not-there.csv: No such file"),
        (("ada", "weigh"), "name a student, a part and points; or a table with --from"),
        ((), "name a student, a part and points; or a table with --from"),
    ],
)
def test_a_call_names_one_correction_or_a_table(
    cold_grader: Grader, book: Path, arguments: tuple[str, ...], told: str
) -> None:
    code, said = adjust(cold_grader, book, *arguments)
    assert (code, told in said, said.count("\n")) == (2, True, 1)


# --- never below zero ----------------------------------------------------------------------------


def test_a_stricter_test_after_a_correction_leaves_no_negative_points(
    cold_grader: Grader, book: Path
) -> None:
    adjust(cold_grader, book, "ada", "weigh", "-0.9", "--reason", "late")
    with existing_gradebook(book, "tiny") as opened:
        opened.put_aside()
        opened.record(grade_of("ada", 1, 0.833))
        opened.write_files()
    keys = ("total", "weigh", "adjustment")
    assert [row(book, "ada")[key] for key in keys] == ["1", "0", "-0.833"]
    line = "the correction by -0.9 counts -0.833: points are never below 0\n"
    _, told = adjust(cold_grader, book, "ada", "center", "+2", "--reason", "a bonus")
    assert f"weigh: {line}" in told
    ran = cold_grader("diff", book, "--course", TINY)
    assert "  weigh  0.1 → 0\n    the correction by -0.9 still counts on top (late). " in ran.out
    assert f"    {line}" in ran.out
    assert cold_grader("report", book, "--course", TINY).code == 0
    assert f"weigh: {line.strip()}" in (book / "report.html").read_text("utf-8")
    page = (book / "feedback" / "ada.html").read_text("utf-8")
    assert "−0.9: late (this counts −0.83: points are never below 0)" in page
    export = ("export", book, "--to", "gradescope", "--course", TINY)
    assert cold_grader(*export).code == 0
    results = json.loads((book / "gradescope" / "ada" / "results.json").read_bytes())
    assert results["score"] == 3
    assert f"weigh: {line.strip()}" in results["output"]


def test_a_bonus_above_the_maximum_stays_possible(cold_grader: Grader, book: Path) -> None:
    adjust(cold_grader, book, "ada", "weigh", "+3", "--reason", "a bonus")
    assert [row(book, "ada")[key] for key in ("total", "weigh")] == ["5", "4"]


thousandths = st.integers(0, 2_000).map(lambda n: n / 1000)
corrections_of = st.integers(-3_000, 3_000).map(lambda n: n / 1000)


@given(
    st.lists(thousandths, min_size=2, max_size=2),
    st.dictionaries(st.sampled_from([*EXERCISES, "gone"]), corrections_of),
)
def test_a_total_is_what_its_line_sums_to_and_never_negative(
    computed: list[float], added: dict[str, float]
) -> None:
    adjustments = tuple(Adjustment(name, points, "why") for name, points in added.items())
    one = Row("ada", grade_of("ada", *computed), Person(), adjustments)
    (line,) = csv.DictReader(io.StringIO(gradebook_csv([one], EXERCISES)))
    points = [round(1000 * float(line[name])) for name in EXERCISES]
    assert min(points) >= 0
    assert round(1000 * float(line["total"])) == sum(points)
    assert sum(points) == round(1000 * (sum(computed) + float(line["adjustment"] or 0)))
    short = [name for name in EXERCISES if added.get(name, 0) + computed[EXERCISES.index(name)] < 0]
    assert sorted(line.partition(":")[0] for line in one.limits) == short


# --- forget --------------------------------------------------------------------------------------


def test_who_is_forgotten_is_in_no_file(cold_grader: Grader, book: Path) -> None:
    (book / "feedback").mkdir()
    (book / "canvas.csv").write_text("exported", "utf-8")
    for student in ("ada", "adam"):
        (book / "feedback" / f"{student}.html").write_text(student, "utf-8")
    adjust(cold_grader, book, "ada", "weigh", "1", "--reason", f"{SECRET} asked")
    ran = cold_grader("forget", book, "ada", "--yes", "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "removed the data of ada: the grade, grades of earlier runs (1), the line of the "
        "roster, corrections and other decisions (1), the text, feedback/ada.html\n"
    )
    assert "unchanged files, for you to make again or delete: canvas.csv\n" in ran.out
    assert "remove the student yourself from" in ran.out
    for path in book.rglob("*.*"):
        assert path.name != "ada.html"
        assert SECRET.encode() not in path.read_bytes()
    assert (book / "feedback" / "adam.html").exists()
    assert "\nada," not in (book / "gradebook.csv").read_text("utf-8")


def test_a_group_keeps_what_it_handed_in_and_loses_the_name(
    cold_grader: Grader, book: Path
) -> None:
    ran = cold_grader("forget", book, "bob", "--yes", "--course", TINY)
    assert "stays in the gradebook for those who share it: cleo" in ran.out
    with existing_gradebook(book, "tiny") as opened:
        submission = opened.submission("pair")
        assert submission is not None
        # So a regrading does not bring bob back.
        assert submission.members == ("cleo",)


def test_nobody_is_forgotten_unasked(
    cold_grader: Grader, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.confirm", _no)
    ran = cold_grader("forget", book, "ada", "--course", TINY)
    assert ran.code == 1
    with existing_gradebook(book, "tiny") as opened:
        assert "ada" in [row.student for row in opened.rows()]


def _no(question: str, *, abort: bool) -> None:
    import typer

    assert (question, abort) == (f"remove ada ({SECRET}, 2 points) permanently?", True)
    raise typer.Abort


def test_a_correction_of_what_is_not_graded_any_more_counts_nothing(book: Path) -> None:
    with existing_gradebook(book, "tiny") as opened:
        correct(opened, "ada", Adjustment("weigh", 1, "typo"))
        opened.record(grade_of("ada", 1))
        (ada,) = [row for row in opened.rows() if row.student == "ada"]
    assert (ada.total, ada.adjustment) == (1, 0)
