"""The rooms of the engine: what each may import, and that the wall is where it is said to be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gradebooks import write_class
from tests.support.places import TINY
from tests.tools.structure import (
    ROOMS,
    ROOT,
    Module,
    arrows_back_up,
    between_rooms,
    foreign_imports_of,
    imports_of,
    modules_of,
    tangles,
)

ENGINE = modules_of(ROOT / "grader")
GRAPH = between_rooms(ENGINE)
ATTACKS = [  # but those that bring modules of our names along
    path
    for path in sorted((ROOT / "tests" / "attacks").rglob("*.py"))
    if "shadowing" not in path.parts
]


# --- the wall ------------------------------------------------------------------------------------


def test_what_runs_beside_student_code_knows_the_wire_and_nothing_else_of_ours() -> None:
    assert GRAPH["wire"] == frozenset()
    assert GRAPH["guest"] == {"wire"}


def test_only_back_ends_without_a_wall_import_the_guest() -> None:
    assert {room for room, others in GRAPH.items() if "guest" in others} == {"unsandboxed"}


def test_what_starts_and_hears_jails_knows_the_wire_and_plain_data() -> None:
    assert GRAPH["sandbox"] <= {"wire", "records"}


def test_back_ends_without_a_wall_know_no_more_than_what_they_stand_in_for() -> None:
    assert GRAPH["unsandboxed"] <= {"guest", "wire", "sandbox", "records"}


@pytest.mark.parametrize("start", ["warm", "work"])
def test_the_trusted_side_starts_the_guest_by_a_command_alone(start: str) -> None:
    named = {name for name, module in ENGINE.items() if f"grader.guest.{start}" in strings(module)}
    assert named == {"warm": {"sandbox.jails"}, "work": {"unsandboxed.worker"}}[start]


def strings(module: Module) -> frozenset[str]:
    nodes = (node for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
    return frozenset(node.value for node in nodes if isinstance(node.value, str))


@pytest.mark.parametrize("folder", ["exercises", "grader"])
def test_nothing_outside_imports_from_solutions(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert "solutions" not in foreign_imports_of(path.read_text("utf-8")), path


def test_what_attacks_name_of_the_kit_is_there() -> None:
    gone = {
        f"{path.parent.name}/{path.name}": missing
        for path in ATTACKS
        if (missing := [name for name in named_of_the_kit(path) if name not in ENGINE])
    }
    assert not gone, "an attack on what is not there proves nothing"


def named_of_the_kit(path: Path) -> Iterator[str]:
    """Modules that a file imports, or spells out in a string, in pieces too."""
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from without_package(node.module or "")
        elif isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in without_package(alias.name))
        elif isinstance(node, ast.BinOp | ast.Constant):
            yield from without_package(text_of(node))


def without_package(dotted: str) -> Iterator[str]:
    if found := re.fullmatch(r"grader\.([a-z_]+(?:\.[a-z_]+)*)", dotted):
        yield found[1]


def text_of(node: ast.AST) -> str:
    """A string, or a sum of strings; nothing for what else there is."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
    return ""


# --- floors --------------------------------------------------------------------------------------


def test_every_room_has_its_place() -> None:
    assert sorted(ROOMS) == sorted(set(GRAPH) - {"__init__"})


def test_no_import_points_back_up() -> None:
    assert arrows_back_up({room: GRAPH[room] for room in ROOMS}, ROOMS) == []


def test_no_rooms_and_no_modules_import_each_other_in_a_circle() -> None:
    assert tangles(GRAPH) == []
    whole = {name: imports_of(module, ENGINE) for name, module in ENGINE.items()}
    assert tangles(whole) == []


# --- the light front -----------------------------------------------------------------------------

LIGHT = {
    "--help": "--help",
    "export": "export BOOK --to csv --course TINY",
    "report": "report BOOK --no-similarity --course TINY",
    "adjust": "adjust BOOK ada center -1 --reason late --course TINY",
    "diff": "diff BOOK BOOK --course TINY",
}
SAYS_WHETHER = """
import sys
from grader.cli import main
try:
    main()
finally:
    print("with torch" if "torch" in sys.modules else "without torch")
"""


@pytest.mark.parametrize("command", LIGHT)
def test_a_command_that_runs_no_answer_loads_no_torch(command: str, tmp_path: Path) -> None:
    write_class(tmp_path)
    places = {"BOOK": tmp_path, "TINY": TINY}
    call = [places.get(word, word) for word in LIGHT[command].split()]
    ran = subprocess.run(
        [sys.executable, "-c", SAYS_WHETHER, *call],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "without torch"
