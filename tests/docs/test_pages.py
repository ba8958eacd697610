"""What pages show can be used: links, commands with their options, and examples for authors."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import torch
import typer

import grader.testing
from grader.author.findings import Excuses
from grader.cli import app
from grader.cli import commands as program
from grader.course import tensors
from grader.course.course import Course, load_course
from grader.course.file import Overlay, decode_table
from grader.course.references import load_solutions
from grader.course.tensors import Make
from grader.mistakes import load_library
from tests.conftest import Grader
from tests.support.pages import PAGES, blocks, commands
from tests.support.places import REAL, ROOT, TINY
from tests.support.seats import OpenSeat
from tests.tools.pages import fill_in
from tests.tools.reference import GROUPS, examples_of_mistakes

AUTHORS = ROOT / "docs" / "authors"
# Also the pages that are no part of the documentation. Templates have names to be filled in.
LINKING = [
    *PAGES,
    *(ROOT / name for name in ("CHANGELOG.md", "SECURITY.md")),
    *sorted(
        page
        for folder in ("exercises", "grader", "solutions", "tests")
        for page in (ROOT / folder).rglob("*.md")
        if "templates" not in page.parts and "bundle" not in page.parts
    ),
]
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
KINDS = {"console", "json", "python", "text", "toml", "yaml", "{toctree}", "{include}"}


def named(pages: Sequence[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


def texts(page: Path, kind: str) -> list[str]:
    return [block.text for block in blocks(page, kind)]


@named(LINKING)
def test_each_link_to_a_file_leads_to_it(page: Path) -> None:
    text = CODE.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the forge and Sphinx make them."""
    headings = re.findall(r"^#+ (.*)", fill_in(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@named(PAGES)
def test_commands_are_in_blocks_that_are_run_or_give_a_reason(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in KINDS, f"line {block.line}"
        if block.kind == "console":
            assert [*commands(block)]
            assert block.mark != "not run" or block.said, f"line {block.line}: why?"


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


@named(PAGES)
def test_each_page_shows_python_that_compiles_and_commands_that_exist(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block.text, f"{page.name}, line {block.line}", "exec")
    for block in blocks(page, "console"):
        for command, _ in commands(block):
            words = shlex.split(command.removeprefix(".venv/bin/"), comments=True)
            if words[:1] == ["grader"]:
                assert_known(words[1:])
            elif words[:2] == ["python", "-m"] and words[2].startswith("tests."):
                assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file(), command


def assert_known(words: list[str]) -> None:
    """Fail unless a command of `grader` exists and has all these options."""
    program.load(program.offered())
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
    text = "\n\n".join(texts(AUTHORS / "ladder.md", "python"))
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
    shown = texts(AUTHORS / "mistakes.md", "python")
    table = [text for text in shown if "import common\n" in text]
    unit = [text for text in shown if text not in table]
    (course.solutions / "mistakes" / "common.py").write_text("\n".join(table), "utf-8")
    (course.solutions / "mistakes" / "basics.py").write_text("\n".join(unit), "utf-8")
    known = {variant.id: variant.kind for variant in load_library(course).variants}
    assert known["center/with-a-sum"] == "accepted"
    assert known["center/negated"] == known["weigh/along-the-columns"] == "mistake"
    assert known["staircase/upside-down+one-more"] == "pair"


def test_the_mistake_on_the_page_of_private_courses_adds_to_the_public_ones(private: Path) -> None:
    (text,) = texts(AUTHORS / "private.md", "python")
    (private / "solutions" / "mistakes" / "basics.py").write_text(text, "utf-8")
    public = load_library(load_course(TINY / "exercises")).variants
    mine = load_library(load_course(private)).variants
    more = {variant.id for variant in mine} - {variant.id for variant in public}
    assert more == {"center/the-largest"}


@pytest.mark.parametrize(
    "module", [tensors, *GROUPS], ids=lambda module: module.__name__.rpartition(".")[2]
)
def test_the_examples_in_the_reference_of_tests_give_what_they_show(
    module: ModuleType, tiny: Course, open_seat: OpenSeat
) -> None:
    submission = texts(ROOT / "docs" / "reference" / "testing.md", "python")[-1]
    right = [
        getattr(solved, name)
        for solved in load_solutions(tiny).values()
        for name in ("center", "weigh", "Projection")
        if hasattr(solved, name)
    ]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for found in doctest.DocTestFinder(exclude_empty=True).find(module):
        seat, make = open_seat(submission, *right), Make("seed", "weigh", "test_x")
        found.globs |= {name: getattr(grader.testing, name) for name in grader.testing.__all__}
        found.globs |= {"torch": torch, "make": make}
        found.globs |= {"student": seat.student(), "reference": seat.reference(make)}
        runner.run(found)
    assert runner.tries
    assert not runner.failures


def test_the_examples_in_the_reference_of_mistakes_fit_the_course(
    cold_grader: Grader, tmp_path: Path
) -> None:
    made = cold_grader("new", "course", tmp_path / "mine", "--overlay", "--course", REAL)
    assert made.code == 0, made.err
    public = load_course(REAL)
    examples = re.findall(r"^```python\n(.*?)^```", examples_of_mistakes(), re.DOTALL | re.M)
    for text in examples:
        names = [name for name in re.findall(r'"(\w+)"', text) if name in public.unit_of]
        unit = public.unit_of[names[0]] if names else "common"
        file = tmp_path / "mine" / "solutions" / "mistakes" / f"{unit}.py"
        head = "" if file.exists() else "import re\n\nimport torch\nfrom grader.mistakes import *\n"
        with file.open("a", encoding="utf-8") as library:
            library.write(f"{head}\n{text}")
    known = {one.id: one.kind for one in load_library(load_course(tmp_path / "mine")).variants}
    assert len(examples) == 7
    assert known["causal_mask/arange"] == "accepted"
    assert known["causal_mask/hides-itself+one-column-too-many"] == "pair"
    assert {
        "RotaryAttention/no-cache",
        "FeedForward/drops-0.5",
        "CausalAttention/mask-as-numbers",
    } <= {*known}


@named(PAGES)
def test_each_page_shows_toml_that_can_be_read(page: Path) -> None:
    for text in texts(page, "toml"):
        if "overlay" in tomllib.loads(text):
            decode_table(page, text, Overlay)
        elif page.name == "mistakes.md":
            msgspec.toml.decode(text, type=Excuses)
