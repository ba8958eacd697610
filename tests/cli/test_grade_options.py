"""The options of `grader grade` in each of its modes: each works, or is refused in one line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer

from grader.cli import app, commands
from tests.cli.test_cli import one_line
from tests.cli.test_grade_roads import CENTER, WRONG, cells
from tests.conftest import Grader
from tests.support.gradebooks import folder
from tests.support.places import TINY

ROSTER = "roster.csv"
TIMES = "times.csv"
# How each option is given, and in which modes it is refused with which words.
OPTIONS: dict[str, tuple[Sequence[str], dict[str, str]]] = {
    "paths": (["class"], {"again": "leave out PATH"}),
    "out": (["--out", "file"], {}),
    "roster": (
        ["--roster", ROSTER],
        {"add": "and roster: leave out --roster", "again": "--again keeps DIR's roster"},
    ),
    "times": (
        ["--times", TIMES],
        {"again": "--again keeps DIR's times"},
    ),
    "dry_run": (
        ["--dry-run"],
        {
            "add": "exclude one another",
            "again": "exclude one another",
            "watch": "exclude one another",
        },
    ),
    "add": (
        ["--add"],
        dict.fromkeys(("again", "watch", "dry_run"), "exclude one another"),
    ),
    "again": (
        ["--again"],
        {
            "add": "exclude one another",
            "watch": "exclude one another",
            "dry_run": "exclude one another",
        },
    ),
    "watch": (
        ["--watch"],
        {
            "add": "exclude one another",
            "again": "exclude one another",
            "dry_run": "exclude one another",
        },
    ),
    "jobs": (["--jobs", "1"], {"watch": "leave out --jobs"}),
    "cluster": (["--cluster", "local:1"], {"watch": "--cluster excludes --jobs and"}),
    "seed": (["--seed", "another"], {}),
    "only": (
        ["--only", "center"],
        {"add": "leave out --only", "again": "--only, --assignment and --again exclude"},
    ),
    "assignment": (
        ["--assignment", "ps1"],
        {"add": "leave out --assignment", "again": "--only, --assignment and --again exclude"},
    ),
    "replace": (["--replace"], {"add": "--add deletes no grades", "again": "leave out --replace"}),
    "isolation": (["--isolation", "weak"], {}),
    "device": (["--device", "cuda", "--isolation", "weak"], {}),
    "fresh": (["--fresh"], {}),
    "pages": (["--pages"], {"watch": "`grader report DIR` writes them"}),
    "no_pages": (["--no-pages"], {}),
    "course": (["--course", "tiny"], {}),
    "quiet": (["--quiet"], {"watch": "print for people", "dry_run": "print for people"}),
    "as_json": (["--json"], {"watch": "print for people", "dry_run": "print for people"}),
    "json_lines": (
        ["--json-lines"],
        {"watch": "print for people", "dry_run": "print for people"},
    ),
}
# A call in each mode, and what ends it once its options are accepted: nothing is graded.
ENDS = {
    "batch": (["class", "--out", "file"], "file is a file, but grades need a folder"),
    "add": (["class", "--add", "--out", "file"], "there is no gradebook in file"),
    "again": (["--again", "--out", "file"], "there is no gradebook in file"),
    "watch": (["class", "--watch", "--out", "file"], "file is a file, but grades need a folder"),
    "dry_run": (["empty", "--dry-run"], "no submissions in empty"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs beside a class, its roster, a course with an assignment, and a file."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY, "tiny")
    with Path("tiny/exercises/course.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[assignment]]\nname = "ps1"\nexercises = ["center"]\n')
    folder(tmp_path / "class", ada=CENTER)
    Path("empty").mkdir()
    Path("file").touch()
    Path(ROSTER).write_text("id,name\nada,Ada\n", "utf-8")
    Path(TIMES).write_text("student,time\nada,2026-12-01 23:59Z\n", "utf-8")


def test_every_option_has_its_place_in_the_table() -> None:
    commands.load(["grade"])
    command = typer.main.get_group(app).commands["grade"]
    assert {one.name for one in command.params} == OPTIONS.keys() - {"no_pages"}


CASES = [
    (mode, option)
    for mode in ENDS
    for option, (_, refused) in OPTIONS.items()
    if mode in refused or option not in (*ENDS, "paths")  # those are parts of the calls
]


@pytest.mark.parametrize(("mode", "option"), CASES)
def test_an_option_works_in_a_mode_or_is_refused(grader: Grader, mode: str, option: str) -> None:
    (call, end), (given, refused) = ENDS[mode], OPTIONS[option]
    course = [] if option == "course" else ["--course", "tiny"]
    told = one_line(grader("grade", *call, *given, *course))
    assert refused.get(mode, end) in told


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["--only", "center"], ["--assignment", "ps1"]),
        (["--jobs", "1"], ["--cluster", "local:1"]),
        (["--quiet"], ["--json"]),
        (["--quiet"], ["--json-lines"]),
        (["--json"], ["--json-lines"]),
        (["--device", "cuda"], ["--isolation", "strong"]),
    ],
)
def test_two_options_that_do_not_go_together_are_refused(
    grader: Grader, first: list[str], second: list[str]
) -> None:
    one_line(grader("grade", "class", "--out", "out", *first, *second, "--course", "tiny"))
    assert not Path("out").exists()


def test_a_dry_run_refuses_a_name_that_the_grading_would_refuse(grader: Grader) -> None:
    call = ("grade", "class", "--dry-run", "--course", "tiny")
    assert "did you mean center" in one_line(grader(*call, "--only", "centre"))
    assert "'ps2'" in one_line(grader(*call, "--assignment", "ps2"))


# --- what arrives: the options that decide grades ------------------------------------------------


@pytest.fixture
def one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` looks once, and is stopped."""

    def stopped(*_: object) -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("grader.intake.arrivals.saves", stopped)


CALL = ("grade", "class", "--out", "out", "--course", "tiny")


@pytest.mark.parametrize(
    "option", [["--fresh"], ["--seed", "another"], ["--isolation", "weak"], ["course"]]
)
def test_what_decides_a_grade_is_graded_again_by_watch_too(
    grader: Grader, one_look: None, option: list[str]
) -> None:
    assert grader(*CALL, "--only", "center").code == 0
    ran = grader(*CALL, "--only", "center", "--watch")
    assert (ran.code, "ada: graded" in ran.out) == (130, False)
    if option == ["course"]:
        with Path("tiny/solutions/graders/test_basics.py").open("a", encoding="utf-8") as file:
            file.write("\n# mended\n")
        option = []
    ran = grader(*CALL, "--only", "center", "--watch", *option)
    assert (ran.code, "ada: graded, 2 of 2" in ran.out) == (130, True)


def test_watch_loses_exercises_only_with_replace(grader: Grader, one_look: None) -> None:
    folder(Path("class"), bob=WRONG)
    assert grader(*CALL, "--only", "center", "--only", "weigh").code == 0
    before = Path("out/gradebook.csv").read_bytes()
    ran = grader(*CALL, "--only", "center", "--watch")
    assert (ran.code, "1 exercise that this run leaves out" in ran.err) == (2, True)
    assert Path("out/gradebook.csv").read_bytes() == before
    Path("class/bob.py").unlink()
    assert grader(*CALL, "--only", "center", "--watch", "--replace").code == 130
    assert [row[0] for row in cells(Path("out"), "student")] == ["ada", "bob"]
    assert cells(Path("out"), "center") == [("2",), ("0",)]
