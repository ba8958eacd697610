"""A bundle stands alone: its checks work with nothing of the clone beside it."""

from __future__ import annotations

import re

import pytest

from grader.course.course import Course, load_course
from tests.conftest import Grader
from tests.support.bundles import release_recorded, waits_for_recordings
from tests.support.places import ROOT

pytestmark = waits_for_recordings

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


CUT_OFF = {
    "running_mean_loop": (
        "averaging",
        "import torch\ndef running_mean_loop(x):\n    x = x.detach()\n"
        "    return torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1)\n",
        "no gradient reaches `x`",
    ),
    "SelfAttention_v2": (
        "self_attention",
        "import torch\nfrom torch import nn\nclass SelfAttention_v2(nn.Module):\n"
        "    def __init__(self, d_in, d_out, qkv_bias=False):\n        super().__init__()\n"
        "        for name in ('W_query', 'W_key', 'W_value'):\n"
        "            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))\n"
        "    def forward(self, x):\n"
        "        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5\n"
        "        return scores.softmax(-1).detach() @ self.W_value(x)\n",
        "the gradient of `x`:",
    ),
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_gradient_that_is_cut_off_fails_without_the_references_too(
    bundle: Course, grader: Grader, name: str
) -> None:
    unit, text, told = CUT_OFF[name]
    path = bundle.stub_file(unit)
    before = path.read_text("utf-8")
    path.write_text(text, "utf-8")
    try:
        ran = grader("check", name, "--course", bundle.folder)
    finally:
        path.write_text(before, "utf-8")
    assert ran.code == 1
    assert told in ran.out


def test_solved_every_unit_passes_and_units_may_import_one_another(
    bundle: Course, grader: Grader
) -> None:
    for unit in COURSE.units:
        text = (COURSE.solutions / f"{unit.name}.py").read_text("utf-8")
        bundle.stub_file(unit.name).write_text(text.replace("from .", "from "), "utf-8")
    ran = grader("check", "--course", bundle.folder)
    every = len(COURSE.exercises)
    assert f"{every} of {every} pass the public checks" in ran.out, ran.out
    assert (ran.code, ran.err) == (0, "")
    assert (bundle.folder / "progress.txt").read_text("utf-8").count("solved ") == every
