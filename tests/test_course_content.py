"""The course itself: stubs, statements, references and tests fit together."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from grader.author.mutants import mutants_of
from grader.course.collection import Test, collect
from grader.course.course import Course, load_course
from grader.course.references import LiveOracle, load_solutions, open_oracle
from grader.course.statements import statement
from grader.mistakes import load_library
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
WITHOUT_GRADIENTS = ("softmax_online", "flash_attention", "attention_backward")


def test_the_course_has_the_47_exercises_of_ten_units_worth_106_points() -> None:
    assert len(UNITS) == 10
    assert len(EXERCISES) == 47
    assert sum(exercise.points for exercise in COURSE.exercises.values()) == 106


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
        known = [name for name in EXERCISES if any(name == string for string in strings)]
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
    unit = COURSE.unit_of[name]
    stub = definitions(COURSE.stub_file(unit))[name]
    statement = ast.get_docstring(stub) or ""
    modules = load_solutions(COURSE)
    scope: dict[str, Any] = {"torch": torch, "nn": nn, **oracle.definitions}
    example = doctest.DocTestParser().get_doctest(statement, scope, name, None, None)
    assert example.examples, "a statement shows one small example with numbers"
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert not report, "".join(report)
    assert modules


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_has_three_hints(name: str) -> None:
    assert len(COURSE.exercises[name].hints) == 3


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_is_tested_along_the_ladder(
    name: str, public_tests: list[Test], hidden_tests: list[Test], oracle: LiveOracle
) -> None:
    assert {"shape", "value"} <= {test.rung for test in public_tests if test.exercise == name}
    hidden = [test for test in hidden_tests if test.exercise == name]
    rungs = {test.rung for test in hidden}
    assert {"shape", "value"} <= rungs
    contract = oracle.contracts[name]
    signature = contract.forward or contract.call
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


# --- what the README says of the proof ------------------------------------------------------------


def test_the_readme_counts_what_the_audit_tries() -> None:
    library, readme = load_library(COURSE), (ROOT / "README.md").read_text("utf-8")
    for number, unit in enumerate(COURSE.units, start=1):
        (row,) = re.findall(rf"^\| {number} `{unit.name}` \|(.* of .*)$", readme, re.MULTILINE)
        names = [exercise.name for exercise in unit.exercise]
        graders = (COURSE.solutions / "graders" / f"test_{unit.name}.py").read_text("utf-8")
        tried = [
            sum(len(library.of(name, "accepted")) for name in names),
            sum(len(library.of(name, "mistake")) for name in names),
            sum(len(mutants_of(library.sources[unit.name], name)) for name in names),
            graders.count("\ndef test_"),
            # With the two rules that are built in; and a margin for each known answer.
            sum(2 + len(statement(COURSE, name).rules) for name in names),
        ]
        tried.append(tried[0] + tried[1] + len(names))
        assert [int(count) for count in re.findall(r"of (\d+)", row)] == tried
