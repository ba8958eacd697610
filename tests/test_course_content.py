"""The course itself: stubs, statements, references and tests fit together."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest
import torch

from grader.author.examples import wrong_examples
from grader.course.afterwards import afterwards
from grader.course.collection import Test, collect
from grader.course.course import Course, load_course
from grader.course.references import LiveOracle, open_oracle
from grader.course.statements import statement
from tests.support.places import REAL, ROOT

COURSE: Course = load_course(REAL)
EXERCISES = list(COURSE.exercises)
UNITS = [unit.name for unit in COURSE.units]


@pytest.fixture(scope="module")
def oracle() -> LiveOracle:
    return open_oracle(COURSE)


@pytest.fixture(scope="module")
def hidden_tests() -> list[Test]:
    return collect(COURSE.grader_files(), True, COURSE)


@pytest.fixture(scope="module")
def public_tests() -> list[Test]:
    return collect(COURSE.check_files(), False, COURSE)


def definitions(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    body = ast.parse(path.read_text("utf-8")).body
    return {n.name: n for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def signatures(node: ast.FunctionDef | ast.ClassDef) -> dict[str, str]:
    """Argument lists and return annotations, as text."""
    if isinstance(node, ast.FunctionDef):
        return {"": f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns or ast.Name('?'))}"}
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    return {m.name: signatures(m)[""] for m in methods if m.name in ("__init__", "forward")}


# Their statements say that gradients are not asked for.
WITHOUT_GRADIENTS = (
    "softmax_online", "flash_attention", "softmax_backward", "attention_backward", "adamw_step",
    "sample_next",
)  # fmt: skip


# What another system calls so: a key of otter's settings.
WORDS_OF_OTHERS = {("otter.py", "generate")}


def test_the_engine_knows_no_exercise_by_name() -> None:
    for path in (ROOT / "grader").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        documentation = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        strings = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
        ]
        known = [
            name
            for name in EXERCISES
            if (path.name, name) not in WORDS_OF_OTHERS and name in strings
        ]
        assert not known, f"{path} names {known}"


@pytest.mark.parametrize("unit", UNITS)
def test_stub_and_reference_have_the_same_signatures(unit: str) -> None:
    stubs = definitions(COURSE.stub_file(unit))
    references = definitions(COURSE.solutions / f"{unit}.py")
    for name in (name for name, of in COURSE.unit_of.items() if of == unit):
        assert signatures(stubs[name]) == signatures(references[name]), name


def test_stub_files_run_without_jaxtyping() -> None:
    code = """
import runpy, sys
sys.modules["jaxtyping"] = None
for path in sys.argv[1:]:
    runpy.run_path(path)
"""
    stubs = [COURSE.stub_file(unit) for unit in UNITS]
    subprocess.run([sys.executable, "-c", code, *stubs], check=True)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_statement_has_an_example_that_is_true_of_the_reference(
    name: str, oracle: LiveOracle
) -> None:
    assert ">>>" in statement(COURSE, name).text, "a statement shows a small example with numbers"
    assert not [*map(str, wrong_examples(COURSE, name, oracle.definitions))]


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_has_three_hints(name: str) -> None:
    assert len(COURSE.exercises[name].hints) == 3


# --- what comes after a solution ------------------------------------------------------------------

LONGEST = 480  # characters of a text: the three of an exercise fit a terminal of 24 lines


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_has_something_to_read_that_gives_no_solution_away(name: str) -> None:
    found = afterwards(COURSE, name)
    assert found is not None
    reference = ast.unparse(definitions(COURSE.reference_file(COURSE.unit_of[name]))[name])
    stub = ast.unparse(definitions(COURSE.stub_file(COURSE.unit_of[name]))[name])
    lines = {line.strip() for line in reference.splitlines()} - {*map(str.strip, stub.splitlines())}
    for heading, text in found.sections:
        assert 60 < len(text) < LONGEST, heading
        assert not [line for line in lines if len(line) > 12 and line in text], heading


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_is_for_an_exercise_that_is_not_there(unit: str) -> None:
    text = COURSE.afterwards_file(unit).read_text("utf-8")
    texts = tomllib.loads(text)
    assert all(int(n) <= len(UNITS) for n in re.findall(r"[Uu]nit\s+(\d+)", text))
    assert [*texts] == [name for name, of in COURSE.unit_of.items() if of == unit]


@pytest.mark.parametrize("unit", UNITS)
def test_a_solved_unit_is_something_to_look_at(
    unit: str,
    oracle: LiveOracle,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = types.ModuleType("grader.mine")
    own.__dict__.update({name: oracle.definitions[name] for name in EXERCISES})
    monkeypatch.setitem(sys.modules, "grader.mine", own)
    names = {name for name, of in COURSE.unit_of.items() if of == unit}
    path = COURSE.look_file(unit)
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))
    with torch.random.fork_rng():
        ran = runpy.run_path(str(path))
    assert names & ran.keys(), "it shows what was written in this unit"
    shown = capsys.readouterr().out.splitlines()
    assert 3 <= len(shown) <= 60
    assert max(map(len, shown)) <= 88


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_is_tested_along_the_ladder(
    name: str, public_tests: list[Test], hidden_tests: list[Test], oracle: LiveOracle
) -> None:
    assert {"shape", "value"} <= {test.rung for test in public_tests if test.exercise == name}
    hidden = [test for test in hidden_tests if test.exercise == name]
    rungs = {test.rung for test in hidden}
    assert {"shape", "value"} <= rungs
    contract = oracle.contracts[name]
    signature = contract.called
    specs = [spec for parameter in signature.parameters for spec in parameter.specs]
    if any(spec.kind == "float" for spec in specs):
        flows = "gradient" in rungs
        assert flows is (name not in WITHOUT_GRADIENTS), "gradients flow unless it says otherwise"
        assert any("float64" in inspect.getsource(test.function) for test in hidden), "float64"


def test_titles_are_told_once(public_tests: list[Test], hidden_tests: list[Test]) -> None:
    for tests in (public_tests, hidden_tests):
        titles = [(test.exercise, test.title) for test in tests]
        assert len(titles) == len(set(titles))


@pytest.mark.parametrize("folder", [".", "exercises", "solutions", "grader", "tests"])
def test_every_folder_says_what_lives_there(folder: str) -> None:
    assert (ROOT / folder / "README.md").stat().st_size > 200
