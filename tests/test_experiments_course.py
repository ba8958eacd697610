"""The course's experiments run: with nothing solved, and with everything solved."""

from __future__ import annotations

import ast
import io
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from grader import mine
from grader.course.course import Course, load_course
from grader.student.scripts import run_experiment, run_look, said_of
from tests.support.places import REAL, ROOT

COURSE = load_course(REAL)
EXPERIMENTS = sorted({name for names in COURSE.experiments.values() for name in names})
FIGURES = [name for name in EXPERIMENTS if name in COURSE.experiments]  # those of a unit
WIDEST, LONGEST = 80, 80
STAND_IN = "until you have solved it"
# These measure time, show rounding, name what stands in, or start from weights drawn anew.
VARYING = {"all_ones", "allclose", "cache", "cost", "memory", "one_product", "shortcuts", "tables"}


PROGRESS = shutil.ignore_patterns("progress.txt", ".checked.txt")  # of whoever works in this clone


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course as a student gets it."""
    folder = tmp_path_factory.mktemp("unsolved") / "exercises"
    shutil.copytree(REAL, folder, ignore=PROGRESS)
    return load_course(folder)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course in which somebody has solved all: with the references."""
    folder = tmp_path_factory.mktemp("solved") / "exercises"
    shutil.copytree(REAL, folder, ignore=PROGRESS)
    for unit in COURSE.units:
        text = COURSE.reference_file(unit.name).read_text("utf-8")
        own = re.sub(r"^from \.(\w+) import", r"from \1 import", text, flags=re.MULTILINE)
        (folder / f"{unit.name}.py").write_text(own, "utf-8")
    progress = "".join(f"solved {name}\n" for name in COURSE.exercises)
    (folder / "progress.txt").write_text(progress, "utf-8")
    return load_course(folder)


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A clone in which the sample `ada` has solved all, with some arguments in another order."""
    clone = tmp_path_factory.mktemp("ada")
    for part in ("exercises", "solutions"):
        shutil.copytree(ROOT / part, clone / part)
    folder = clone / "exercises"
    shutil.copytree(ROOT / "tests" / "submissions" / "ada", folder, dirs_exist_ok=True)
    progress = "".join(f"solved {name}\n" for name in COURSE.exercises)
    (folder / "progress.txt").write_text(progress, "utf-8")
    return load_course(folder)


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


def printed(script: Callable[[Course, str], None], course: Course, name: str) -> list[str]:
    """The lines that a script prints."""
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            script(course, name)
    finally:
        mine.forget()
    return out.getvalue().splitlines()


def said(course: Course, name: str) -> list[str]:
    """The lines of an experiment."""
    lines = printed(run_experiment, course, name)
    assert 10 <= len(lines) <= LONGEST
    assert max(map(len, lines)) <= WIDEST, max(lines, key=len)
    return lines


Once = Callable[[Course, str], list[str]]


@pytest.fixture(scope="module")
def once() -> Once:
    """As `said`, but each experiment runs once on each course."""
    known: dict[tuple[Path, str], list[str]] = {}

    def lines(course: Course, name: str) -> list[str]:
        key = course.folder, name
        if key not in known:
            known[key] = said(course, name)
        return known[key]

    return lines


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_with_nothing_solved_it_runs_and_says_what_stands_in(
    name: str, unsolved: Course, once: Once
) -> None:
    lines = once(unsolved, name)
    assert [line.split(":")[0] for line in lines if STAND_IN in line] == asked_of(name)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_with_everything_solved_it_runs_from_the_students_own_answers(
    name: str, solved: Course, once: Once
) -> None:
    lines = once(solved, name)
    assert not [line for line in lines if STAND_IN in line]
    own = [line.split(":")[0] for line in lines if ": yours, from " in line]
    assert own == asked_of(name)


@pytest.mark.parametrize("name", FIGURES)
def test_the_references_give_the_published_figures(name: str, solved: Course, once: Once) -> None:
    lines = once(solved, name)
    assert any("yours: the same figures" in line for line in lines)
    assert not [line for line in lines if "other figures" in line or "another shape" in line]


@pytest.mark.parametrize("name", FIGURES)
def test_arguments_in_another_order_are_called_as_grades_call_them(
    name: str, ada: Course, once: Once
) -> None:
    lines = once(ada, name)
    assert any("yours: the same figures" in line for line in lines)
    assert not [line for line in lines if "another shape" in line]


def test_a_look_makes_a_module_whose_arguments_are_in_another_order(
    ada: Course,
) -> None:
    lines = printed(run_look, ada, "causal_attention")
    assert any("CausalAttention: yours, from " in line for line in lines)


def shown(course: Course, name: str, once: Once) -> list[str]:
    """What an experiment shows, without the lines that say whose answers these are."""
    lines = once(course, name)
    return [line for line in lines if STAND_IN not in line and ": yours, from " not in line]


@pytest.mark.parametrize("name", sorted(set(EXPERIMENTS) - VARYING - set(FIGURES)))
def test_what_stands_in_gives_the_same_numbers_as_right_answers(
    name: str, unsolved: Course, solved: Course, once: Once
) -> None:
    before = shown(unsolved, name, once)
    assert shown(solved, name, once) == before


# What the text of each experiment rests on, with nothing solved.
TELLING = {
    "norms": ["no norm 1.519 5.181 26.957 666.727", "rms_norm 1.489 1.528 1.527 1.561"],
    "curves": ["-0.5 0.000 0.000 -0.154 0.133", "ReLU 926", "GELU 0"],
    "shortcuts": ["64 no x 0.0000 0.0000"],
    "gates": ["-20.0 -30.0 600.000 12.533 600.000"],
    "surprise": ["log(27) = 3.296", "0.0370 3.296", "0.9000 0.651"],
    "steps": ["plain, 0.0019 100 0.000 0.827", "AdamW, 0.02 100 -0.008 -0.008"],
    "temperature": ["2,000 others 88%"],
    "distance": ["0 4.322 -0.391 -3.225", "100 4.322 -0.391 -3.225"],
    "latent": ["multi-head 1,024 6.1 GiB 8", "latent 64 0.4 GiB 8", "absorbed 774,144"],
    "tables": ["log(5000) is 8.52", "deviation 0.02 8.54", "table once 320,000 102,144 76%"],
    "loops": ["the model sees the last 4 letters: a circle of 35 letters"],
}


@pytest.mark.parametrize("name", TELLING)
def test_the_numbers_that_its_text_rests_on_are_shown(
    name: str, unsolved: Course, once: Once
) -> None:
    text = " ".join(" ".join(once(unsolved, name)).replace("█", "").split())
    assert [part for part in TELLING[name] if part not in text] == []


def test_right_blocks_and_models_show_it_too_whatever_they_start_with(
    solved: Course, once: Once
) -> None:
    rows = [line.split() for line in once(solved, "shortcuts") if line.startswith("    64")]
    assert float(rows[0][4]) > 0.5
    assert float(rows[1][3]) == 0
    rows = [line.split() for line in once(solved, "tables") if "deviation" in line]
    large, _, small = (float(row[2]) for row in rows)
    assert large > 30
    assert 8.4 < small < 8.7


def test_another_answer_than_the_published_one_is_said_to_be_other_figures(
    solved: Course,
) -> None:
    path = solved.stub_file("softmax")
    before = path.read_text("utf-8")
    path.write_text("def softmax_naive(x):\n    return x\n\n\nnormalize_by_sum = softmax_naive\n")
    try:
        lines = said(solved, "softmax")
    finally:
        path.write_text(before, "utf-8")
    assert sum("yours: other figures" in line for line in lines) == 3


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_asks_for_exercises_that_are_there(name: str) -> None:
    assert set(asked_of(name)) <= COURSE.exercises.keys()
    title, _, about = said_of(COURSE.experiment_file(name)).partition("\n")
    assert title.endswith(".")
    assert len(about) > 80, "it says what to look at"


@cache
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
