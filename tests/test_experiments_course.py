"""The course's experiments run: with nothing solved, and with everything solved."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator

import pytest

from grader import mine
from grader.course.course import Course, load_course
from grader.student.scripts import run_experiment, said_of
from tests.support.places import REAL

COURSE = load_course(REAL)
EXPERIMENTS = sorted({name for names in COURSE.experiments.values() for name in names})
FIGURES = [name for name in EXPERIMENTS if name in COURSE.experiments]  # those of a unit
WIDEST, LONGEST = 88, 80
STAND_IN = "yours comes here once it is solved"


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course as a student gets it."""
    folder = tmp_path_factory.mktemp("unsolved") / "exercises"
    shutil.copytree(REAL, folder)
    return load_course(folder)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course in which somebody has solved all: with the references."""
    folder = tmp_path_factory.mktemp("solved") / "exercises"
    shutil.copytree(REAL, folder)
    for unit in COURSE.units:
        text = COURSE.reference_file(unit.name).read_text("utf-8")
        own = re.sub(r"^from \.(\w+) import", r"from \1 import", text, flags=re.MULTILINE)
        (folder / f"{unit.name}.py").write_text(own, "utf-8")
    progress = "".join(f"solved {name}\n" for name in COURSE.exercises)
    (folder / "progress.txt").write_text(progress, "utf-8")
    return load_course(folder)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    mine.forget()


def asked_of(name: str) -> list[str]:
    """The exercises whose answers an experiment would like to use."""
    tree = ast.parse(COURSE.experiment_file(name).read_text("utf-8"))
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "yours"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def said(course: Course, name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    run_experiment(course, name)
    lines = capsys.readouterr().out.splitlines()
    assert 10 <= len(lines) <= LONGEST
    assert max(map(len, lines)) <= WIDEST, max(lines, key=len)
    return lines


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_with_nothing_solved_it_runs_and_says_what_stands_in(
    name: str, unsolved: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(unsolved, name, capsys)
    assert [line.split(":")[0] for line in lines if STAND_IN in line] == asked_of(name)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_with_everything_solved_it_runs_from_the_students_own_answers(
    name: str, solved: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(solved, name, capsys)
    assert not [line for line in lines if STAND_IN in line]
    own = [line.split(":")[0] for line in lines if ": yours, from " in line]
    assert own == asked_of(name)


@pytest.mark.parametrize("name", FIGURES)
def test_the_references_give_the_published_figures(
    name: str, solved: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(solved, name, capsys)
    assert any("yours: the same figures" in line for line in lines)
    assert not [line for line in lines if "other figures" in line or "another shape" in line]


def test_another_answer_than_the_published_one_is_said_to_be_other_figures(
    solved: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    path = solved.stub_file("softmax")
    before = path.read_text("utf-8")
    path.write_text("def softmax_naive(x):\n    return x\n\n\nnormalize_by_sum = softmax_naive\n")
    try:
        lines = said(solved, "softmax", capsys)
    finally:
        path.write_text(before, "utf-8")
    assert sum("yours: other figures" in line for line in lines) == 3


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_asks_for_exercises_that_are_there(name: str) -> None:
    assert set(asked_of(name)) <= COURSE.exercises.keys()
    title, _, about = said_of(COURSE.experiment_file(name)).partition("\n")
    assert title.endswith(".")
    assert len(f"  {name:20} {title}") <= WIDEST, "it is a line of the list"
    assert len(about) > 80, "it says what to look at"


def lines_of_references() -> set[str]:
    """Lines of code that a student is to find: those of references that are in no stub."""
    texts = {
        folder: [
            ast.unparse(ast.parse((folder / f"{unit.name}.py").read_text("utf-8")))
            for unit in COURSE.units
        ]
        for folder in (COURSE.solutions, COURSE.folder)
    }
    found, stubs = (
        {line.strip() for text in of for line in text.splitlines()} for of in texts.values()
    )
    return {
        line
        for line in found - stubs
        if len(line) > 20 and not line.startswith(("from ", "import "))
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_gives_no_line_of_a_solution_away(name: str) -> None:
    text = ast.unparse(ast.parse(COURSE.experiment_file(name).read_text("utf-8")))
    assert not [line for line in lines_of_references() if line in text]


def test_every_script_belongs_to_an_exercise_or_a_unit_and_is_there() -> None:
    scripts = {path.stem for path in COURSE.experiment_file("x").parent.glob("*.py")}
    named = {one for exercise in COURSE.exercises.values() for one in exercise.experiments}
    assert named <= scripts
    assert scripts == set(EXPERIMENTS)
    assert scripts.isdisjoint(COURSE.exercises), "a name is one thing"


def test_no_exercise_takes_the_name_of_a_helper() -> None:
    assert not [name for name in COURSE.exercises if name in vars(mine)]
