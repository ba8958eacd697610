"""An exercise that takes a model, on its whole road: graded, diagnosed, explained, recorded."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.grading.order import Order
from grader.inspection.debugger import debug
from grader.intake import Submission
from grader.intake.arrivals import Arrivals
from grader.records.grade import ExerciseResult
from grader.release.recording import record_course
from grader.run.batch import grade_into
from grader.sandbox.jails import Warm
from grader.student.checking import open_checker
from grader.wire import SourceText
from tests.conftest import Grader, sharing
from tests.support.places import TINY

COURSE = """
[[unit]]
name = "words"
title = "One id after another"

[[unit.exercise]]
name = "next_ids"
title = "The likeliest next id"
points = 2
"""
REFERENCE = '''"""The third unit."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor, nn


def next_ids(model: nn.Module, ids: Int[Tensor, "batch tokens"]) -> Int[Tensor, " batch"]:
    """Find the likeliest id after each row."""
    return model(ids)[:, -1].argmax(dim=-1)
'''
STUB = REFERENCE.replace("return model(ids)[:, -1].argmax(dim=-1)", "raise NotImplementedError")
TESTS = '''"""Tests of the third unit."""

from grader.course.collection import rung
from grader.testing import assert_agrees, table_model


@rung.value("next_ids")
def test_next_ids_{which}(student, reference, make):
    """The likeliest id comes next."""
    model = table_model(make, vocab=7, context_length=4)
    ids = make.integers(0, 7, batch=3, tokens=4)
    assert_agrees(student.next_ids(model, ids), reference.next_ids(model, ids))
'''
MISTAKES = '''"""Known answers of the third unit."""

from grader.mistakes import mistake

mistake(
    "next_ids",
    "first",
    "The first position is asked for the next id",
    hint="Which position knows all ids?",
    change={"-1]": "0]"},
)
mistake(
    "next_ids",
    "least",
    "The least likely id comes next",
    hint="Which logit is largest?",
    change={"argmax": "argmin"},
)
'''
RIGHT = "def next_ids(model, ids):\n    return model(ids).argmax(dim=-1)[:, -1]\n"
WRONG = (
    "def next_ids(model, ids):\n    logits = model(ids)\n    return logits.argmax(dim=-1)[:, 0]\n"
)


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The tiny course with one unit more."""
    folder = shutil.copytree(TINY, tmp_path_factory.mktemp("course") / "tiny")
    exercises, solutions = folder / "exercises", folder / "solutions"
    with (exercises / "course.toml").open("a", encoding="utf-8") as file:
        file.write(COURSE)
    texts = {
        exercises / "words.py": STUB,
        exercises / "checks" / "test_words.py": TESTS.format(which="in_public"),
        solutions / "words.py": REFERENCE,
        solutions / "graders" / "test_words.py": TESTS.format(which="hidden"),
        solutions / "mistakes" / "words.py": MISTAKES,
    }
    for path, text in texts.items():
        path.write_text(text, "utf-8")
    return load_course(exercises)


@pytest.fixture(scope="module")
def bundle(worded: Course, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """What a student has of it: recordings, and no solutions."""
    folder = shutil.copytree(worded.folder, tmp_path_factory.mktemp("bundle") / "exercises")
    record_course(worded, folder / "recorded")
    return load_course(folder)


def checked(course: Course, text: str, folder: Path, warm: Warm) -> ExerciseResult:
    (folder / "words.py").write_text(text, "utf-8")
    with sharing(warm), open_checker(course, folder=folder) as checker:
        (result,) = checker.check(["next_ids"])
    return result


def mistakes_in(result: ExerciseResult) -> set[str | None]:
    return {test.mistake for test in result.tests if test.status == "failed"}


@pytest.fixture(params=["solutions", "recordings"])
def course(request: pytest.FixtureRequest) -> Course:
    """The course, or what a student has of it."""
    name = {"solutions": "worded", "recordings": "bundle"}[request.param]
    found: Course = request.getfixturevalue(name)
    return found


def test_a_right_answer_is_solved(course: Course, warm: Warm, tmp_path: Path) -> None:
    assert checked(course, RIGHT, tmp_path, warm).solved


def test_a_wrong_answer_gets_the_name_of_its_mistake(
    course: Course, warm: Warm, tmp_path: Path
) -> None:
    found = mistakes_in(checked(course, WRONG, tmp_path, warm))
    assert found == {"The first position is asked for the next id"}


def test_an_explanation_shows_the_model_among_the_inputs(
    worded: Course, grader: Grader, tmp_path: Path
) -> None:
    handed_in = Submission("bob", (SourceText("words.py", (WRONG,)),))
    order = Order(worded, worded.hidden_seed(), worded.tests_of())
    grade_into(tmp_path / "out", order, Arrivals((handed_in,)), jobs=1)
    ran = grader(
        "explain", tmp_path / "out", "bob", "test_next_ids_hidden",
        "--course", worded.folder, "--json",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    told = json.dumps(json.loads(ran.out))
    assert "TableModel table (7, 7), steps (4, 7)" in told


def test_the_debugger_stops_in_the_answer_and_not_in_the_model(
    worded: Course, tmp_path: Path
) -> None:
    (tmp_path / "words.py").write_text(WRONG, "utf-8")
    out = StringIO()
    assert debug(worded, "next_ids", tmp_path, stdin=StringIO("n\np logits.shape\nc\n"), stdout=out)
    assert "torch.Size([3, 4, 7])" in out.getvalue()
