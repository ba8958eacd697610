"""What shows why: `grader try`, and the same in a notebook. Nothing needs to be solved for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import grader as kit
from grader import mine
from grader.course.collection import rules_left_out
from grader.course.course import NAMED, Course, load_course
from grader.records.faults import CallError
from grader.release.courses import copy_exercises
from grader.release.notebooks import cells_of
from grader.student.tutor import Tutor
from tests.conftest import Grader
from tests.support.places import TINY
from tests.support.watching import Desk, play, reading

SPREAD = '''\
"""How far three numbers lie apart.

Their mean is of no account.
"""

import torch

from grader.mine import yours

center = yours("center", lambda x: x - torch.mean(x))
print(center(torch.tensor([1.0, 2.0, 6.0])).tolist())
'''
ALL_OF_IT = '"""All figures of this unit."""\n\nprint("no answer is needed")\n'
RIGHT = "def center(x):\n    return x - x.mean()\n"
OTHER = "def center(x):\n    return x * 0\n"
SHOWN = [
    "How far three numbers lie apart.",
    "",
    "Their mean is of no account.",
    "",
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A copy of the tiny course with two experiments: one of `center`, one of its unit."""
    shutil.copytree(TINY, tmp_path / "tiny")
    folder = tmp_path / "tiny" / "exercises"
    (folder / "experiments").mkdir()
    (folder / "experiments" / "spread.py").write_text(SPREAD, "utf-8")
    (folder / "experiments" / "basics.py").write_text(ALL_OF_IT, "utf-8")
    file = folder / "course.toml"
    told = file.read_text("utf-8").replace(
        'title = "Subtract the mean"\n', 'title = "Subtract the mean"\nexperiments = ["spread"]\n'
    )
    file.write_text(told, "utf-8")
    (folder / "progress.txt").touch()
    yield folder
    mine.forget()


def tried(grader: Grader, folder: Path, name: str) -> list[str]:
    ran = grader("try", name, "--course", folder)
    assert ran.code == 0, ran.err
    return ran.out.splitlines()


def solve(folder: Path, text: str = RIGHT) -> None:
    (folder / "basics.py").write_text(text, "utf-8")
    (folder / "progress.txt").write_text("solved center\n", "utf-8")


# --- from a terminal -----------------------------------------------------------------------------


def test_without_a_name_all_experiments_are_listed(cold_grader: Grader, folder: Path) -> None:
    ran = cold_grader("try", "--course", folder)
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "",
            "basics: Functions of a tensor and of a number",
            "  spread               How far three numbers lie apart.",
            "  basics               All figures of this unit.",
        ],
    )


@pytest.mark.parametrize("name", ["spread", "center"], ids=["experiment", "exercise"])
def test_with_nothing_solved_another_function_stands_in_and_is_labelled(
    cold_grader: Grader, folder: Path, name: str
) -> None:
    assert tried(cold_grader, folder, name) == [
        *SHOWN,
        "center: torch's (until you have solved it)",
        "[-2.0, -1.0, 3.0]",
    ]


def test_what_is_solved_takes_its_place(cold_grader: Grader, folder: Path) -> None:
    solve(folder, OTHER)
    assert tried(cold_grader, folder, "spread") == [
        *SHOWN,
        "center: yours, from basics.py line 1",
        "[0.0, 0.0, 0.0]",
    ]


def test_what_fails_again_does_not(cold_grader: Grader, folder: Path) -> None:
    solve(folder, OTHER)
    (folder / ".checked.txt").write_text("failed center\n", "utf-8")
    assert tried(cold_grader, folder, "spread")[-1] == "[-2.0, -1.0, 3.0]"


def test_what_is_solved_and_cannot_be_run_any_more_says_why(
    cold_grader: Grader, folder: Path
) -> None:
    solve(folder, "def center(x:\n")
    *_, told, shown = tried(cold_grader, folder, "spread")
    assert told.startswith("center: torch's (center: basics.py line 1 is not valid Python")
    assert shown == "[-2.0, -1.0, 3.0]"


def test_a_unit_may_have_an_experiment_of_its_name(cold_grader: Grader, folder: Path) -> None:
    assert tried(cold_grader, folder, "basics")[-1] == "no answer is needed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("spraed", "there is no experiment spraed; did you mean spread?; all of them: grader try"),
        ("weigh", "there is no experiment weigh; all of them: grader try"),
        ("../basics", "there is no experiment ../basics"),
    ],
)
def test_a_name_that_has_no_experiment_is_one_line(
    cold_grader: Grader, folder: Path, name: str, said: str
) -> None:
    ran = cold_grader("try", name, "--course", folder)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_an_answer_that_raises_in_an_experiment_is_named_by_its_line(
    cold_grader: Grader, folder: Path
) -> None:
    solve(folder, "def center(x):\n    return x.nonsense\n")
    ran = cold_grader("try", "spread", "--course", folder)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "the experiment ended at basics.py line 2: AttributeError" in ran.err


# --- in a notebook -------------------------------------------------------------------------------


@pytest.fixture
def course(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    monkeypatch.setenv(NAMED, str(folder))
    return load_course(folder)


def test_a_notebook_runs_the_same_experiment(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    kit.experiment("spread")
    assert capsys.readouterr().out.splitlines()[-1] == "[-2.0, -1.0, 3.0]"
    with pytest.raises(CallError, match="there is no experiment nosuch"):
        kit.experiment("nosuch")


def test_a_notebooks_cells_come_below_the_statement_and_at_the_units_end(course: Course) -> None:
    unit = course.units[0]
    cells = cells_of(course, unit, rules_left_out(course))
    names = [cell["id"] for cell in cells]
    place = names.index("center-why")
    assert names[place - 1 : place + 2] == ["center-statement", "center-why", "center-answer"]
    text = "".join(cells[place]["source"])
    assert "# How far three numbers lie apart." in text
    assert 'grader.experiment("spread")' in text
    assert names.index("basics-try") < names.index("basics-about")
    # Under another name there is no course beside the notebook.
    elsewhere = {cell["id"] for cell in cells_of(course, unit, rules_left_out(course), "kit")}
    assert elsewhere.isdisjoint({"center-why", "basics-try"})


# --- where a statement is shown ------------------------------------------------------------------

LINE = "See why: grader try spread"


@pytest.mark.parametrize("size", [(80, 24), (120, 60)], ids=["small", "tall"])
def test_watch_names_the_experiment_below_the_statement(
    course: Course, size: tuple[int, int]
) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees(LINE)
        await desk.press("n")
        await desk.sees("Build a square of booleans")
        assert "See why" not in desk.text

    play(course, scenario, start="center", size=size)


def test_plain_watch_names_it_too(course: Course) -> None:
    with reading(course) as reader:
        reader.reads(LINE)


def test_an_assistant_reads_it_with_the_statement(course: Course) -> None:
    tools = Tutor(course)
    assert tools.statement("center").endswith(f"\n\n{LINE}")
    assert "See why" not in tools.statement("staircase")
    tools.close()


# --- what comes along ----------------------------------------------------------------------------


def test_a_bundle_holds_the_experiments_that_its_course_names(
    course: Course, tmp_path: Path
) -> None:
    course.experiment_file("leftover").write_text("", "utf-8")
    copy_exercises(course, tmp_path / "bundle")
    found = sorted(path.name for path in (tmp_path / "bundle" / "experiments").iterdir())
    assert found == ["basics.py", "spread.py"]


def test_an_experiment_whose_name_is_no_file_stem_is_an_authors_slip(folder: Path) -> None:
    file = folder / "course.toml"
    file.write_text(file.read_text("utf-8").replace('["spread"]', '["../spread"]'), "utf-8")
    with pytest.raises(CallError, match=r"'\.\./spread' is not a file stem"):
        load_course(folder)
