"""The commands of a student's desk, as they are typed."""

from __future__ import annotations

import io
import re
import shutil
import sys
from pathlib import Path

import pytest

from grader.course.course import Course
from tests.conftest import Grader, assigned
from tests.support.places import TINY

WRONG = """
def center(x):
    middle = x.mean()
    print("so", middle.shape)
    return x + middle
"""
NARROW = 44  # columns of a terminal
RIGHT = "def center(x):\n    return x - x.mean()\n"


@pytest.fixture
def desk_of_ada(tiny: Course, tmp_path: Path) -> Path:
    """A folder of exercises with untouched stubs beside it, and the solutions that answer here."""
    folder = tmp_path / "exercises"
    shutil.copytree(tiny.folder, folder)
    shutil.copytree(TINY / "solutions", tmp_path / "solutions")
    shutil.copytree(tiny.folder, folder / "recorded" / "stubs")
    return folder


def test_show_tells_inputs_shapes_and_prints(desk_of_ada: Path, cold_grader: Grader) -> None:
    (desk_of_ada / "basics.py").write_text(WRONG, "utf-8")
    ran = cold_grader("check", "center", "--show", "--course", desk_of_ada)
    assert ran.code == 1
    assert "x  (4,) float32" in ran.out
    assert "middle () float32" in ran.out
    assert "so torch.Size([])" in ran.out
    (desk_of_ada / "basics.py").write_text(RIGHT, "utf-8")
    assert cold_grader("check", "center", "--show", "--course", desk_of_ada).code == 0


@pytest.mark.parametrize(
    "command", ["list", "look", "look layers", "after nosuch", "check center --pdb"]
)
def test_a_narrow_terminal_breaks_lines_between_words(
    command: str, desk_of_ada: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk_of_ada / "basics.py").write_text(WRONG, "utf-8")

    def said() -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        ran = cold_grader(*command.split(), "--course", desk_of_ada)
        return re.sub(r"\x1b\[[0-9;]*m", "", ran.out + ran.err).partition("\n> ")[0]

    whole = said()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(NARROW))
    lines = said()
    assert lines.split() == whole.split()
    assert max(len(line.rstrip()) for line in lines.splitlines()) <= NARROW


def test_show_says_on_a_terminal_that_it_has_no_time_limit(
    desk_of_ada: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk_of_ada / "basics.py").write_text(RIGHT, "utf-8")
    assert cold_grader("check", "center", "--show", "--course", desk_of_ada).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = cold_grader("check", "center", "--show", "--course", desk_of_ada).err
    assert "without a time limit, and Ctrl-C shows the current line" in said


def test_of_a_loop_that_never_ends_a_check_says_how_to_see_its_line(
    desk_of_ada: Path, grader: Grader
) -> None:
    (desk_of_ada / "basics.py").write_text(
        "def center(x):\n    while True:\n        pass\n", "utf-8"
    )
    said = grader("check", "center", "--course", desk_of_ada).out
    assert "the line at which center spends its time: grader check center --show, then" in said


def test_of_an_assignment_what_is_asked_is_counted_and_what_is_not_is_marked(
    desk_of_ada: Path, grader: Grader
) -> None:
    assigned(desk_of_ada, "weigh", "Projection")
    (desk_of_ada / "basics.py").write_text(WRONG, "utf-8")
    ran = grader("check", "--course", desk_of_ada)
    assert ran.code == 1
    assert "0 of 2 asked pass the public checks\nnext: weigh, in basics.py" in ran.out
    assert "center" not in ran.out
    assert "0 of 1 pass the public checks" in grader("check", "center", "--course", desk_of_ada).out
    listed = grader("list", "--course", desk_of_ada).out.splitlines()
    marked = [line.split()[1] for line in listed if line.endswith("(not asked)")]
    assert marked == ["center", "staircase"]
    assert listed[-1] == "next: weigh, in basics.py"


@pytest.mark.parametrize("path", ["basics.py", "exercises/basics.py"])
def test_the_path_of_a_units_file_means_the_unit(
    desk_of_ada: Path, cold_grader: Grader, path: str
) -> None:
    said = cold_grader("list", path, "--course", desk_of_ada).out
    assert "1 basics" in said
    assert "2 layers" not in said
    assert cold_grader("run", path, "--course", desk_of_ada).code == 0


def test_without_a_name_what_there_is_is_listed(desk_of_ada: Path, cold_grader: Grader) -> None:
    (desk_of_ada / "progress.txt").write_text("solved center\n", "utf-8")
    assert "solved: center" in cold_grader("after", "--course", desk_of_ada).out
    (desk_of_ada / "afterwards").mkdir(exist_ok=True)
    (desk_of_ada / "afterwards" / "basics.py").write_text('"""Means that are gone."""\n', "utf-8")
    assert "basics                   Means that are gone." in (
        cold_grader("look", "--course", desk_of_ada).out
    )
    assert cold_grader("run", "--course", desk_of_ada).code == 0


def test_pdb_stops_in_the_students_code(
    desk_of_ada: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk_of_ada / "basics.py").write_text(WRONG, "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\np middle.shape\nq\n"))
    ran = cold_grader("check", "center", "--pdb", "--course", desk_of_ada)
    assert ran.code == 1
    assert "basics.py(3)center()" in ran.out
    assert "torch.Size([])" in ran.out


@pytest.mark.parametrize(
    "arguments", [("--show",), ("center", "staircase", "--pdb"), ("center", "--show", "--pdb")]
)
def test_a_closer_look_is_at_one_exercise_and_in_one_way(
    desk_of_ada: Path, cold_grader: Grader, arguments: tuple[str, ...]
) -> None:
    ran = cold_grader("check", *arguments, "--course", desk_of_ada)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_reset_asks_first_and_undo_takes_it_back(
    desk_of_ada: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk_of_ada / "basics.py"
    path.write_text(RIGHT, "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert cold_grader("reset", "center", "--course", desk_of_ada).code == 1
    assert path.read_text("utf-8") == RIGHT
    ran = cold_grader("reset", "center", "--yes", "--course", desk_of_ada)
    assert ran.code == 0
    assert "raise NotImplementedError" in path.read_text("utf-8")
    assert "grader reset center --undo" in ran.out
    assert cold_grader("reset", "center", "--undo", "--course", desk_of_ada).code == 0
    assert path.read_text("utf-8") == RIGHT


def test_there_is_nothing_to_undo_before_a_reset(desk_of_ada: Path, cold_grader: Grader) -> None:
    ran = cold_grader("reset", "center", "--undo", "--course", desk_of_ada)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_check_in_a_worker_gives_the_same_verdict(desk_of_ada: Path, cold_grader: Grader) -> None:
    (desk_of_ada / "basics.py").write_text(RIGHT, "utf-8")
    ran = cold_grader("check", "center", "--backend", "worker", "--course", desk_of_ada)
    assert ran.code == 0
    assert "1 of 1 pass" in ran.out


@pytest.mark.parametrize("command", [(), ("watch",), ("watch", "basics")])
def test_the_screen_needs_a_terminal(
    desk_of_ada: Path,
    cold_grader: Grader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    shutil.rmtree(tmp_path / "solutions")
    monkeypatch.chdir(desk_of_ada)
    ran = cold_grader(*command)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "--plain" in ran.err


def test_an_install_without_a_course_says_so(cold_grader: Grader, tmp_path: Path) -> None:
    ran = cold_grader("init", tmp_path / "new")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "new").exists()


def test_only_instructors_release(desk_of_ada: Path, cold_grader: Grader, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "solutions")
    ran = cold_grader("release", "student", "--to", tmp_path / "b", "--course", desk_of_ada)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "b").exists()
