"""`grader.play` in a real kernel: a cell that moves, and a model to ask in the next one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from grader.course.course import NAMED
from tests.playing.conftest import GPTS, answer
from tests.support.places import REAL


class Cells:
    """A kernel beside a course; a cell's outputs as text, and how often its picture changed."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client

    def run(self, text: str) -> list[Any]:
        cell = nbformat.v4.new_code_cell(text)  # type: ignore[no-untyped-call]
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return list(cell.outputs)

    def said(self, text: str) -> str:
        return "\n".join(map(text_of, self.run(text)))


def text_of(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data["text/plain"])


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    root = tmp_path_factory.mktemp("kernel")
    course = root / "exercises"
    shutil.copytree(REAL / "afterwards" / "play", course / "afterwards" / "play")
    shutil.copyfile(GPTS / "course.toml", course / "course.toml")
    answer(course, "by_hand")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NAMED, str(course))
        patch.setenv("IPYTHONDIR", str(root / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))
        client = NotebookClient(
            nbformat.v4.new_notebook(),  # type: ignore[no-untyped-call]
            timeout=120,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": str(root)}},
        )
        with client.setup_kernel():
            running = Cells(client)
            running.run("import grader")
            yield running


def test_a_cell_shows_how_it_ended_in_words_and_in_pictures(cells: Cells) -> None:
    outputs = cells.run('played = grader.play("addition", steps=3)')
    frame = next(one for one in outputs if "text/html" in one.get("data", {}))
    assert "Ended after 3 steps" in text_of(frame)
    assert "A page to show around: addition.html" in text_of(frame)
    html = frame.data["text/html"]
    assert html.count("<svg") == 2
    assert "<script" not in html
    assert cells.said("import pathlib; print(pathlib.Path('addition.html').exists())") == "True\n"


def test_what_was_trained_answers_in_the_next_cell(cells: Cells) -> None:
    cells.run('played = grader.play("addition", steps=3)')
    assert cells.said('played.ask("57+68")').startswith("57+68=")
    assert "type two numbers from 0 to 99" in cells.said('played.ask("seven")')
    assert cells.said("played.attention(2, 3)").startswith("layer 2, head 3")
    assert "there is no such head" in cells.said("played.attention(7)")


def test_what_cannot_be_played_is_said_in_a_line(cells: Cells) -> None:
    said = cells.said('grader.play("addition", heads=5)')
    assert "grader: 5 heads do not divide the width of 64" in said
    assert "Traceback" not in said


def test_a_training_that_is_interrupted_goes_on_with_what_is_learnt(cells: Cells) -> None:
    cells.run(
        "import grader.playing.learning as learning\n"
        "from unittest import mock\n"
        "right = learning.Learning._learn\n"
        "def stopped(self):\n"
        "    if self.step == 2: raise KeyboardInterrupt\n"
        "    right(self)\n"
    )
    said = cells.said(
        "with mock.patch.object(learning.Learning, '_learn', stopped):\n"
        '    played = grader.play("addition")\n'
    )
    assert "Stopped after 2 steps" in said
