"""`from grader.mine import NAME`: the student's own latest answer, from a file or a notebook."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader import mine
from grader.course.course import NAMED
from grader.records.faults import CallError
from grader.release.notebooks import code_cell
from grader.release.notebooks import notebook as released
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
