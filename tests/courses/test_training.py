"""A small course whose tests hand models and batches to students: audited, released, solved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Grader
from tests.support.places import ROOT

COURSE = ROOT / "tests" / "courses" / "training"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course's folder of exercises, with its solutions beside it."""
    copied = tmp_path_factory.mktemp("course") / "training"
    shutil.copytree(COURSE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied / "exercises"


def test_the_audit_finds_nothing(course: Path, grader: Grader) -> None:
    ran = grader("audit", "--course", course)
    assert (ran.code, ran.err) == (0, "")


@pytest.fixture
def bundle(course: Path, grader: Grader, tmp_path: Path) -> Path:
    """What a student has: recordings in place of the references."""
    ran = grader("release", "student", "--course", course, "--to", tmp_path / "bundle")
    assert ran.code == 0, ran.err
    return tmp_path / "bundle" / "exercises"


def test_a_student_solves_it_in_their_bundle(bundle: Path, grader: Grader) -> None:
    for unit in ("steps", "loops"):
        shutil.copyfile(COURSE / "solutions" / f"{unit}.py", bundle / f"{unit}.py")
    ran = grader("check", "--course", bundle)
    assert (ran.code, "6 of 6 pass" in ran.out) == (0, True), ran.out


WRONG = """
from torch.nn.functional import cross_entropy

def train(model, batches, rate):
    model.train()
    for inputs, targets in batches:
        cross_entropy(model(inputs), targets).backward()
        for weight in model.parameters():
            weight.data -= rate * weight.grad

def accuracy(model, inputs, targets):
    return (model.eval()(inputs).argmax(-1) == targets).float().mean()
"""


def test_the_recordings_name_mistakes_that_only_a_model_shows(bundle: Path, grader: Grader) -> None:
    (bundle / "loops.py").write_text(WRONG, "utf-8")
    ran = grader("check", "train", "accuracy", "--course", bundle)
    assert ran.code == 1
    assert "Gradients of earlier batches are added" in ran.out
    assert "The model is left in evaluation mode" in ran.out


def test_a_notebook_has_the_dataclass_that_its_stubs_name(bundle: Path) -> None:
    text = (bundle.parent / "notebooks" / "steps.ipynb").read_text("utf-8")
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(text)["cells"]}
    scope: dict[str, Any] = {}
    for cell in ("steps-imports", "steps-given", "momentum_step-answer"):
        exec("from __future__ import annotations\n" + cells[cell], scope)
    assert scope["Momentum"](1.0, 2.0).steps == 0
