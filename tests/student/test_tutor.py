"""`grader mcp`, driven by the library's own client: what a student's commands give, and no more."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from grader.course.course import load_course
from grader.mistakes import load_library
from grader.student.progress import read_progress
from grader.student.tutor import Tutor, server_of
from tests.conftest import Grader
from tests.support.places import ROOT, TINY

RIGHT = "def center(x):\n    return x - x.mean()\n"
WRONG = "def center(x):\n    return x + x.mean()\n"
ENDLESS = "def center(x):\n    while True:\n        pass\n"
TOOLS = {"list_exercises", "statement", "check", "hint", "question", "after", "show"}
Call = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, to be worked in."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return tmp_path / "tiny" / "exercises"


@pytest.fixture
def call(folder: Path, one_warm_process: None) -> Iterator[Call]:
    """Call a tool as an assistant does; an error is what the assistant reads."""
    tools = Tutor(load_course(folder))
    server = server_of(tools)

    def asked(tool: str, **arguments: str) -> str:
        async def ask() -> CallToolResult:
            async with Client(server) as client:
                return await client.call_tool(tool, arguments)

        return text_of(anyio.run(ask))

    yield asked
    tools.close()


def text_of(result: CallToolResult) -> str:
    parts = [part.text for part in result.content if isinstance(part, TextContent)]
    return "\n".join(parts)


def save(folder: Path, text: str) -> None:
    (folder / "basics.py").write_text(text, "utf-8")


# --- what the tools give -------------------------------------------------------------------------


def test_an_exercise_from_its_statement_to_its_solution(call: Call, folder: Path) -> None:
    assert "· center" in call("list_exercises")
    assert "def center(" in call("statement", name="center")
    save(folder, WRONG)
    wrong = call("check", name="center")
    assert "✗ center" in wrong
    assert "The mean is added" in wrong
    assert call("hint", name="center") == "hint 1 of 1: What is the mean of what remains?"
    save(folder, RIGHT)
    assert "✓ center" in call("check", name="center")
    assert "✓ center" in call("list_exercises")
    assert "Why it works\nWhat remains sums to zero." in call("after", name="center")
    assert read_progress(folder).solved == {"center"}
    assert read_progress(folder).hints == {"center": 1}


def test_what_follows_a_solution_is_refused_before_it(call: Call) -> None:
    assert "solve center first" in call("after", name="center")


def test_a_unit_is_checked_as_a_whole(call: Call, folder: Path) -> None:
    save(folder, RIGHT)
    told = call("check", name="basics")
    assert "✓ center" in told
    assert "· staircase" in told


def test_lines_at_work_are_shown(call: Call, folder: Path) -> None:
    save(folder, WRONG)
    assert "x.mean()" in call("show", name="center")


@pytest.mark.parametrize("tool", ["statement", "check", "hint", "show"])
def test_a_name_that_is_none_is_one_line_with_the_nearest(call: Call, tool: str) -> None:
    told = call(tool, name="centre")
    assert "there is no exercise called 'centre'; did you mean center?" in told
    assert "\n" not in told


def test_code_that_never_ends_ends_as_it_does_in_a_check(call: Call, folder: Path) -> None:
    save(folder, ENDLESS)
    assert "does a loop never end?" in call("check", name="center")


def test_no_answer_names_a_folder_of_this_computer(call: Call, folder: Path) -> None:
    (folder / "basics.py").unlink()
    for tool in ("statement", "check", "show"):
        assert str(folder.parent) not in call(tool, name="center")


# --- what they do not give -----------------------------------------------------------------------


def test_no_answer_holds_a_line_of_a_solution_or_of_a_mistake(call: Call, folder: Path) -> None:
    course = load_course(folder)
    texts = [path.read_text("utf-8") for path in (TINY / "solutions").glob("*.py")]
    texts += [variant.definition for variant in load_library(course).variants]
    public = "".join(course.stub_file(unit.name).read_text("utf-8") for unit in course.units)
    lines = {line.strip() for text in texts for line in text.splitlines()}
    secret = {line for line in lines if len(line) > 15 and line not in public}
    assert len(secret) > 10
    (folder / "progress.txt").write_text("".join(f"solved {n}\n" for n in course.exercises))
    answers = [call("list_exercises")]
    for name in course.exercises:
        answers += [call("statement", name=name), call("check", name=name), call("show", name=name)]
        answers += [call("hint", name=name), call("after", name=name)]
    told = "\n".join(answers)
    assert not {line for line in secret if line in told}


@pytest.mark.parametrize(
    ("client", "under"), [("claude", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")]
)
def test_each_client_gets_its_file_with_whole_paths(
    cold_grader: Grader, folder: Path, client: str, under: str
) -> None:
    ran = cold_grader("mcp", "--config", client, "--course", folder)
    starts = json.loads(ran.out)[under]["grader"]
    assert Path(starts["command"]).is_absolute()
    assert starts["args"] == ["-I", "-m", "grader", "mcp", "--course", str(folder)]


# --- as a process --------------------------------------------------------------------------------


def test_an_assistant_starts_it_and_speaks_over_standard_input(folder: Path) -> None:
    starts = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-m", "grader", "mcp", "--course", str(folder)],
        cwd=str(ROOT),
    )

    async def tutor_a_student() -> tuple[set[str], list[str]]:
        async with Client(starts) as client:

            async def ask(tool: str, **arguments: str) -> str:
                return text_of(await client.call_tool(tool, arguments))

            tools = {tool.name for tool in (await client.list_tools()).tools}
            said = [await ask("list_exercises"), await ask("statement", name="center")]
            save(folder, WRONG + "print('on standard output')\n")
            said += [await ask("check", name="center"), await ask("hint", name="center")]
            said += [await ask("after", name="center")]
            save(folder, RIGHT)
            said += [await ask("check", name="center"), await ask("after", name="center")]
            return tools, said

    tools, said = anyio.run(tutor_a_student)
    assert tools == TOOLS
    expected = (
        *("· center", "def center(", "The mean is added", "hint 1 of 1", "solve center first"),
        *("✓ center", "Why it works"),
    )
    for part, answer in zip(expected, said, strict=True):
        assert part in answer
