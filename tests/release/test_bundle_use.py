"""A bundle stands alone: its checks work with nothing of the clone beside it."""

from __future__ import annotations

import re

import pytest

from grader.course.course import Course, load_course
from tests.conftest import Grader
from tests.support.bundles import release_recorded
from tests.support.places import ROOT

COURSE = load_course(ROOT / "exercises")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Course:
    folder = tmp_path_factory.mktemp("release") / "bundle"
    release_recorded(folder)
    return load_course(folder / "exercises")


def test_unsolved_every_exercise_fails_with_kind_words(bundle: Course, grader: Grader) -> None:
    ran = grader("check", "softmax", "--course", bundle.folder)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.count("still the stub: replace `raise NotImplementedError`") == 4
    assert "✗" not in ran.out


def test_a_mistake_is_called_by_its_name(bundle: Course, grader: Grader) -> None:
    path = bundle.stub_file("softmax")
    before = path.read_text("utf-8")
    wrong = "    return torch.exp(scores) / torch.exp(scores).sum(dim=0, keepdim=True)"
    head, stub, tail = before.partition("def softmax_rows")
    path.write_text(head + stub + tail.replace("    raise NotImplementedError", wrong, 1), "utf-8")
    try:
        ran = grader("check", "softmax_rows", "--course", bundle.folder)
    finally:
        path.write_text(before, "utf-8")
    assert ran.code == 1
    assert re.search(r"✗ softmax_rows\n +[A-Z].*\n +.*\?\n", ran.out), "a name, and a question"


def test_solved_every_unit_passes_and_units_may_import_one_another(
    bundle: Course, grader: Grader
) -> None:
    for unit in COURSE.units:
        text = (COURSE.solutions / f"{unit.name}.py").read_text("utf-8")
        bundle.stub_file(unit.name).write_text(text.replace("from .", "from "), "utf-8")
    ran = grader("check", "--course", bundle.folder)
    assert "71 of 71 pass the public checks" in ran.out, ran.out
    assert (ran.code, ran.err) == (0, "")
    assert (bundle.folder / "progress.txt").read_text("utf-8").count("solved ") == 71
