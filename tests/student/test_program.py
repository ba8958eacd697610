"""What a check leaves out of a student's file, and a run of all of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Grader
from tests.support.places import TINY

RIGHT = "def center(x):\n    return x - x.mean()\n"
Say = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, to be worked in."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return tmp_path / "tiny" / "exercises"


@pytest.fixture
def said(grader: Grader, folder: Path) -> Say:
    """What a check of ``center`` says of a file with this text."""

    def check(text: str) -> str:
        (folder / "basics.py").write_text(text, "utf-8")
        return str(grader("check", "center", "--course", folder).out)

    return check


# --- what a check leaves out ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["print(center)", "for n in range(3): print(n)", "if True:\n    print(1)"],
    ids=["a call", "a loop", "under if"],
)
def test_a_check_says_which_line_it_does_not_run(said: Say, line: str) -> None:
    told = said(f"{RIGHT}\n{line}\n")
    assert "a check runs definitions only, and not line 4 of basics.py" in told
    assert "grader run basics" in told


@pytest.mark.parametrize(
    "line",
    [
        '"""About this unit."""',
        "if __name__ == '__main__':\n    print(1)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
        "SIZE = len('abc')",
        "",
    ],
    ids=["a docstring", "a main block", "imports", "a constant", "nothing"],
)
def test_what_does_nothing_is_not_told(said: Say, line: str) -> None:
    assert "definitions only" not in said(f"{RIGHT}\n{line}\n")


def test_a_name_that_is_defined_twice_is_told_with_the_one_that_counts(said: Say) -> None:
    other, stub = (
        f"def center(x):\n    {body}\n" for body in ("return x", "raise NotImplementedError")
    )
    told = "basics.py defines center in lines 1 and 4: the last definition counts"
    assert told in said(f"{other}\n{RIGHT}")
    assert "defines center" not in said(f"{stub}\n{RIGHT}")


def test_a_file_that_is_gone_is_told(grader: Grader, folder: Path) -> None:
    (folder / "basics.py").unlink()
    told = grader("check", "center", "--course", folder).out
    assert "basics.py does not exist: grader reset basics brings back its stubs" in told


def test_what_is_no_python_is_shown_with_pythons_own_words(said: Say) -> None:
    lines = said("def center(x):\n    y = (x, 1\n    return y\n").splitlines()
    at = next(n for n, line in enumerate(lines) if "basics.py line 2 is not valid Python" in line)
    assert "'(' was never closed" in lines[at]
    assert lines[at + 1].strip() == "y = (x, 1"
    assert lines[at + 2].index("^") - lines[at + 1].index("y") == 4


def test_a_breakpoint_points_to_the_debugger(said: Say) -> None:
    told = said("def center(x):\n    breakpoint()\n    return x - x.mean()\n")
    assert "basics.py line 2 stops for a debugger: use grader check NAME --pdb instead" in told


def test_input_gets_one_sentence(said: Say) -> None:
    told = said("def center(x):\n    return x - float(input('the mean? '))\n")
    assert "basics.py line 2 asks with input(), which no check can answer" in told


# --- running all of it ---------------------------------------------------------------------------


def test_a_file_is_run_from_top_to_bottom(cold_grader: Grader, folder: Path) -> None:
    (folder / "means.py").write_text("NAME = 'mean'\n", "utf-8")
    text = "import means\nassert means.NAME == 'mean'\nraise SystemExit(7)\n"
    (folder / "basics.py").write_text(text, "utf-8")
    assert cold_grader("run", "center", "--course", folder).code == 7
    assert cold_grader("run", "basics", "--course", folder).code == 7


def test_a_file_that_is_not_there_cannot_be_run(cold_grader: Grader, folder: Path) -> None:
    (folder / "basics.py").unlink()
    ran = cold_grader("run", "center", "--course", folder)
    assert (ran.code, ran.out) == (2, "")
    assert "grader reset basics brings back its stubs" in ran.err
