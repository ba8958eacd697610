"""What the pages for authors show works: commands exist, and examples can be used."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from grader.author.findings import Excuses
from grader.cli import app, commands
from grader.course.course import Course, load_course
from grader.course.file import Overlay, decode_table
from grader.mistakes import load_library
from tests.conftest import Grader
from tests.support.places import ROOT, TINY

AUTHORS = ROOT / "docs" / "authors"
PAGES = [ROOT / "CONTRIBUTING.md", *sorted(AUTHORS.glob("*.md"))]


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of a page that are of a kind, such as ``python``."""
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be changed."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


@pytest.fixture
def private(course: Course, cold_grader: Grader, tmp_path: Path) -> Path:
    """A private course over the tiny one."""
    made = cold_grader("new", "course", tmp_path / "mine", "--overlay", "--course", course.folder)
    assert made.code == 0, made.err
    return tmp_path / "mine"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_shows_python_that_compiles_and_commands_that_exist(page: Path) -> None:
    for number, text in enumerate(blocks(page, "python"), start=1):
        compile(text, f"{page.name}, block {number}", "exec")
    lines = "\n".join(blocks(page, "console")).replace("\\\n", " ").splitlines()
    for line in lines:
        words = shlex.split(line.removeprefix("$ ").removeprefix(".venv/bin/"), comments=True)
        if words[:1] == ["grader"]:
            assert_known(words[1:])
        elif words[:2] == ["python", "-m"]:
            assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file(), line


def assert_known(words: list[str]) -> None:
    """Fail unless a command of `grader` exists and has all these options."""
    commands.load(commands.offered())
    command: Any = typer.main.get_group(app)
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert options <= known, f"{command.name} has no {options - known}"


RULES = """

    Takes:
        scores: (queries, keys), any finite numbers.

    Returns:
        (queries, keys): the weights.

    Rules:
        dtype: The weights keep the dtype of the scores.
        large: Scores of any size give weights.
"""


def test_the_tests_on_the_ladder_can_be_graded(
    course: Course, private: Path, grader: Grader, right: str, tmp_path: Path
) -> None:
    stubs = course.stub_file("basics").read_text("utf-8")
    sentence = "without torch's softmax."
    assert stubs.count(sentence) == 1
    stubs = stubs.replace(sentence, f"{sentence}{RULES}    ")
    course.stub_file("basics").write_text(stubs, "utf-8")
    text = "\n\n".join(blocks(AUTHORS / "ladder.md", "python"))
    (private / "solutions" / "graders" / "test_more.py").write_text(text, "utf-8")
    (tmp_path / "ada.py").write_text(right, "utf-8")
    ran = grader("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--course", private)
    assert ran.code == 0, ran.err
    grade = json.loads((tmp_path / "out" / "results.jsonl").read_text("utf-8"))
    passed = {
        test["name"]
        for exercise in grade["exercises"]
        for test in exercise["tests"]
        if test["status"] == "passed"
    }
    assert {*re.findall(r"^def (test_\w+)", text, re.MULTILINE)} <= passed


def test_the_known_answers_on_their_page_fit_the_tiny_course(course: Course) -> None:
    texts = blocks(AUTHORS / "mistakes.md", "python")
    table = [text for text in texts if "import common\n" in text]
    unit = [text for text in texts if text not in table]
    (course.solutions / "mistakes" / "common.py").write_text("\n".join(table), "utf-8")
    (course.solutions / "mistakes" / "basics.py").write_text("\n".join(unit), "utf-8")
    known = {variant.id: variant.kind for variant in load_library(course).variants}
    assert known["center/with-a-sum"] == "accepted"
    assert known["center/negated"] == known["weigh/along-the-columns"] == "mistake"
    assert known["staircase/upside-down+one-more"] == "pair"


def test_the_mistake_on_the_page_of_private_courses_adds_to_the_public_ones(private: Path) -> None:
    (text,) = blocks(AUTHORS / "private.md", "python")
    (private / "solutions" / "mistakes" / "basics.py").write_text(text, "utf-8")
    public = load_library(load_course(TINY / "exercises")).variants
    mine = load_library(load_course(private)).variants
    more = {variant.id for variant in mine} - {variant.id for variant in public}
    assert more == {"center/the-largest"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_shows_toml_that_can_be_read(page: Path) -> None:
    for text in blocks(page, "toml"):
        if "overlay" in tomllib.loads(text):
            decode_table(page, text, Overlay)
        elif page.name == "mistakes.md":
            msgspec.toml.decode(text, type=Excuses)
