"""The references of a course, as they are loaded into the process that grades."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from grader.course.course import load_course
from grader.course.references import load_solutions
from tests.support.places import TINY

BEFORE = "import torch\n\ndef shifted(x):\n    return x - 1.0\n"
AFTER = BEFORE.replace("- 1.0", "+ 1.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A course whose first unit imports a helper that lies beside it."""
    shutil.copytree(TINY, tmp_path / "course")
    unit = tmp_path / "course" / "solutions" / "basics.py"
    unit.write_text(f"{unit.read_text('utf-8')}\n\nfrom .parts.moves import shifted\n", "utf-8")
    (unit.parent / "parts").mkdir()
    (unit.parent / "parts" / "moves.py").write_text(BEFORE, "utf-8")
    return tmp_path / "course"


@pytest.mark.parametrize("package", [True, False], ids=["a package", "a folder"])
def test_a_process_that_lives_for_long_sees_that_a_helper_of_a_reference_was_edited(
    folder: Path, package: bool
) -> None:
    helper = folder / "solutions" / "parts" / "moves.py"
    if package:
        (helper.parent / "__init__.py").touch()
    course = load_course(folder / "exercises")
    first = load_solutions(course)["basics"].shifted(torch.zeros(1))
    saved = helper.stat()
    helper.write_text(AFTER, "utf-8")
    os.utime(helper, ns=(saved.st_atime_ns, saved.st_mtime_ns))  # saved within the same second
    second = load_solutions(course)["basics"].shifted(torch.zeros(1))
    assert (first.item(), second.item()) == (-1.0, 1.0)


def test_a_text_that_is_the_same_is_loaded_once(folder: Path) -> None:
    course = load_course(folder / "exercises")
    assert load_solutions(course)["basics"] is load_solutions(course)["basics"]


def test_nothing_is_written_beside_the_solutions(folder: Path) -> None:
    load_solutions(load_course(folder / "exercises"))
    assert not list((folder / "solutions").rglob("__pycache__"))
