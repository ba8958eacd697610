"""The table of commands: complete, true, and loaded no further than a command needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from grader.cli import app, commands
from tests.support.places import TINY

INSTRUCTORS_ROOMS = ("author", "run", "release", "report", "lms", "grades")
SAYS_WHAT_IS_LOADED = """
import sys
from grader.cli import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("grader.")))
"""


def test_the_table_names_every_command_with_the_module_that_brings_it() -> None:
    commands.load(commands.offered())
    program = typer.main.get_group(app)
    assert program.commands.keys() == commands.MODULE_OF.keys()
    for info in app.registered_commands:
        assert info.callback is not None
        name = info.name or info.callback.__name__
        assert info.callback.__module__ == f"{commands.ROOM}.{commands.MODULE_OF[name]}"
    assert commands.offered() == [*commands.MODULE_OF], "all of them are in this kit"


@pytest.mark.parametrize("command", ["hint center", "list"])
def test_a_students_command_loads_nothing_that_only_instructors_use(
    command: str, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    ran = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_LOADED, *command.split(), "--course", "tiny"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    loaded = {name.split(".")[1] for name in ran.stdout.splitlines()[-1].split()}
    assert "student" in loaded
    assert loaded.isdisjoint(INSTRUCTORS_ROOMS)
