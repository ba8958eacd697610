"""Commands on pages are run, and print what the pages show.

The blocks of a page run one after another in one folder: an empty one, or a copy of the course if
the page says ``<!-- folder: clone -->`` or ``<!-- folder: student -->``. A page may make
folders next to this one, and name its course once with ``export``.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import NAMED
from tests.support.pages import PAGES, agrees, blocks, commands, write
from tests.support.places import REAL, ROOT, SAMPLES

OWN = shutil.ignore_patterns("__pycache__", "progress.txt", ".checked.txt", ".backups")
RUN = [page for page in PAGES if any(block.mark != "not run" for block in blocks(page, "console"))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make the folder of a page, and go there."""

    def make(text: str) -> None:
        folder = tmp_path / "attention-grader"
        folder.mkdir()
        if re.search(r"^<!-- folder: (clone|student) -->$", text, re.MULTILINE):
            for part in (REAL, ROOT / "solutions", SAMPLES):
                shutil.copytree(part, folder / part.relative_to(ROOT), ignore=OWN)
            # The kit's own course is the one next to the kit.
            installed = folder / "grader" / "course" / "course.py"
            monkeypatch.setattr("grader.course.course.__file__", str(installed))
        monkeypatch.chdir(folder)

    monkeypatch.setenv(NAMED, "")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return make


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, folder: Callable[[str], None], one_warm_process: None
) -> None:
    folder(page.read_text("utf-8"))
    code = 0
    for block in blocks(page):
        if block.mark in ("file", "answer"):
            write(block)
        if block.kind != "console" or block.mark == "not run":
            continue
        for command, shown in commands(block):
            if command == "echo $?":
                printed = f"{code}\n"
            else:
                code, printed = run(command)
            where = f"{page.name}, line {block.line}: $ {command}\n"
            if any(map(str.strip, shown)):
                assert agrees(plain(shown), plain(printed.splitlines())), f"{where}{printed}"
            else:
                assert code <= 1, f"{where}{printed}"


def plain(lines: Sequence[str]) -> Sequence[str]:
    """The lines that are not empty, without blanks at their ends."""
    return [line.rstrip() for line in lines if line.strip()]


def run(command: str) -> tuple[int, str]:
    """A command's exit code, and what it prints; `grader` runs in this process."""
    words = shlex.split(command, comments=True)
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        assert name == NAMED, f"{name} would stay set for other pages"
        os.environ[name] = value.replace("$PWD", str(Path.cwd()))
        return 0, ""
    if words[0] == "grader" and not re.search(r"[|<>&;*]", command.partition(" #")[0]):
        return run_here(words)
    ran = subprocess.run(
        ["sh", "-c", command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return ran.returncode, ran.stdout


def run_here(words: list[str]) -> tuple[int, str]:
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stopped:
            main()
    code = stopped.value.code
    return (code if isinstance(code, int) else 0), printed.getvalue()
