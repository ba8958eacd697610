"""What there is once an exercise is solved: something to read, and something to look at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Grader
from tests.support.places import TINY

WRONG = "def center(x):\n    return x + x.mean()\n"
RIGHT = "def center(x):\n    return x - x.mean()\n"
THE_REST = """
import torch


def staircase(size):
    return torch.ones(size, size).tril().bool()


def weigh(scores):
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)
"""
WHY = "Why it works\nWhat remains sums to zero. It always does.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, to be worked in."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return tmp_path / "tiny" / "exercises"


def check(grader: Grader, folder: Path, text: str, name: str = "center") -> str:
    (folder / "basics.py").write_text(text, "utf-8")
    return grader("check", name, "--course", folder).out


# --- to read -------------------------------------------------------------------------------------


def test_the_first_right_answer_brings_the_reason_and_how_far_one_is(
    grader: Grader, folder: Path
) -> None:
    assert WHY not in check(grader, folder, WRONG)
    out = check(grader, folder, RIGHT)
    assert "basics: 1 of 3 exercises, 2 of 6 points; the whole course: 2 of 10 points" in out
    assert WHY in out
    assert "Try it\nCenter it twice" in out


def test_later_a_line_says_where_it_is_to_be_found(
    grader: Grader, cold_grader: Grader, folder: Path
) -> None:
    check(grader, folder, RIGHT)
    out = check(grader, folder, RIGHT)
    assert WHY not in out
    assert "grader after center" in out
    again = cold_grader("after", "center", "--course", folder)
    assert (again.code, WHY in again.out) == (0, True)


def test_what_follows_a_solution_is_kept_until_it_is_solved(
    cold_grader: Grader, folder: Path
) -> None:
    ran = cold_grader("after", "center", "--course", folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "grader: solve center first: the text to read after it would give too much away\n"
    )


def test_an_exercise_without_a_text_says_so(
    grader: Grader, cold_grader: Grader, folder: Path
) -> None:
    check(grader, folder, THE_REST, "staircase")
    ran = cold_grader("after", "staircase", "--course", folder)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no text to read after staircase" in ran.err


def test_a_text_with_an_unknown_key_is_told_with_its_file(grader: Grader, folder: Path) -> None:
    (folder / "afterwards" / "basics.toml").write_text('[center]\nbecause = "so"\n', "utf-8")
    (folder / "progress.txt").write_text("solved center\n", "utf-8")
    ran = grader("after", "center", "--course", folder)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "basics.toml" in ran.err
    assert "because" in ran.err


def test_a_text_that_cannot_be_read_takes_no_verdict_away(grader: Grader, folder: Path) -> None:
    (folder / "afterwards" / "basics.toml").write_text('[center]\nbecause = "so"\n', "utf-8")
    out = check(grader, folder, RIGHT)
    assert "✓ center" in out
    assert "cannot be shown" in out
    assert "2 of 6 points" in out


def test_a_hint_says_that_it_costs_nothing(cold_grader: Grader, folder: Path) -> None:
    assert "hints cost no points" in cold_grader("hint", "center", "--course", folder).out


# --- to look at ----------------------------------------------------------------------------------


def test_a_complete_unit_names_the_command_that_shows_it(grader: Grader, folder: Path) -> None:
    whole = RIGHT + THE_REST
    assert "grader look" not in check(grader, folder, whole)
    check(grader, folder, whole, "staircase")
    assert "To see it at work: grader look basics" in check(grader, folder, whole, "weigh")


@pytest.mark.parametrize("name", ["basics", "center"])
def test_a_look_runs_the_students_own_answers(cold_grader: Grader, folder: Path, name: str) -> None:
    (folder / "basics.py").write_text(RIGHT, "utf-8")
    ran = cold_grader("look", name, "--course", folder)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Three numbers, and what is left of them without their mean.",
        "center: yours, from basics.py line 1",
        "[-2.0, -1.0, 3.0]",
    ]


def test_a_look_at_what_is_not_written_says_what_to_write(
    cold_grader: Grader, folder: Path
) -> None:
    ran = cold_grader("look", "basics", "--course", folder)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("grader: center is not written yet")


def test_a_look_names_all_answers_that_are_not_written(cold_grader: Grader, folder: Path) -> None:
    look = folder / "afterwards" / "basics.py"
    text = look.read_text("utf-8").replace("import center", "import center, staircase")
    look.write_text(text, "utf-8")
    ran = cold_grader("look", "basics", "--course", folder)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("grader: not written yet in any saved file or notebook: center, s")


def test_a_unit_without_a_look_names_those_that_have_one(cold_grader: Grader, folder: Path) -> None:
    ran = cold_grader("look", "layers", "--course", folder)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "choose from these units: basics" in ran.err
