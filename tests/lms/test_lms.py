"""Systems: the table of them, and one that is added as README.md of their room says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.grades.gradebook import open_gradebook
from grader.lms import SYSTEMS
from grader.records.grade import ExerciseResult, Grade
from tests.support.places import ROOT, TINY

ROOM = ROOT / "grader" / "lms"

# The room with one more name in its table, and the module of that name in a folder of the room.
ADDED = """
import os, sys
from importlib.util import find_spec, module_from_spec
room = find_spec("grader.lms")
sys.modules["grader.lms"] = lms = module_from_spec(room)
lms.__path__.append(os.environ["ROOM"])
table = open(room.origin, encoding="utf-8").read()
exec(table.replace('"classroom50",', '"classroom50", "ilias",'), vars(lms))
from grader.cli import main
main()
"""

With = Callable[..., str]


@pytest.fixture
def with_ilias(tmp_path: Path) -> With:
    """Run a command of `grader` that has the system of the README besides its own."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOM / "README.md").read_text("utf-8"), re.S)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "ilias.py").write_text(example, "utf-8")

    def run(*arguments: str | Path) -> str:
        return subprocess.run(
            [sys.executable, "-c", ADDED, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "ROOM": str(tmp_path / "room"), "COLUMNS": "200"},
        ).stdout

    return run


def test_a_new_system_is_one_module_and_one_line(with_ilias: With, tmp_path: Path) -> None:
    """Its downloads are recognised, and grades are exported to it."""
    (tmp_path / "download").mkdir()
    for name in ("ilias_ada_basics.py", "ilias_bob_basics.py"):
        (tmp_path / "download" / name).write_text("x = 1\n", "utf-8")
    listed = with_ilias("grade", tmp_path / "download", "--dry-run", "--course", TINY)
    assert "download: a download from Ilias: 2 submissions\n" in listed
    assert "ada: 1 file: basics.py\n" in listed

    with open_gradebook(tmp_path / "grades", "tiny") as book:
        book.record(
            Grade(
                "ada",
                "ada",
                "graded",
                1.5,
                2.0,
                "seed",
                "0f",
                (),
                "2.13.0",
                0.4,
                (ExerciseResult("center", "basics", 1.5, 2.0),),
            )
        )
        book.exercises = ("center",)
    with_ilias("export", tmp_path / "grades", "--to", "ilias", "--course", TINY)
    assert (tmp_path / "grades" / "ilias.csv").read_text("utf-8") == "ada;1.5\n"


def test_help_lists_a_new_system(with_ilias: With) -> None:
    told = " ".join(with_ilias("grade", "--help").split())
    assert "Canvas, Moodle, Gradescope, nbgrader, Classroom 50 or Ilias." in told
    assert "<csv|canvas|moodle|gradescope|ilias>" in with_ilias("export", "--help")


def test_each_system_has_a_name_of_its_own() -> None:
    names = [system.name for system in SYSTEMS]
    assert len({*names}) == len(names)


@pytest.mark.parametrize(
    ("module", "absent"), [("grader.lms", "torch"), ("grader.intake", "grader.lms")]
)
def test_rooms_load_without_what_they_must_not_need(module: str, absent: str) -> None:
    code = f"import sys, {module}; print({absent!r} in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
