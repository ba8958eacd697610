"""What a shell offers when a user presses Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gradebooks import write_class
from tests.support.places import TINY

PROGRAM = Path(sys.executable).with_name("grader")


def offered(line: str, place: Path = TINY) -> list[str]:
    """The words that bash would offer at the end of a line, typed in a folder."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_GRADER_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    ran = subprocess.run(
        [PROGRAM], env=environment, cwd=place, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grader rel", ["release"]),
        ("grader release class", ["classroom50"]),
        ("grader grade --ag", ["--again"]),
        ("grader check --course . st", ["staircase"]),
        ("grader check --course . b", ["basics"]),
        ("grader hint --course . we", ["weigh"]),
        ("grader grade class --course . --only Pro", ["Projection"]),
        ("grader check --course . nothing", []),
    ],
)
def test_commands_options_and_exercises_are_completed(line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_students_of_the_gradebook_in_the_line_are_completed(tmp_path: Path) -> None:
    write_class(tmp_path)
    assert offered(f"grader explain --course . {tmp_path} ad") == ["ada"]
    assert "weigh" in offered(f"grader adjust --course . {tmp_path} ada w")


def test_nothing_is_offered_and_no_error_shown_where_there_is_no_course(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text("broken [", "utf-8")
    assert offered("grader check --course . st", tmp_path) == []
    assert offered(f"grader explain {tmp_path} ad", tmp_path) == []
