"""`from grader.mine import NAME`: the student's own latest answer, from a file or a notebook."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader import mine
from grader.course.course import NAMED, load_course
from grader.records.faults import CallError
from grader.release.notebooks import code_cell
from grader.release.notebooks import notebook as released
from grader.release.recording import record_course
from grader.student.scripts import run_look
from tests.support.places import TINY

STUB = "def center(x):\n    raise NotImplementedError\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tiny course, which the environment names."""
    shutil.copytree(TINY / "exercises", tmp_path / "exercises")
    monkeypatch.setenv(NAMED, str(tmp_path / "exercises"))
    yield tmp_path / "exercises"
    mine.forget()


def imported(name: str) -> Any:
    return getattr(mine, name)  # as an import does


def notebook(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(released([code_cell("a", text)]), "utf-8")


def test_the_latest_saved_answer_comes_and_says_from_where(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "basics.py").write_text("def center(x):\n    return 'first'\n", "utf-8")
    assert imported("center")(0) == "first"
    (folder / "basics.py").write_text("\ndef center(x):\n    return 'second'\n", "utf-8")
    assert imported("center")(0) == "second"
    assert capsys.readouterr().out.splitlines() == [
        "center: yours, from basics.py line 1",
        "center: yours, from basics.py line 2",
    ]


def test_a_notebooks_answer_comes_before_a_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "basics.py").write_text("def center(x):\n    return 'file'\n", "utf-8")
    notebook(folder.parent / "notebooks" / "basics.ipynb", "def center(x):\n    return 'cell'\n")
    assert imported("center")(0) == "cell"
    assert "basics.ipynb" in capsys.readouterr().out


def test_an_answer_brings_what_it_uses_from_other_files(folder: Path) -> None:
    (folder / "basics.py").write_text("def center(x):\n    return x - 1\n", "utf-8")
    (folder / "layers.py").write_text(
        "from basics import center\n\nclass Projection:\n    use = staticmethod(center)\n", "utf-8"
    )
    assert imported("Projection").use(3) == 2


def test_an_import_of_the_courses_folder_means_what_is_saved_and_no_other_folder_of_that_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubs = tmp_path / "a clone of the kit" / "exercises"
    stubs.mkdir(parents=True)
    (stubs / "basics.py").write_text(STUB, "utf-8")
    for name in ("exercises", "exercises.basics"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(stubs.parent)
    notebook(folder.parent / "notebooks" / "basics.ipynb", "def center(x):\n    return 'cell'\n")
    (folder / "layers.py").write_text(
        "from exercises.basics import center\n\n"
        "class Projection:\n    use = staticmethod(center)\n",
        "utf-8",
    )
    assert imported("Projection").use(3) == "cell"


def test_two_answers_know_the_same_classes(folder: Path) -> None:
    (folder / "basics.py").write_text(
        "class Half:\n    pass\n\n"
        "def center(x):\n    return Half()\n\n"
        "def weigh(x):\n    return isinstance(x, Half)\n",
        "utf-8",
    )
    assert imported("weigh")(imported("center")(0))


def test_a_text_is_not_run_from_top_to_bottom(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "basics.py").write_text(
        "print('training')\n\ndef center(x):\n    return x\n", "utf-8"
    )
    imported("center")
    assert "training" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STUB, "center is not written yet"),
        ("", "center is not written yet"),
        ("def center(x:\n", "basics.py line 1 is not valid Python"),
        ("import nosuch\ncenter = nosuch.center\n", "basics.py line 1 raised ModuleNotFoundError"),
    ],
)
def test_an_answer_that_is_not_there_says_why(folder: Path, text: str, said: str) -> None:
    (folder / "basics.py").write_text(text, "utf-8")
    with pytest.raises(CallError) as raised:
        imported("center")
    assert said in str(raised.value)


def test_a_name_that_is_no_exercise_gets_the_nearest(folder: Path) -> None:
    with pytest.raises(CallError, match="did you mean center"):
        imported("centre")


# --- called by a script of the course ------------------------------------------------------------

LOOK = """\
import torch

from grader.mine import Projection, center

print(center(torch.tensor([4.0, 8.0]), 3.0).tolist())
print(Projection(2, 5)(torch.ones(1, 2), 10.0).tolist())
"""
REFERENCES = {
    "basics": """\
from torch import Tensor

def center(x: Tensor, by: float) -> Tensor:
    return x - by

def staircase(size: int) -> Tensor: ...

def weigh(scores: Tensor) -> Tensor: ...
""",
    "layers": """\
from torch import Tensor, nn

class Projection(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None: ...

    def forward(self, x: Tensor, scale: float) -> Tensor: ...
""",
}
# In another order, under other spellings, and with an argument more.
TURNED_ROUND = """\
import torch

def center(By, X, times=1.0):
    return X * times - By

class Projection(torch.nn.Module):
    def __init__(self, out_features, d_in):
        super().__init__()
        self.d_in, self.d_out = d_in, out_features

    def forward(self, scale, x):
        return self.halved(x) + scale

    def halved(self, x):
        assert x.shape == (1, self.d_in)
        return torch.full((1, self.d_out), 0.5)
"""
SHOWN = ["[1.0, 5.0]", "[[10.5, 10.5, 10.5, 10.5, 10.5]]"]


@pytest.fixture
def two_arguments(folder: Path) -> Path:
    """The course with a look, and with references beside it that take two arguments each."""
    (folder / "afterwards" / "basics.py").write_text(f'"""See."""\n{LOOK}', "utf-8")
    (folder.parent / "solutions").mkdir()
    for unit, text in REFERENCES.items():
        (folder.parent / "solutions" / f"{unit}.py").write_text(text, "utf-8")
    return folder


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    run_look(load_course(folder), "basics")
    return [line for line in capsys.readouterr().out.splitlines() if ": yours" not in line]


def test_a_script_calls_an_answer_whose_arguments_are_in_another_order_by_their_names(
    two_arguments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (two_arguments / "basics.py").write_text(TURNED_ROUND, "utf-8")
    assert shown(two_arguments, capsys) == SHOWN


def test_an_experiment_calls_what_a_notebook_has_defined_the_same_way(
    two_arguments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (two_arguments / "progress.txt").write_text("solved center\n", "utf-8")
    ran_in_cells(monkeypatch, "def center(by, x):\n    return x - by\n")
    instead: Any = None
    assert mine.yours("center", instead)(8.0, 3.0) == 5.0


def ran_in_cells(monkeypatch: pytest.MonkeyPatch, *cells: str) -> None:
    """Stand in for a notebook's kernel in which these cells ran."""
    shell = SimpleNamespace(
        user_ns={},
        user_ns_hidden={},
        history_manager=SimpleNamespace(input_hist_raw=["", *cells]),
        compile=None,
    )
    for cell in cells:
        exec(cell, shell.user_ns)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize(
    "cells", [(STUB,), ("from grader.mine import center",), ("def center(x):\n    ...\n",)]
)
def test_an_experiment_takes_a_files_answer_if_no_cell_has_written_one(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cells: Sequence[str],
) -> None:
    (folder / "progress.txt").write_text("solved center\n", "utf-8")
    (folder / "basics.py").write_text("def center(x):\n    return 'file'\n", "utf-8")
    ran_in_cells(monkeypatch, *cells)
    capsys.readouterr()
    instead: Any = None
    assert mine.yours("center", instead)(0) == "file"
    assert capsys.readouterr().out == "center: yours, from basics.py line 1\n"


def test_their_own_code_calls_it_in_their_own_order(
    two_arguments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (two_arguments / "basics.py").write_text(TURNED_ROUND, "utf-8")
    assert imported("center")(3.0, 8.0) == 5.0
    layers = two_arguments / "layers.py"
    layers.write_text("from grader.mine import center\n\ndef Projection(d_in, d_out):\n", "utf-8")
    with layers.open("a", encoding="utf-8") as file:
        file.write("    return lambda x, scale: x + center(3.0, scale)\n")
    (two_arguments / "basics.py").write_text(TURNED_ROUND.partition("class")[0], "utf-8")
    assert shown(two_arguments, capsys) == [SHOWN[0], "[[8.0, 8.0]]"]


def test_what_an_answer_raises_in_another_order_is_said_with_its_own_line(
    two_arguments: Path,
) -> None:
    (two_arguments / "basics.py").write_text("def center(by, x):\n    return x.nonsense\n", "utf-8")
    (two_arguments / "layers.py").write_text("Projection = 1\n", "utf-8")
    with pytest.raises(CallError, match=r"ended at basics\.py line 2: AttributeError"):
        run_look(load_course(two_arguments), "basics")


def test_an_answer_in_the_contracts_order_is_the_students_own_object(two_arguments: Path) -> None:
    look = '"""See."""\nfrom grader.mine import center\nassert center(1, 2) is center\n'
    (two_arguments / "afterwards" / "basics.py").write_text(look, "utf-8")
    (two_arguments / "basics.py").write_text("def center(x, by):\n    return center\n", "utf-8")
    run_look(load_course(two_arguments), "basics")


def test_a_students_folder_without_solutions_knows_the_order_from_its_recordings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_course(load_course(TINY / "exercises"), folder / "recorded")
    look = '"""See."""\nfrom grader.mine import Projection\nprint(vars(Projection(2, 5))["d_in"])\n'
    (folder / "afterwards" / "basics.py").write_text(look, "utf-8")
    (folder / "layers.py").write_text(TURNED_ROUND, "utf-8")
    assert shown(folder, capsys) == ["2"]
