"""The commands, as people and programs call them."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from grader.cli.commands import MODULE_OF
from grader.grades.gradebook import open_gradebook
from grader.grading import ladder
from grader.grading.desk import Desk
from grader.intake import Submission
from grader.records import torches
from grader.records.faults import HostFault
from grader.records.grade import Grade
from grader.sandbox import jails
from grader.sandbox.jails import Warm
from tests.support.places import ROOT, TINY

SCRIPT = Path(sys.executable).with_name("grader")
HEADER = "student,submission,status,total,max,center,staircase,weigh,Projection"
BEHIND = ",late,attempts,adjustment"

Grader = Callable[..., Any]  # the fixture `grader` returns how a command ended: code, out, err


def write(path: Path, text: str) -> Path:
    """A file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the tiny course that a test may break."""
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(TINY, tmp_path / "course", ignore=ignore))


@pytest.fixture
def students(tmp_path: Path, right: str) -> Path:
    """A class: right, wrong, not begun, nothing handed in, not readable."""
    folder = tmp_path / "class"
    write(folder / "ada" / "basics.py", right.partition('"""Reference of')[0])
    write(folder / "ada" / "layers.py", '"""' + right.partition('"""Reference of')[2])
    write(folder / "bob.py", f"{right}\n\ndef center(x):\n    return x - x.sum()\n")
    shutil.copytree(TINY / "exercises", folder / "cleo")
    (folder / "dan").mkdir()
    write(folder / "eve.ipynb", "no notebook")
    return folder


def rows(out: Path) -> dict[str, list[str]]:
    """The rows of a gradebook by student, as far as they hold status and points."""
    with (out / "gradebook.csv").open(newline="", encoding="utf-8") as file:
        header, *body = csv.reader(file)
    return {row[0]: row[2 : header.index("late")] for row in body}


def contents(out: Path) -> dict[Path, bytes]:
    """All that a grading wrote."""
    return {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}


def results(out: Path) -> list[dict[str, Any]]:
    """The lines of ``results.jsonl`` without what may differ between two runs."""
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


# --- grade ---------------------------------------------------------------------------------------


def test_a_class_is_graded_into_a_gradebook(grader: Grader, students: Path, tmp_path: Path) -> None:
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", TINY)
    assert ran.code == 0
    assert (tmp_path / "out" / "gradebook.csv").read_text("utf-8").splitlines()[
        0
    ] == HEADER + BEHIND
    assert rows(tmp_path / "out") == {
        "ada": ["graded", "10", "10", "2", "1", "3", "4"],
        "bob": ["graded", "8", "10", "0", "1", "3", "4"],
        "cleo": ["graded", "0", "10", "0", "0", "0", "0"],
        "dan": ["empty", "0", "10", "0", "0", "0", "0"],
        "eve": ["unreadable", "0", "10", "0", "0", "0", "0"],
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "grades.db",
        "gradebook.csv",
        "results.jsonl",
    }
    assert ran.err == ""
    for name in ("ada", "bob", "cleo", "dan", "eve", "of 10"):
        assert name in ran.out
    assert "not a notebook" in ran.out


def test_results_hold_every_test_of_every_exercise(
    grader: Grader, students: Path, tmp_path: Path, desk: Desk
) -> None:
    grader("grade", students / "bob.py", "--out", tmp_path / "out", "--course", TINY)
    (line,) = (tmp_path / "out" / "results.jsonl").read_bytes().splitlines()
    graded = Grade.from_json(line)
    assert (graded.student, graded.submission, graded.status) == ("bob", "bob", "graded")
    assert (graded.seed, graded.course) == ("tiny-hidden", desk.fingerprint)
    assert "process" in graded.isolation
    assert graded.seconds > 0
    for result in graded.exercises:
        named = {test.name for test in result.tests} - {"exists", "signature", "operations"}
        assert named == {test.name for test in desk.tests[result.name]}


def test_grading_twice_gives_the_same_bytes(grader: Grader, students: Path, tmp_path: Path) -> None:
    for out in ("first", "second", "second"):
        grader("grade", students, "--out", tmp_path / out, "--course", TINY, "--jobs", 1)
    first, second = tmp_path / "first", tmp_path / "second"
    assert (first / "gradebook.csv").read_bytes() == (second / "gradebook.csv").read_bytes()
    assert results(first) == results(second)


def test_two_processes_in_a_shell_give_the_grades_of_one(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    grader("grade", students, "--out", one, "--course", TINY, "--jobs", 1)
    ran = subprocess.run(
        [SCRIPT, "grade", students, "--out", two, "--course", TINY, "--jobs", "2"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout
    assert (one / "gradebook.csv").read_bytes() == (two / "gradebook.csv").read_bytes()
    assert results(one) == results(two)


def test_another_seed_gives_other_inputs_and_the_same_grades(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    for seed in ("one", "two"):
        out = tmp_path / seed
        grader("grade", students, "--out", out, "--course", TINY, "--seed", seed)
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    told = [
        [
            test["message"]
            for grade in results(tmp_path / seed)
            for exercise in grade["exercises"]
            for test in exercise["tests"]
            if test["name"] == "test_center_agrees_with_the_reference" and test["message"]
        ]
        for seed in ("one", "two")
    ]
    assert told[0]
    assert told[0] != told[1]
    assert {grade["seed"] for grade in results(tmp_path / "one")} == {"one"}


def test_regrading_replaces_grades(
    grader: Grader, students: Path, tmp_path: Path, right: str
) -> None:
    call = ("grade", students, "--out", tmp_path / "out", "--course", TINY)
    grader(*call)
    write(students / "bob.py", right)
    assert grader(*call).code == 0
    assert rows(tmp_path / "out")["bob"][:2] == ["graded", "10"]


def test_a_run_that_would_lose_a_students_grade_is_refused_unless_told(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    call = ("grade", students, "--out", tmp_path / "out", "--course", TINY)
    grader(*call)
    shutil.rmtree(students / "cleo")
    assert "cleo" in one_line(grader(*call))
    assert "cleo" in rows(tmp_path / "out")
    assert grader(*call, "--replace").code == 0
    assert "cleo" not in rows(tmp_path / "out")


def test_a_run_that_would_lose_exercises_is_refused_unless_told(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    call = ("grade", students, "--out", tmp_path / "out", "--course", TINY)
    grader(*call)
    assert "2 exercises" in one_line(grader(*call, "--only", "layers", "--only", "center"))
    assert rows(tmp_path / "out")["ada"][:2] == ["graded", "10"]
    assert grader(*call, "--only", "layers", "--replace").code == 0


def test_only_some_exercises_can_be_graded(grader: Grader, students: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ("grade", students, "--out", out, "--course", TINY)
    assert grader(*call, "--only", "layers", "--only", "center").code == 0
    header = (out / "gradebook.csv").read_text("utf-8").splitlines()[0]
    assert header == "student,submission,status,total,max,center,Projection" + BEHIND
    assert rows(out)["ada"] == ["graded", "6", "6", "2", "4"]


def test_grading_one_unit_reads_no_other_units_tests(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    for folder in ("exercises/checks", "solutions/graders"):
        (tmp_path / "tiny" / folder / "test_layers.py").write_text("cannot be imported", "utf-8")
    call = ("grade", students, "--course", tmp_path / "tiny")
    assert grader(*call, "--out", tmp_path / "one", "--only", "basics").code == 0
    assert rows(tmp_path / "one")["ada"][:2] == ["graded", "6"]
    assert grader(*call, "--out", tmp_path / "all").code == 2


def test_grades_for_programs_are_json_and_nothing_else(
    grader: Grader, students: Path, tmp_path: Path
) -> None:
    ran = grader(
        "grade",
        students / "ada",
        students / "bob.py",
        "--out",
        tmp_path / "out",
        "--course",
        TINY,
        "--json",
    )
    assert [(entry["student"], entry["total"]) for entry in json.loads(ran.out)] == [
        ("ada", 10.0),
        ("bob", 8.0),
    ]


def test_a_name_is_never_markup_nor_a_formula_nor_a_command_to_the_terminal(
    grader: Grader, tmp_path: Path, right: str
) -> None:
    folder = tmp_path / "class"
    no_text = os.fsdecode(b"zo\xeb")
    for name in ("=1+1", "+1", "-1", "@x", "[red]ada", "bob\x1b[31m", no_text):
        write(folder / f"{name}.py", f"{right}\n\ndef center(x):\n    return x\n")
    ran = grader("grade", folder, "--out", tmp_path / "out", "--course", TINY, "--only", "center")
    assert ran.code == 0
    assert {"'=1+1", "'+1", "'-1", "'@x"} < rows(tmp_path / "out").keys()
    assert len(rows(tmp_path / "out")) == 7
    assert "[red]ada" in ran.out
    assert "\x1b" not in ran.out


def test_a_submissions_message_is_never_markup(grader: Grader, tmp_path: Path, right: str) -> None:
    text = f"{right}\n\ndef center(x):\n    raise ValueError('[bold]\\x1b[2J[/nothing]')\n"
    path = write(tmp_path / "ada.py", text)
    ran = grader("check", "center", "--in", path, "--course", TINY)
    assert ran.code == 1
    assert "[bold]" in ran.out
    assert "[/nothing]" in ran.out
    assert "\x1b" not in ran.out


# --- faults of ours ------------------------------------------------------------------------------


def test_a_fault_of_the_grader_is_exit_code_3_and_an_empty_cell(
    grader: Grader, students: Path, course: Path, tmp_path: Path
) -> None:
    path = course / "solutions" / "graders" / "test_layers.py"
    text = path.read_text("utf-8").replace("student.Projection(4, 5)(make", "broken(make")
    path.write_text(text, "utf-8")
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", course)
    assert ran.code == 3
    assert rows(tmp_path / "out")["ada"] == ["grader_error", "", "10", "", "", "", ""]
    assert rows(tmp_path / "out")["cleo"] == ["graded", "0", "10", "0", "0", "0", "0"]
    assert re.search(
        r"ada: Projection/test_projection_has_the_shape_of_the_contract: \S+test_layers\.py:\d+: "
        "NameError: name 'broken' is not defined",
        ran.out,
    )


def test_a_jail_that_cannot_be_made_is_a_fault_of_ours(
    grader: Grader, students: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork(*_: object) -> None:
        raise HostFault("the warm process has ended")

    monkeypatch.setattr(Warm, "open", fork)
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", TINY)
    assert ran.code == 3
    assert rows(tmp_path / "out")["ada"] == ["grader_error", "", "10", "", "", "", ""]
    assert "the warm process has ended" in ran.out


def test_what_was_graded_before_an_interruption_is_kept(
    grader: Grader, students: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = ladder.grade_submission

    def until_bob(desk: Desk, submission: Submission) -> Grade:
        if submission.student == "bob":
            raise KeyboardInterrupt
        return really(desk, submission)

    monkeypatch.setattr(ladder, "grade_submission", until_bob)
    call = ("grade", students, "--out", tmp_path / "out", "--course", TINY, "--jobs", 1)
    ran = grader(*call)
    assert ran.code == 130
    assert "kept" in ran.err
    with open_gradebook(tmp_path / "out", "tiny") as book:
        assert [(grade.student, grade.total) for grade in book.grades()] == [("ada", 10)]


# --- wrong calls ---------------------------------------------------------------------------------


def one_line(ran: Any) -> str:
    """What a wrong call says: one line, on stderr, and exit code 2."""
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    return str(ran.err)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--only", "centre"], "did you mean center"),
        (["--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--jobs", "-1"], "--jobs must be at least 1, got -1"),
        (["--course", "/no/such/course"], "there is no course.toml in /no/such/course"),
    ],
)
def test_a_wrong_option_is_told_in_one_line_and_writes_nothing(
    grader: Grader, students: Path, tmp_path: Path, options: list[str], told: str
) -> None:
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", TINY, *options)
    assert told in one_line(ran)
    assert not (tmp_path / "out").exists()


def test_a_path_that_is_not_there_is_told_in_one_line(grader: Grader, tmp_path: Path) -> None:
    ran = grader("grade", tmp_path / "nobody", "--out", tmp_path / "out", "--course", TINY)
    assert "nobody" in one_line(ran)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_an_out_that_is_a_file_is_told_in_one_line(
    grader: Grader, students: Path, tmp_path: Path, out: str
) -> None:
    write(tmp_path / "file", "mine")
    assert "file" in one_line(grader("grade", students, "--out", tmp_path / out, "--course", TINY))
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_an_out_of_another_course_is_told_in_one_line_and_left_alone(
    grader: Grader, students: Path, course: Path, tmp_path: Path
) -> None:
    path = course / "exercises" / "course.toml"
    path.write_text(path.read_text("utf-8").replace('name = "tiny"', 'name = "other"'), "utf-8")
    out = tmp_path / "out"
    assert grader("grade", students, "--out", out, "--course", TINY).code == 0
    before = contents(out)
    told = one_line(grader("grade", students, "--out", out, "--course", course))
    assert "'tiny'" in told
    assert "'other'" in told
    assert contents(out) == before


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("exercises/course.toml", "points = 4", "pionts = 4", r"course\.toml:\d+: .*pionts"),
        ("exercises/course.toml", "points = 4", "points = = 4", r"toml:\d+: not valid TOML"),
        ("solutions/basics.py", "def center", "def centre", r"basics\.py does not define center"),
        ("solutions/layers.py", "nn.Module", "object", "Projection"),
        ("solutions/layers.py", "import Tensor, nn", "import Tensor, nm", r"layers\.py"),
        ("solutions/graders/test_layers.py", '"Projection"', '"Project"', "'Project'"),
    ],
    ids=[
        "a key",
        "the syntax",
        "a missing reference",
        "a reference of the wrong kind",
        "a reference that cannot be imported",
        "an unknown exercise",
    ],
)
def test_a_mistake_in_the_course_is_told_in_one_line_and_writes_nothing(
    grader: Grader,
    students: Path,
    course: Path,
    tmp_path: Path,
    file: str,
    before: str,
    after: str,
    told: str,
) -> None:
    path = course / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", course)
    assert re.search(told, one_line(ran))
    assert not (tmp_path / "out").exists()


def test_a_grader_that_cannot_be_imported_is_shown_and_nothing_is_written(
    grader: Grader, students: Path, course: Path, tmp_path: Path
) -> None:
    path = course / "solutions" / "graders" / "test_layers.py"
    path.write_text("import pytset\n" + path.read_text("utf-8"), "utf-8")
    ran = grader("grade", students, "--out", tmp_path / "out", "--course", course)
    assert ran.code == 2
    assert "test_layers.py" in ran.err
    assert "No module named 'pytset'" in ran.err
    assert "grader/cli/" not in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("missing", "told"),
    [("solutions", "only instructors have it"), ("solutions/seed", "--seed")],
)
def test_grading_without_the_instructors_part_says_what_is_missing(
    grader: Grader, students: Path, course: Path, tmp_path: Path, missing: str, told: str
) -> None:
    path = course / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert told in one_line(
        grader("grade", students, "--out", tmp_path / "out", "--course", course)
    )


def test_without_a_course_the_call_says_how_to_name_one(
    grader: Grader, students: Path, nowhere: None
) -> None:
    assert "--course DIR" in one_line(grader("grade", students, "--out", "out"))
    assert "--course DIR" in one_line(grader("check"))


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (["--out", "out"], "which submissions?"),
        (["x"], "where should the gradebook go?"),
        (["--again"], "where should the gradebook go?"),
        (["x", "--again", "--out", "out"], "leave out PATH"),
        (["x", "--again", "--watch", "--out", "out"], "exclude one another"),
        (["x.zip", "--watch", "--out", "out"], "--watch takes one folder"),
        (["x", "--out", "out", "--only", "center", "--assignment", "one"], "exclude one another"),
        (["x", "--out", "out", "--assignment", "one"], "course.toml names none"),
    ],
)
def test_a_call_to_grade_that_makes_no_sense_is_one_line(
    grader: Grader, call: list[str], answer: str
) -> None:
    assert answer in one_line(grader("grade", *call, "--course", TINY))


@pytest.mark.parametrize("call", [["grade", "x", "--nonsense"], ["nonsense"]])
def test_a_call_that_no_command_understands_is_exit_code_2(grader: Grader, call: list[str]) -> None:
    ran = grader(*call)
    assert ran.code == 2
    assert ran.out == ""
    assert "Error" in ran.err


# --- check ---------------------------------------------------------------------------------------


@pytest.fixture
def answers(tmp_path: Path, right: str) -> Path:
    """A student's folder: one wrong, one not begun."""
    folder = tmp_path / "answers"
    wrong = "\n\ndef center(x):\n    return x - x.sum()\n"
    write(folder / "basics.py", right.partition('"""Reference of')[0] + wrong)
    shutil.copy(TINY / "exercises" / "layers.py", folder / "layers.py")
    return folder


def test_right_answers_are_exit_code_0(grader: Grader, students: Path) -> None:
    ran = grader("check", "--in", students / "ada", "--course", TINY)
    assert ran.code == 0
    assert "4 of 4 pass" in ran.out
    assert "next:" not in ran.out


def test_wrong_answers_are_exit_code_1_with_what_is_wrong_and_what_is_next(
    grader: Grader, answers: Path
) -> None:
    ran = grader("check", "--in", answers, "--course", TINY)
    assert ran.code == 1
    assert "2 of 4 pass" in ran.out
    assert "1, 2, 6 become -2, -1, 3" in ran.out
    assert "expected" in ran.out
    assert "next: center, in basics.py" in ran.out


def test_only_what_is_named_is_checked(grader: Grader, answers: Path) -> None:
    right_one = grader("check", "staircase", "--in", answers, "--course", TINY)
    assert right_one.code == 0
    assert "center" not in right_one.out
    assert "True on and below the diagonal" in right_one.out
    unit = grader("check", "basics", "--in", answers, "--course", TINY)
    assert unit.code == 1
    assert "Projection" not in unit.out


@pytest.mark.parametrize("name", ["center", "weigh", "Projection"])
def test_a_stub_that_is_asked_for_says_what_to_do(
    grader: Grader, students: Path, name: str
) -> None:
    ran = grader("check", name, "--in", students / "cleo", "--course", TINY)
    assert ran.code == 1
    assert "still the stub" in ran.out


def test_the_courses_own_folder_is_checked_by_default(
    grader: Grader, course: Path, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "grader.course.course.__file__", str(course / "grader" / "course" / "course.py")
    )
    write(course / "exercises" / "basics.py", right.partition('"""Reference of')[0])
    monkeypatch.chdir(course / "exercises" / "checks")
    ran = grader("check", "basics")
    assert ran.code == 0
    assert "3 of 3 pass" in ran.out


def test_checks_for_programs_are_json_and_nothing_else(grader: Grader, answers: Path) -> None:
    ran = grader("check", "--in", answers, "--course", TINY, "--json")
    assert ran.code == 1
    solved = {
        entry["name"]: all(test["status"] == "passed" for test in entry["tests"])
        for entry in json.loads(ran.out)
    }
    assert solved == {"center": False, "staircase": True, "weigh": True, "Projection": False}


def test_a_check_runs_no_hidden_test(grader: Grader, answers: Path) -> None:
    ran = grader("check", "--in", answers, "--course", TINY, "--json")
    tests = [test for entry in json.loads(ran.out) for test in entry["tests"]]
    assert not any(test["hidden"] for test in tests)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (["centre"], "did you mean center"),
        (["--in", "/no/such/folder"], "/no/such/folder"),
        (["--in", "empty"], "no .py file and no notebook"),
    ],
)
def test_a_check_that_cannot_be_done_is_told_in_one_line(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: list[str], told: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert told in one_line(grader("check", *call, "--course", TINY))


def test_a_broken_check_is_exit_code_3(grader: Grader, course: Path, students: Path) -> None:
    path = course / "exercises" / "checks" / "test_layers.py"
    path.write_text(path.read_text("utf-8").replace("(make.normal", "(mkae.normal"), "utf-8")
    ran = grader("check", "--in", students / "ada", "--course", course)
    assert ran.code == 3


# --- the rest ------------------------------------------------------------------------------------


def test_doctor_lists_versions_the_course_and_every_layer(
    grader: Grader, warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jails, "Warm", lambda: nullcontext(warm))
    ran = grader("doctor", "--course", TINY, "--json")
    found = {finding["name"]: finding for finding in json.loads(ran.out)}
    assert {"python", "torch", "tiny", "solutions", "process", "rlimits"} <= found.keys()
    assert ran.code == (1 if "bad" in {finding["state"] for finding in found.values()} else 0)
    assert found["process"]["state"] == "well"


def test_a_torch_that_was_never_tried_is_named_by_doctor_and_beside_the_grades(
    grader: Grader, monkeypatch: pytest.MonkeyPatch, students: Path, tmp_path: Path
) -> None:
    def words() -> tuple[str, str, str]:
        found = {one["name"]: one for one in json.loads(grader("doctor", "--json").out)}
        assert found["torch"]["state"] == "well"
        call = ("--only", "center", "--fresh", "--course", TINY)
        table = grader("grade", students, "--out", tmp_path / "out", *call).out
        return found["torch"]["text"], table, (tmp_path / "out" / "report.html").read_text("utf-8")

    here = metadata.version("torch").partition("+")[0]
    monkeypatch.setattr(torches, "TRIED", (here,))
    assert not [text for text in words() if re.search("untried|never tried", text)]

    monkeypatch.setattr(torches, "TRIED", ("1.0",))
    doctors, *others = words()
    assert "untried, so marks may differ" in doctors
    for text in others:
        assert f"graded with torch {here}, with which this kit was never tried" in text


def test_the_page_on_torch_lists_the_versions_with_which_the_kit_was_tried() -> None:
    text = (ROOT / "docs" / "operations" / "torch.md").read_text("utf-8")
    assert tuple(re.findall(r"^\| (\d\S+) ", text, re.M)) == torches.TRIED


def test_doctor_says_what_is_missing_instead_of_failing(
    grader: Grader, nowhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Warm:
        raise HostFault("no process could be started")

    monkeypatch.setattr(jails, "Warm", broken)
    ran = grader("doctor")
    assert ran.code == 1
    assert "no process could be started" in ran.out
    assert "there is no course.toml here" in ran.out.replace("\n", " ")


GROUPS = {"canvas", "release", "new", "host"}  # of commands, which have examples of their own
COMMANDS = [name for name in MODULE_OF if name not in GROUPS]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(grader: Grader, command: str) -> None:
    ran = grader(command, "--help")
    assert ran.code == 0
    assert re.search(rf"Example: grader {command}\b", ran.out)
    assert grader(command, "-h").out == ran.out


def test_help_lists_every_command_and_the_version_is_told(grader: Grader) -> None:
    ran = grader("--help")
    assert ran.code == 0
    assert all(command in ran.out for command in COMMANDS)
    versions = r"attention-grader {0}\nPython {0}\ntorch {0}\S*\ncourse self-attention\n"
    assert re.fullmatch(versions.format(r"\d+\.\d+\.\d+"), grader("--version").out)


COLOUR = re.compile(r"\x1b\[[\d;]*(?:3\d|9\d|38)[\d;]*m")


def test_there_are_colours_only_where_they_are_wanted(
    grader: Grader, answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("check", "--in", answers, "--course", TINY)
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    assert "\x1b" not in grader(*call).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert COLOUR.search(grader(*call).out)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(grader(*call).out)


def test_the_command_is_installed_and_quick_to_say_what_it_is() -> None:
    ran = subprocess.run(
        [SCRIPT, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
    )
    assert ran.stdout.startswith("attention-grader ")
    assert not re.search(r"\| +torch$", ran.stderr, re.MULTILINE)
