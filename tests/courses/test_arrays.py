"""A course on NumPy: audited, released, solved in the bundle, and graded for a class of three."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Grader
from tests.support.places import ROOT

ARRAYS = ROOT / "tests" / "courses" / "arrays"
COURSE = ARRAYS / "exercises"
UNITS = ("tables", "steps")

WRONG_TABLES = """
import numpy as np

def standardize(x):
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)

def one_hot(labels, classes):
    return [[float(label == n) for n in range(classes)] for label in labels]

def accuracy_by_class(scores, labels, names):
    right = scores.argmax(1) == labels
    shares = {n: right[labels == k].mean() if (labels == k).any() else None
              for k, n in enumerate(names)}
    names.clear()
    return shares
"""

# Everything here tries to look right to a comparison, or to break the process that reads it.
HOSTILE_TABLES = """
import numpy as np

class Equal(np.ndarray):
    def __eq__(self, other):
        return True
    shape = property(lambda self: (5, 3))

class Endless(dict):
    def items(self):
        return iter(int, 1)
    def __eq__(self, other):
        return True

def standardize(x):
    return np.lib.stride_tricks.as_strided(np.zeros(1).view(Equal), (2**30, 2**30), (0, 0))

def one_hot(labels, classes):
    return np.array([object()] * len(labels))

def accuracy_by_class(scores, labels, names):
    return Endless({float("nan"): 1.0, (1, float("nan")): 0.5})
"""


def solved(folder: Path, **texts: str) -> Path:
    """A folder with the references as answers, or with other texts for some units."""
    folder.mkdir()
    for unit in UNITS:
        text = texts.get(unit) or (ARRAYS / "solutions" / f"{unit}.py").read_text("utf-8")
        (folder / f"{unit}.py").write_text(text, "utf-8")
    return folder


def test_the_audit_finds_nothing(grader: Grader) -> None:
    ran = grader("audit", "--course", COURSE)
    assert ran.code == 0, ran.out


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays") / "bundle"


def test_a_student_solves_the_released_course(grader: Grader, released: Path) -> None:
    ran = grader("release", "student", "--course", COURSE, "--to", released)
    assert ran.code == 0, ran.err
    bundle = released / "exercises"
    unsolved = grader("check", "--course", bundle)
    assert unsolved.code == 1
    assert "✗" not in unsolved.out

    (bundle / "tables.py").write_text(WRONG_TABLES, "utf-8")
    wrong = grader("check", "standardize", "--course", bundle)
    assert "Each row is standardized, not each column" in wrong.out
    wrong = grader("check", "one_hot", "--course", bundle)
    assert "one_hot should return a NumPy array, got a list of 2 items" in wrong.out

    for unit in UNITS:
        shutil.copy(ARRAYS / "solutions" / f"{unit}.py", bundle / f"{unit}.py")
    ran = grader("check", "--course", bundle)
    assert ran.code == 0, ran.out


def test_a_class_of_three_is_graded(grader: Grader, tmp_path: Path) -> None:
    students = tmp_path / "class"
    students.mkdir()
    solved(students / "ada")
    solved(students / "bob", tables=WRONG_TABLES)
    solved(students / "eve", tables=HOSTILE_TABLES)
    ran = grader("grade", students, "--course", COURSE, "--out", tmp_path / "out")
    assert ran.code in (0, 1), ran.err
    rows = (tmp_path / "out" / "gradebook.csv").read_text("utf-8-sig").splitlines()
    names, *marks = [row.split(",") for row in rows]
    by_name = {row[0]: dict(zip(names, row, strict=True)) for row in marks}
    assert {name: row["status"] for name, row in by_name.items()} == dict.fromkeys(
        ("ada", "bob", "eve"), "graded"
    )
    assert float(by_name["ada"]["total"]) == 16
    assert float(by_name["eve"]["total"]) == 9
    assert 9 < float(by_name["bob"]["total"]) < 12
    results = (tmp_path / "out" / "results.jsonl").read_text("utf-8")
    assert "grader_error" not in results
    assert "`names` was changed in place: build a new list" in results


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "*/tables.py",
            "classes: int)",
            "classes: bytes)",
            "tables.py:13: one_hot: parameter classes: bytes cannot be sent to a student's code",
        ),
        (
            "solutions/graders/test_tables.py",
            "np.array([1, 0, 3, 1, 1]), 4",
            "np.array([None]), 4",
            "AuthorError: one_hot, argument labels: an array of dtype object",
        ),
    ],
)
def test_an_author_who_sends_something_else_is_told(
    grader: Grader, tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    shutil.copytree(ARRAYS, tmp_path / "arrays")
    for path in (tmp_path / "arrays").glob(file):
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
    ran = grader("audit", "one_hot", "--course", tmp_path / "arrays" / "exercises")
    assert ran.code in (1, 2)
    assert told in ran.out + ran.err
