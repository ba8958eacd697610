"""A mistake that an earlier exercise made is told as what it is, and costs once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.checking import open_checker
from grader.course import load_course
from grader.desk import Desk, open_desk
from grader.grade import ExerciseResult
from grader.grading import grade
from grader.intake import Submission
from grader.jail.jails import Warm
from grader.jail.wire import SourceText
from tests.conftest import sharing

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "solutions" / "causal_attention.py").read_text("utf-8")
NAMES = ("causal_mask", "CausalAttention")
MASK = ("diagonal=1", "diagonal=0")
NO_SCALE = (" / d_out**0.5", "")
TITLE = "The diagonal is hidden too, so a token cannot see itself"


@contextmanager
def opened(warm: Warm, folder: Path) -> Iterator[Desk]:
    course = load_course(folder / "exercises")
    seed, files = course.hidden_seed(), course.test_files()
    with sharing(warm), open_desk(course, seed=seed, files=files, only=NAMES) as desk:
        yield desk


@pytest.fixture(scope="module")
def desk(warm: Warm) -> Iterator[Desk]:
    with opened(warm, ROOT) as desk:
        yield desk


def graded(desk: Desk, *changes: tuple[str, str]) -> dict[str, ExerciseResult]:
    """The reference with these changes, graded."""
    text = REFERENCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    submission = Submission("ada", (SourceText("causal_attention.py", (text,)),))
    return {result.name: result for result in grade(desk, submission).exercises}


def told(result: ExerciseResult) -> set[str | None]:
    return {test.mistake for test in result.tests if test.status in ("failed", "error")}


def test_a_layer_on_a_wrong_mask_is_told_where_its_results_come_from(desk: Desk) -> None:
    results = graded(desk, MASK)
    assert told(results["causal_mask"]) == {TITLE}
    assert told(results["CausalAttention"]) == {f"Follows from causal_mask: {TITLE}"}


def test_what_follows_costs_nothing_again(desk: Desk) -> None:
    results = graded(desk, MASK)
    assert results["causal_mask"].points == 0
    assert results["CausalAttention"].points == results["CausalAttention"].max


def test_it_costs_again_where_the_course_says_so(warm: Warm, tmp_path: Path) -> None:
    for folder in ("exercises", "solutions"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    toml = tmp_path / "exercises" / "course.toml"
    name = 'name = "CausalAttention"\n'
    assert toml.read_text("utf-8").count(name) == 1
    toml.write_text(toml.read_text("utf-8").replace(name, f"{name}costs_again = true\n"), "utf-8")
    with opened(warm, tmp_path) as desk:
        result = graded(desk, MASK)["CausalAttention"]
    assert told(result) == {f"Follows from causal_mask: {TITLE}"}
    assert result.points < result.max / 2


def test_a_mistake_of_the_layers_own_costs_its_points_all_the_same(desk: Desk) -> None:
    alone, both = graded(desk, NO_SCALE), graded(desk, MASK, NO_SCALE)
    assert told(alone["CausalAttention"]) != {None}
    assert not any("Follows from" in str(name) for name in told(both["CausalAttention"]))
    assert both["CausalAttention"].points <= alone["CausalAttention"].points


def test_what_does_not_follow_is_asked_although_the_mask_was_wrong(desk: Desk) -> None:
    plain = ('self.register_buffer("mask", causal_mask', 'setattr(self, "mask", causal_mask')
    result = graded(desk, MASK, plain)["CausalAttention"]
    statuses = {test.name: test.status for test in result.tests}
    assert statuses["test_causal_attention_moves_as_a_whole"] == "error"
    assert statuses["test_causal_attention_agrees_with_the_reference"] == "failed"
    assert 0 < result.max - result.points < result.max / 4


def test_a_check_of_the_layer_alone_looks_below_it(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "causal_attention.py").write_text(REFERENCE.replace(*MASK), "utf-8")
    with sharing(warm), open_checker(
        load_course(ROOT / "exercises"), ["CausalAttention"], tmp_path
    ) as checker:  # fmt: skip
        (result,) = checker.check()
    assert told(result) == {f"Follows from causal_mask: {TITLE}"}


def test_nothing_follows_from_a_mistake_on_which_the_right_answer_would_pass(
    warm: Warm, tmp_path: Path
) -> None:
    (tmp_path / "softmax.py").write_text(
        "import torch\n"
        "def normalize_by_sum(scores):\n    return (scores / scores.sum()).detach()\n"
        "def softmax_naive(scores):\n    scores.exp_()\n    return scores / scores.sum()\n",
        "utf-8",
    )
    with sharing(warm), open_checker(
        load_course(ROOT / "exercises"), ["normalize_by_sum", "softmax_naive"], tmp_path
    ) as checker:  # fmt: skip
        results = {result.name: result for result in checker.check()}
    assert not any("Follows" in (title or "") for title in told(results["softmax_naive"]))
