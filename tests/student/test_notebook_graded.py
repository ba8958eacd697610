"""The same notebook, checked in IPython and graded: one verdict, or a sentence that says why not.

The notebooks are those that IPython runs and Python does not read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.course.course import NAMED
from grader.student.cells import JUPYTER
from tests.conftest import Grader
from tests.support.places import REAL, ROOT

NAIVE = """\
def softmax_naive(scores):
    e = torch.exp(scores)
    return e / e.sum(dim=-1)
"""
ROWS = """\
def softmax_rows(scores):
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)
"""
BOTH = f"import torch\n\n{NAIVE}\n{ROWS}"
NAMES = ("softmax_naive", "softmax_rows")
BESIDE = {"helpers.py": "def totals(e):\n    return e.sum(-1, keepdim=True)\n"}


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}" for line in text.splitlines(keepends=True))


# IPython runs each of these, and then both answers are right.
CELLS = {
    "a_branch": [
        "import torch\nUSE_MINE = True",
        f"if USE_MINE:\n{indented(ROWS, '    ')}else:\n    softmax_rows = lambda s: s*0\n"
        "    def softmax_rows(s): return s\n",
        NAIVE,
    ],
    "a_command_over_two_lines": [f"!echo -q torch \\\n    einops\n{BOTH}"],
    "a_loop_of_the_shell": [f"!for i in 1 2; do \\\n echo $i; \\\ndone\n{BOTH}"],
    "a_magic_in_a_function": [
        "def setup():\n    %matplotlib inline\n    !pip install \\\n      einops\n" + BOTH
    ],
    "indented": [indented(BOTH, "    ")],
    "indented_by_tabs": [indented(BOTH, "\t")],
    "prompts": [
        "import torch",
        ">>> def softmax_naive(scores):\n...     e = torch.exp(scores)\n"
        "...     return e / e.sum(-1)\n",
        "In [3]: def softmax_rows(scores):\n   ...:     e = torch.exp(scores)\n"
        "   ...:     return e / e.sum(-1, keepdim=True)\n",
    ],
    "an_import_that_is_timed": [f"%time import torch\n\n{NAIVE}\n{ROWS}"],
    "a_profile": [f"%%prun -l 3\n{BOTH}"],
    "a_file_that_is_run": [
        "%run helpers.py\nimport torch\ndef softmax_rows(s):\n    e = torch.exp(s)\n"
        "    return e / totals(e)\ndef softmax_naive(s):\n    return softmax_rows(s[None])[0]\n"
    ],
    "a_file_that_is_written": [f"%%writefile softmax.py\n{BOTH}"],
    "a_percent_sign_in_an_expression": [f"!echo einops\nimport torch\nbase = (7\n    % 4)\n{BOTH}"],
    "a_percent_sign_on_a_line_of_its_own": [f"!ls\nimport torch\nx = 7 \\\n    % 2\n{BOTH}"],
    "a_command_into_an_attribute": [f"class A: pass\na = A()\na.files = !ls\n{BOTH}"],
    "a_command_with_an_annotation": [f"files : list = !ls\n{BOTH}"],
    "a_question_mark": [f"import torch\ntorch.*max*?\n{BOTH}"],
}  # fmt: skip


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the kit's own course, since progress is written into it."""
    shutil.copytree(REAL, tmp_path / "kit" / "exercises")
    shutil.copytree(ROOT / "solutions", tmp_path / "kit" / "solutions")
    return tmp_path / "kit" / "exercises"


def test_a_notebook_is_checked_as_it_is_graded(
    shell: Any,
    course: Path,
    grader: Grader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAMED, str(course))  # here, since `grader` forgets an earlier one
    folder, out = tmp_path / "class", tmp_path / "out"
    checked, said = {}, {}
    for name, cells in CELLS.items():
        file = write(folder / name, cells)
        monkeypatch.chdir(file.parent)
        monkeypatch.setenv(JUPYTER, str(file))
        shell.reset()
        for text in cells:
            shell.run_cell(text, store_history=True)
        ran = shell.run_cell(f"import grader\ngrader.check(*{NAMES})", store_history=True)
        ran.raise_error()
        checked[name] = {one.name: one.solved for one in ran.result.results}
        said[name] = repr(ran.result)
        assert "the saved notebook" not in said[name]
    only = [part for name in NAMES for part in ("--only", name)]
    graded = grader("grade", folder, "--out", out, "--course", course, *only)
    assert graded.code == 0, graded.err
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    grades = {grade["student"]: grade["exercises"] for grade in map(json.loads, lines)}
    for name, exercises in grades.items():
        if name != "a_file_that_is_written":
            right = {one["name"]: one["points"] == one["max"] for one in exercises}
            assert checked[name] == right, name
    assert all(f"softmax.py defines {one}" in said["a_file_that_is_written"] for one in NAMES)


def write(folder: Path, cells: Sequence[str]) -> Path:
    """The submission: a notebook, and a file beside it."""
    folder.mkdir(parents=True)
    made = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    made.cells = [nbformat.v4.new_code_cell(text) for text in cells]  # type: ignore[no-untyped-call]
    for name, text in {"softmax.ipynb": nbformat.writes(made), **BESIDE}.items():  # type: ignore[no-untyped-call]
        (folder / name).write_text(text, "utf-8")
    return folder / "softmax.ipynb"
