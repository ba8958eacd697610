"""`grader grade` from a download to rows: rosters, groups, assignments, again, and what arrives."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from threading import Event

import pytest
import torch

from grader.course.course import Course, load_course
from grader.grades.gradebook import open_gradebook
from grader.grading.order import Order
from grader.intake import NO_ROSTER, read_roster, take_in
from grader.intake.arrivals import arriving
from grader.run.batch import grade_arrivals, grade_into
from tests.conftest import Grader
from tests.support.gradebooks import folder
from tests.support.places import TINY

CENTER = "def center(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"
WRONG = "def center(x):\n    return x\n"


def cells(out: Path, *columns: str) -> list[tuple[str, ...]]:
    with (out / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        return [tuple(row[column] for column in columns) for row in csv.DictReader(file)]


@pytest.fixture
def canvas(tmp_path: Path) -> Path:
    """A download of Canvas, of two."""
    return folder(tmp_path / "canvas", doejane_LATE_1_10_hw=CENTER, roebob_2_11_hw=WRONG)


ROSTER = "id,name,email,section\ns1,Jane Doe,jane@x.edu,A\ns2,Bob Roe,,A\ns3,Cleo Poe,,B\n"


def test_a_roster_is_remembered_and_its_columns_are_kept(
    grader: Grader, canvas: Path, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER, "utf-8")
    call = ("grade", canvas, "--out", tmp_path / "out", "--only", "center", "--course", TINY)
    ran = grader(*call, "--roster", tmp_path / "roster.csv")
    assert (ran.code, "s3 Cleo Poe" in ran.out) == (0, True)
    columns = ("student", "status", "total", "late", "id", "section")
    told = [
        ("doejane", "graded", "2", "late", "s1", "A"),
        ("roebob", "graded", "0", "", "s2", "A"),
        ("s3", "absent", "", "", "s3", "B"),
    ]
    assert cells(tmp_path / "out", *columns) == told
    assert grader(*call).code == 0
    assert cells(tmp_path / "out", *columns) == told


def test_a_group_has_a_row_for_each_member(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("id,name,group\ns1,Jane,red\ns2,Bob,red\n", "utf-8")
    submitted = folder(tmp_path / "class", red=CENTER)
    ran = grader(
        "grade",
        submitted,
        "--out",
        tmp_path / "out",
        "--only",
        "center",
        "--roster",
        tmp_path / "roster.csv",
        "--course",
        TINY,
    )
    assert "1 submission in" in ran.out
    told = cells(tmp_path / "out", "student", "submission", "total")
    assert told == [("s1", "red", "2"), ("s2", "red", "2")]


def test_what_cannot_be_read_is_named_in_the_dry_run_and_in_the_report(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text("id,name\nada,Ada\nbob,Bob\ncleo,Cleo\n", "utf-8")
    place = folder(tmp_path / "class", ada=CENTER)
    for name in ("bob.docx", "cleo.ipynb.txt", "photo.png"):
        (place / name).write_text("{}", "utf-8")
    told = (
        "bob.docx: not read: submit a .py file or a notebook",
        "cleo.ipynb.txt: not read under this name: call it cleo.ipynb",
    )
    call = ("grade", place, "--roster", tmp_path / "roster.csv", "--course", TINY)
    dry = grader(*call, "--dry-run").out
    assert all(line in dry for line in (*told, "photo.png"))
    ran = grader(*call, "--out", tmp_path / "out", "--only", "center")
    assert (ran.code, "photo.png" in ran.out) == (0, True)
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert all(line in report for line in told)
    assert cells(tmp_path / "out", "student", "status") == [
        ("ada", "graded"),
        ("bob", "unreadable"),
        ("cleo", "unreadable"),
    ]


# --- assignments ---------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the tiny course with an assignment, to be edited."""
    shutil.copytree(TINY, tmp_path / "tiny")
    path = tmp_path / "tiny" / "exercises" / "course.toml"
    more = '\n[[assignment]]\nname = "ps1"\nexercises = ["center"]\npoints = 50\n'
    path.write_text(path.read_text("utf-8") + more, "utf-8")
    return tmp_path / "tiny"


def test_an_assignment_is_graded_alone(grader: Grader, course: Path, tmp_path: Path) -> None:
    call = ("grade", folder(tmp_path / "class", ada=CENTER), "--out", tmp_path / "out")
    assert grader(*call, "--assignment", "ps1", "--course", course).code == 0
    assert cells(tmp_path / "out", "student", "total", "max") == [("ada", "2", "2")]
    page = (tmp_path / "out" / "feedback" / "ada.html").read_text("utf-8")
    assert "A tiny course: ps1" in page
    assert "They count 50 of 50 points of the assignment." in page
    ran = grader("export", tmp_path / "out", "--to", "canvas", "--course", course)
    assert (ran.code, "ps1" in (tmp_path / "out" / "canvas.csv").read_text("utf-8")) == (0, True)
    ran = grader("export", tmp_path / "out", "--to", "canvas", "--course", TINY)
    assert (ran.code, "no assignment called 'ps1'" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('name = "a"\nexercises = []', "assignment 'a' has no exercises"),
        ('name = "a"\nexercises = ["centre"]', "there is no exercise or unit called 'centre'"),
        ('name = "a"\nexercises = ["basics"]\npoints = 0', "points must be positive"),
        ('name = "ps1"\nexercises = ["basics"]', "assignment 'ps1' is there twice"),
        ('name = "a"\nexercises = ["basics"]\ndue = "soon"', "due"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_told_with_its_line(
    cold_grader: Grader, course: Path, table: str, problem: str
) -> None:
    path = course / "exercises" / "course.toml"
    path.write_text(f"{path.read_text('utf-8')}\n[[assignment]]\n{table}\n", "utf-8")
    ran = cold_grader("list", "--course", course)
    assert ran.code == 2
    assert problem in ran.err
    line = int(ran.err.split("course.toml:")[1].split(":")[0])
    assert line > path.read_text("utf-8").splitlines().index('name = "ps1"') + 1


# --- again ---------------------------------------------------------------------------------------


def test_grading_again_needs_no_files_and_keeps_the_old_grades(
    grader: Grader, course: Path, tmp_path: Path
) -> None:
    submitted = folder(tmp_path / "class", ada=CENTER, bob=WRONG)
    out = ("--out", tmp_path / "out", "--course", course)
    assert grader("grade", submitted, *out, "--only", "center").code == 0
    shutil.rmtree(submitted)
    tests = course / "solutions" / "graders" / "test_basics.py"
    text = tests.read_text("utf-8")
    lenient = text.replace("assert_agrees(student.center(x), reference.center(x))", "")
    assert lenient != text
    tests.write_text(lenient, "utf-8")
    ran = grader("grade", "--again", *out)
    assert ran.code == 0
    assert "1 of 2 grades changed" in ran.out
    assert f"to mail from: {tmp_path / 'out' / 'changes.csv'}" in ran.out
    (_, line) = (tmp_path / "out" / "changes.csv").read_text("utf-8").splitlines()
    assert line.startswith("bob,,,,0,")
    (ada, (_, bob)) = cells(tmp_path / "out", "student", "total")
    assert ada == ("ada", "2")
    assert 0 < float(bob) < 2
    with open_gradebook(tmp_path / "out", "tiny") as book:
        assert {student: old.total for student, old in book.earlier(1).items()} == {
            "ada": 2,
            "bob": 0,
        }


def test_a_gradebook_that_is_not_there_cannot_be_graded_again(
    cold_grader: Grader, tmp_path: Path
) -> None:
    ran = cold_grader("grade", "--again", "--out", tmp_path / "out", "--course", TINY)
    assert ran.code == 2
    assert "there is no gradebook in" in ran.err


def test_another_hidden_seed_is_not_taken_by_accident(
    grader: Grader, course: Path, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "out", "--course", course)
    submitted = folder(tmp_path / "class", ada=CENTER)
    assert grader("grade", submitted, *out, "--only", "center").code == 0
    (course / "solutions" / "seed").write_text("another", "utf-8")
    ran = grader("grade", "--again", *out)
    assert ran.code == 2
    assert "graded with another hidden seed: name that course with --course" in ran.err
    assert grader("grade", "--again", *out, "--seed", "another").code == 0


# --- stopped -------------------------------------------------------------------------------------


def test_a_grading_that_was_stopped_gives_nobody_a_zero(
    grader: Grader, tiny: Course, tmp_path: Path
) -> None:
    submitted = folder(tmp_path / "class", ada=CENTER, bob=CENTER)
    order = Order(tiny, tiny.hidden_seed(), tiny.tests_of(), ("center",), isolation="weak")

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_into(tmp_path / "out", order, take_in([submitted], tiny), 1, stop)
    out = tmp_path / "out"
    for call in (
        ("export", out, "--to", "csv"),
        ("grade", "--again", "--out", out),
        ("report", out),
    ):
        ran = grader(*call, "--course", TINY)
        assert ran.code == 2
        assert "was stopped before its end: run the same `grader grade` again" in ran.err
    assert not (tmp_path / "out" / "gradebook.csv").exists()
    again = ("grade", submitted, "--out", tmp_path / "out", "--only", "center", "--course", TINY)
    assert grader(*again).code == 0
    assert cells(tmp_path / "out", "student", "total") == [("ada", "2"), ("bob", "2")]


# --- conflicts -----------------------------------------------------------------------------------

ONE_NAME = "two submissions are called 'ada': {0}/ada.ipynb and {0}/ada.py; rename one"
NOTEBOOK = json.dumps(
    {"nbformat": 4, "cells": [{"cell_type": "code", "source": CENTER}], "metadata": {}}
)


@pytest.fixture
def colliding(tmp_path: Path) -> Path:
    """Hand-ins of three, of which two share a name."""
    place = folder(tmp_path / "class", ada=WRONG, bob=CENTER)
    (place / "ada.ipynb").write_text(NOTEBOOK, "utf-8")
    return place


def test_in_a_batch_a_conflict_is_shown_and_the_others_are_graded(
    grader: Grader, colliding: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    call = ("grade", colliding, "--out", out, "--only", "center", "--course", TINY)
    ran = grader(*call)
    assert ran.code == 1
    assert ran.out.count(ONE_NAME.format(colliding)) == 1
    assert "1 student in a conflict" in ran.out
    told = [("ada", "conflict", "", "", ""), ("bob", "graded", "2", "2", "2")]
    assert cells(out, "student", "status", "total", "max", "center") == told
    assert [*(out / "feedback").iterdir()] == [out / "feedback" / "bob.html"]
    assert ONE_NAME.format(colliding) in unescape((out / "report.html").read_text("utf-8"))
    assert '"ada"' not in (out / "results.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--quiet", ""),
        ("--json", '{"student": "ada", "status": "conflict", "total": null, "max": null}'),
        ("--json-lines", '{"student": "ada", "status": "conflict", "total": null, "max": null'),
    ],
)
def test_a_program_is_told_of_a_conflict_too(
    grader: Grader, colliding: Path, tmp_path: Path, option: str, shown: str
) -> None:
    call = ("grade", colliding, "--out", tmp_path / "out", "--only", "center", "--course", TINY)
    ran = grader(*call, option)
    assert (ran.code, shown in ran.out) == (1, True)
    assert ran.err == f"ada: not graded: {ONE_NAME.format(colliding)}\n"


def test_a_dry_run_shows_a_conflict_as_the_grading_would(grader: Grader, colliding: Path) -> None:
    ran = grader("grade", colliding, "--dry-run", "--course", TINY)
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "bob: 1 file: bob.py",
        f"not graded: {ONE_NAME.format(colliding)}",
    ]


def test_where_all_are_in_a_conflict_it_is_shown_as_in_a_larger_class(
    grader: Grader, colliding: Path, tmp_path: Path
) -> None:
    (colliding / "bob.py").unlink()
    for goes in (("--out", tmp_path / "out"), ("--dry-run",)):
        ran = grader("grade", colliding, *goes, "--course", TINY)
        assert (ran.code, ran.err) == (1, "")
        assert ran.out.count(ONE_NAME.format(colliding)) == 1
        assert goes[0] == "--dry-run" or ran.out.endswith(": 1 student in a conflict\n")
    assert cells(tmp_path / "out", "student", "status") == [("ada", "conflict")]
    assert ONE_NAME.format(colliding) in unescape(
        (tmp_path / "out" / "report.html").read_text("utf-8")
    )


GROUP = "id,name,email,group\ns1,Jane,jane@x,red\ns2,Bob,bob@x,red\ns3,Cleo,cleo@x,red\n"


def test_a_member_submits_for_the_group_and_corrections_stay_personal(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(GROUP, "utf-8")
    place, out = folder(tmp_path / "class", jane=CENTER), tmp_path / "out"
    options = ("--only", "center", "--course", TINY, "--roster", tmp_path / "roster.csv")
    call = ("grade", place, "--out", out, *options)
    ran = grader(*call)
    line = "'jane' (s1 Jane) submitted for a group: s2 Bob and s3 Cleo get the same grade"
    assert (ran.code, line in ran.out, "1 submission in" in ran.out) == (0, True, True)
    assert line in grader("grade", place, "--dry-run", *options).out
    columns = ("student", "submission", "total")
    assert cells(out, *columns) == [(key, "jane", "2") for key in ("s1", "s2", "s3")]
    why = ("--reason", "helped nobody", "--course", TINY)
    assert grader("adjust", out, "bob@x", "center", "-0.5", *why).code == 0
    folder(place, bob=CENTER)  # the same text
    assert grader(*call).code == 0
    assert cells(out, *columns) == [("s1", "bob", "2"), ("s2", "bob", "1.5"), ("s3", "bob", "2")]
    folder(place, bob=WRONG)
    assert grader(*call).code == 1
    assert cells(out, "student", "status") == [(key, "conflict") for key in ("s1", "s2", "s3")]
    (place / "bob.py").unlink()
    assert grader(*call).code == 0
    assert cells(out, *columns) == [("s1", "jane", "2"), ("s2", "jane", "1.5"), ("s3", "jane", "2")]


def test_a_conflict_hides_an_earlier_grade_and_loses_none(
    grader: Grader, colliding: Path, tmp_path: Path
) -> None:
    out, course = tmp_path / "out", ("--course", TINY)
    call = ("grade", colliding, "--out", out, "--only", "center", *course)
    (colliding / "ada.ipynb").unlink()
    assert grader(*call).code == 0
    (colliding / "ada.ipynb").write_text(NOTEBOOK, "utf-8")
    assert grader(*call).code == 1
    assert cells(out, "student", "status", "total") == [
        ("ada", "conflict", ""),
        ("bob", "graded", "2"),
    ]
    for asked in (("explain", out, "ada", "center"), ("adjust", out, "ada", "center", "+1")):
        ran = grader(*asked, *(["--reason", "why"] if asked[0] == "adjust" else []), *course)
        assert (ran.code, "ada is not graded (two submissions" in ran.err) == (2, True)
    assert grader("export", out, "--to", "canvas", *course).code == 0
    assert "ada,,,,,\n" in (out / "canvas.csv").read_text("utf-8")
    ran = grader("grade", "--again", "--out", out, *course)
    assert (ran.code, "ada: not graded: two submissions" in ran.out) == (1, True)
    (colliding / "ada.ipynb").unlink()
    ran = grader(*call)
    assert (ran.code, "2 of 2 are reused" in ran.out) == (0, True)
    assert cells(out, "student", "total") == [("ada", "0"), ("bob", "2")]


def test_pseudonyms_hide_who_is_in_a_conflict(
    grader: Grader, colliding: Path, tmp_path: Path
) -> None:
    out, course = tmp_path / "out", ("--course", TINY)
    grader("grade", colliding, "--out", out, "--only", "center", *course)
    assert grader("report", out, "--anonymous", *course).code == 0
    page = (out / "report-anonymous.html").read_text("utf-8")
    assert "conflict" in page
    assert "ada.ipynb" not in page


def test_a_member_of_two_groups_is_in_a_conflict_and_the_others_get_their_grades(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(
        "id,name,group\ns1,Jane,red\ns2,Bob,red\ns3,Cleo,\n", "utf-8"
    )
    place = folder(tmp_path / "class", red=CENTER, jane=WRONG, cleo=CENTER)
    out = tmp_path / "out"
    call = ("grade", place, "--out", out, "--only", "center", "--course", TINY)
    ran = grader(*call, "--roster", tmp_path / "roster.csv")
    assert ran.code == 1
    why = "s1 Jane would get two grades, of 'jane' and of 'red': keep only one submission"
    assert why in ran.out
    assert cells(out, "student", "submission", "status", "total") == [
        ("cleo", "cleo", "graded", "2"),
        ("s1", "", "conflict", ""),
        ("s2", "red", "graded", "2"),
    ]
    (place / "jane.py").unlink()
    assert grader(*call).code == 0
    assert cells(out, "student", "submission", "total") == [
        ("cleo", "cleo", "2"),
        ("s1", "red", "2"),
        ("s2", "red", "2"),
    ]


def test_who_is_forgotten_in_a_conflict_leaves_no_grade_under_another_name(
    grader: Grader, canvas: Path, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER, "utf-8")
    out, course = tmp_path / "out", ("--course", TINY)
    call = ("grade", canvas, "--out", out, "--only", "center", *course)
    assert grader(*call, "--roster", tmp_path / "roster.csv").code == 0
    more = folder(tmp_path / "more", jane=WRONG)
    assert grader("grade", more, *call[1:]).code == 1
    assert cells(out, "student", "status") == [
        ("roebob", "graded"),
        ("s1", "conflict"),
        ("s3", "absent"),
    ]
    assert grader("forget", out, "s1", "--yes", *course).code == 0
    with open_gradebook(out, "tiny") as book:
        assert [grade.student for grade in book.grades()] == ["roebob"]
        assert book.conflicts == {}


# --- what arrives --------------------------------------------------------------------------------


def test_what_arrives_in_a_folder_is_graded_and_what_is_known_is_not(
    one_warm_process: None, tiny: Course, tmp_path: Path
) -> None:
    place = folder(tmp_path / "in", ada=CENTER)
    order = Order(tiny, "seed", tiny.tests_of(), ("center",), isolation="weak")
    stop = Event()
    looks = arriving(place, tiny, NO_ROSTER, stop)
    rows = grade_arrivals(tmp_path / "out", order, looks)
    try:
        assert [(row.student, row.total) for row in next(rows)] == [("ada", 2)]
        folder(place, bob=WRONG)
        assert [(row.student, row.total) for row in next(rows)] == [("bob", 0)]
        (place / "ada.py").unlink()
        folder(place, bob=CENTER)
        assert [(row.student, row.total) for row in next(rows)] == [("bob", 2)]
    finally:
        stop.set()
        rows.close()
    assert cells(tmp_path / "out", "student", "total") == [("ada", "2"), ("bob", "2")]


class _Interrupted:
    """In place of what waits for events: Ctrl-C comes at once."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> _Interrupted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, *_: object) -> str:
        return "signal"


def test_one_ctrl_c_ends_the_wait_for_what_arrives(
    tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchfiles.main.RustNotify", _Interrupted)
    stop = Event()
    monkeypatch.setattr(stop, "wait", lambda _: pytest.fail("it waits on"))
    with pytest.raises(KeyboardInterrupt):
        list(arriving(folder(tmp_path / "in", ada=CENTER), tiny, NO_ROSTER, stop))


def test_what_arrives_in_a_conflict_is_left_out_until_it_is_settled(
    one_warm_process: None, tiny: Course, tmp_path: Path
) -> None:
    place, out = folder(tmp_path / "in", ada=CENTER), tmp_path / "out"
    order = Order(tiny, "seed", tiny.tests_of(), ("center",), isolation="weak")
    stop = Event()
    rows = grade_arrivals(out, order, arriving(place, tiny, NO_ROSTER, stop))
    try:
        assert [(row.student, row.total) for row in next(rows)] == [("ada", 2)]
        (place / "ada.ipynb").write_text(NOTEBOOK, "utf-8")
        assert next(rows) == []
        assert cells(out, "student", "status", "total") == [("ada", "conflict", "")]
        folder(place, bob=WRONG)
        assert [(row.student, row.total) for row in next(rows)] == [("bob", 0)]
        (place / "ada.ipynb").unlink()
        assert [(row.student, row.total) for row in next(rows)] == [("ada", 2)]
    finally:
        stop.set()
        rows.close()
    assert cells(out, "student", "total") == [("ada", "2"), ("bob", "0")]


def test_a_correction_stays_with_a_student_who_gets_another_name(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(GROUP.replace("red", ""), "utf-8")
    place, out = folder(tmp_path / "class", jane=CENTER), tmp_path / "out"
    options = ("--only", "center", "--course", TINY, "--roster", tmp_path / "roster.csv")
    call = ("grade", place, "--out", out, *options)
    assert grader(*call).code == 0
    why = ("--reason", "late", "--course", TINY)
    assert grader("adjust", out, "jane", "center", "-0.5", *why).code == 0
    (tmp_path / "roster.csv").write_text(GROUP, "utf-8")
    assert grader(*call).code == 0
    assert cells(out, "student", "total") == [("s1", "1.5"), ("s2", "2"), ("s3", "2")]


def test_a_groups_earlier_submission_does_not_come_back_when_it_is_graded_again(
    grader: Grader, tiny: Course, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(GROUP, "utf-8")
    roster = read_roster(tmp_path / "roster.csv")
    place, out = folder(tmp_path / "in", jane=CENTER), tmp_path / "out"
    seed = tiny.hidden_seed()
    order = Order(tiny, seed, tiny.tests_of(), ("center",), isolation="weak")
    stop = Event()
    rows = grade_arrivals(out, order, arriving(place, tiny, roster, stop), roster=roster)
    try:
        assert {row.total for row in next(rows)} == {2}
        folder(place, bob=CENTER)
        next(rows)
        (place / "jane.py").unlink()
        folder(place, bob=WRONG)
        assert {row.total for row in next(rows)} == {0}
    finally:
        stop.set()
        rows.close()
    assert grader("grade", "--again", "--out", out, "--course", TINY).code == 0
    assert cells(out, "submission", "total") == [("bob", "0")] * 3


ADA = "id,name,email\n1,Ada A,ada@x\n"


def test_whose_conflict_is_settled_under_another_name_has_one_row(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(ADA, "utf-8")
    place, out = folder(tmp_path / "in", ada=CENTER), tmp_path / "out"
    options = ("--only", "center", "--course", TINY, "--roster", tmp_path / "roster.csv")
    call = ("grade", place, "--out", out, *options)
    assert grader(*call).code == 0
    folder(place, **{"1": WRONG})
    assert (grader(*call).code, cells(out, "student", "status")) == (1, [("1", "conflict")])
    folder(place, bob=CENTER)
    assert grader(*call).code == 1
    (place / "ada.py").unlink()
    assert grader(*call).code == 0
    assert cells(out, "student", "total", "id") == [("1", "0", "1"), ("bob", "2", "")]


def test_while_waiting_too(one_warm_process: None, tiny: Course, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(ADA, "utf-8")
    roster = read_roster(tmp_path / "roster.csv")
    place, out = folder(tmp_path / "in", ada=CENTER), tmp_path / "out"
    order = Order(tiny, "seed", tiny.tests_of(), ("center",), isolation="weak")
    stop = Event()
    rows = grade_arrivals(out, order, arriving(place, tiny, roster, stop), roster=roster)
    try:
        next(rows)
        folder(place, **{"1": WRONG})
        next(rows)
        (place / "ada.py").unlink()
        next(rows)
    finally:
        stop.set()
        rows.close()
    assert cells(out, "student", "total", "id") == [("1", "0", "1")]


def test_while_waiting_a_conflict_is_printed_once(
    grader: Grader, colliding: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks(*_: object) -> Iterator[None]:
        yield
        folder(colliding, cleo=CENTER)
        yield
        (colliding / "ada.ipynb").unlink()
        yield
        (colliding / "ada.ipynb").write_text(NOTEBOOK, "utf-8")
        yield
        shutil.rmtree(colliding)
        yield
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.intake.arrivals.saves", looks)
    call = ("grade", colliding, "--out", tmp_path / "out", "--only", "center", "--course", TINY)
    ran = grader(*call, "--watch", "--isolation", "weak")
    assert ran.code == 130
    line = f"not graded: {ONE_NAME.format(colliding)}"
    assert ran.out.splitlines()[2:] == [
        line,
        "bob: graded, 2 of 2",
        "cleo: graded, 2 of 2",
        "ada: graded, 0 of 2",
        line,
        f"there is no such file or folder: {colliding}",
    ]


def test_what_arrives_is_remembered_with_the_roster_and_the_assignment(
    grader: Grader, course: Path, tmp_path: Path
) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER, "utf-8")
    place, out = folder(tmp_path / "in", doejane=CENTER), tmp_path / "out"
    opened, roster = load_course(course / "exercises"), read_roster(tmp_path / "roster.csv")
    order = Order(opened, "seed", opened.tests_of(), ("center",), isolation="weak")
    stop = Event()
    looks = arriving(place, opened, roster, stop)
    rows = grade_arrivals(out, order, looks, roster=roster, assignment="ps1")
    try:
        next(rows)
        assert grader("export", out, "--to", "canvas", "--course", course).code == 0
        assert "ps1" in (out / "canvas.csv").read_text("utf-8")
        (place / "doejane.py").unlink()
        folder(place, roebob=WRONG)
        next(rows)
    finally:
        stop.set()
        rows.close()
    told = [("doejane", "graded", "s1"), ("roebob", "graded", "s2"), ("s3", "absent", "s3")]
    assert cells(out, "student", "status", "id") == told
    with open_gradebook(out, "tiny") as book:
        assert book.roster == roster


def test_a_look_that_was_stopped_is_not_taken_for_a_whole_grading(
    grader: Grader, tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order(tiny, "seed", tiny.tests_of(), ("center",), isolation="weak")
    place, out = folder(tmp_path / "in", ada=CENTER), tmp_path / "out"
    first = take_in([place], tiny)
    both = take_in([folder(place, bob=CENTER)], tiny)
    rows = grade_arrivals(out, order, [first, both])
    next(rows)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.grading.ladder.grade_submission", stopped)
    with pytest.raises(KeyboardInterrupt):
        next(rows)
    ran = grader("export", out, "--to", "csv", "--course", TINY)
    assert (ran.code, "was stopped before its end" in ran.err) == (2, True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_threads_of_the_machine_change_nothing(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Two threads add in another order: each process that judges or is judged has one."""
    alone = "import torch\nassert torch.get_num_threads() == 1\n"
    text = f"{alone}def center(x):\n    {alone.splitlines()[1]}\n    return x - x.mean()\n"
    students = folder(tmp_path / "class", ada=text, bob=CENTER)
    for library in ("OMP", "MKL"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "2")
    torch.set_num_threads(2)
    out = tmp_path / "out"
    call = ("grade", students, "--out", out, "--course", TINY, "--jobs", jobs, "--only", "center")
    assert grader(*call).code == 0
    assert cells(out, "center") == [("2",), ("2",)]
    if jobs == 1:  # which is this process
        assert torch.get_num_threads() == 1
    torch.set_num_threads(1)
