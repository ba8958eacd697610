"""Notebooks for a hosted service: the cell that installs the kit, and the course that it brings."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from grader import __version__
from grader.course.course import NAMED, Course
from grader.records.faults import CallError
from grader.release.hosted import wheel_at
from grader.release.notebooks import write_notebooks
from grader.release.student import write_student_bundle
from grader.student.progress import FILE
from tests.conftest import Grader
from tests.support.places import ROOT, TINY

NAME = f"attention_grader-{__version__}-py3-none-any.whl"
RUN_FIRST = "Run the first code cell of this notebook: it installs the kit."


@pytest.fixture(scope="module")
def pages(tiny: Course, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The tiny course's notebooks, without and with the option."""
    plain, hosted = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("hosted")
    write_notebooks(tiny, plain)
    write_notebooks(tiny, hosted, wheel_at(f"https://example.org/{NAME}"))
    return plain, hosted


def cells(folder: Path, unit: str = "basics") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / f"{unit}.ipynb").read_text("utf-8"))["cells"]
    return found


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://example.org/", "does not end in a wheel's name"),
        ("https://example.org/kit.whl", "does not end in a wheel's name"),
        (f"https://[example/{NAME}", "does not end in a wheel's name"),
        (f"ftp://example.org/{NAME}", "is not an address that begins with https://"),
        (f'https://example.org/"/{NAME}', "is not an address that begins with https://"),
        ("https://example.org/torch-2.9.0-py3-none-any.whl", "is not the wheel of this kit"),
        (NAME.replace(__version__, "0.0.1"), "is not an address"),
        ("file:///" + NAME.replace(__version__, "0.0.1"), "is not the wheel of this kit"),
    ],
)
def test_an_address_without_the_kits_wheel_is_refused_in_one_line(url: str, why: str) -> None:
    with pytest.raises(CallError, match=why) as refused:
        wheel_at(url)
    assert len(str(refused.value).splitlines()) == 1


def test_the_command_refuses_a_bad_address_before_it_writes_anything(
    grader: Grader, tmp_path: Path
) -> None:
    to = tmp_path / "bundle"
    options = ("--course", TINY, "--to", to, "--wheel-url", "https://example.org/kit.whl")
    ran = grader("release", "student", *options)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran.err
    assert not to.exists()


def test_a_query_and_a_hash_may_follow_the_wheels_name() -> None:
    url = f"https://example.org/{NAME}?download=1#sha256=00"
    assert wheel_at(url).url == url


def test_the_first_code_cell_installs_the_wheel_and_keeps_torch(pages: tuple[Path, Path]) -> None:
    title, about, install, *_ = cells(pages[1])
    assert title["id"] == "basics-title"
    text = "".join(install["source"])
    assert f'_begin("https://example.org/{NAME}", "{__version__}")' in text
    assert "torch=={before['torch']}" in text
    assert "Restart the kernel" in text
    said = "".join(about["source"])
    assert "Download\nthe notebook" in said
    assert "mount your drive" in said


def test_the_option_only_adds_two_cells_and_a_line_above_code(pages: tuple[Path, Path]) -> None:
    plain, hosted = map(cells, pages)
    without = [cell for cell in hosted if not cell["id"].endswith(("-hosted", "-install"))]
    assert len(without) == len(hosted) - 2
    for cell in without:
        if cell["cell_type"] == "code":
            (line,) = (line for line in cell["source"] if RUN_FIRST in line)
            cell["source"].remove(line)
    assert without == plain


@pytest.fixture
def installed(tiny: Course, tmp_path: Path) -> Path:
    """A folder with the engine and the tiny course, as a wheel installs them."""
    folder = tmp_path / "installed"
    ignored = shutil.ignore_patterns("__pycache__", "bundle")
    shutil.copytree(ROOT / "grader", folder / "grader", ignore=ignored)
    write_student_bundle(tiny, tmp_path / "bundle")
    carried = folder / "grader" / "bundle"
    shutil.copytree(tmp_path / "bundle" / "exercises", carried / "exercises")
    return folder


def test_a_notebook_alone_in_a_folder_checks_with_the_course_that_the_kit_carries(
    pages: tuple[Path, Path], installed: Path, right: str, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    notebook: Any = nbformat.read(pages[1] / "basics.ipynb", 4)  # type: ignore[no-untyped-call]
    by_id = {cell.id: cell for cell in notebook.cells}
    client = NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": alone}},
    )

    def said(name: str) -> str:
        client.execute_cell(by_id[name], notebook.cells.index(by_id[name]))
        return "\n".join(
            output.get("text") or output.get("evalue") or output["data"]["text/plain"]
            for output in by_id[name].outputs
        )

    environment = {name: value for name, value in os.environ.items() if name != NAMED}
    with client.setup_kernel(env={**environment, "PYTHONPATH": str(installed)}):
        for forgotten in ("basics-imports", "center-answer", "center-check"):
            assert said(forgotten) == RUN_FIRST
        assert said("basics-install") == "", "the kit is there: nothing is installed"
        assert said("basics-imports") == ""
        by_id["center-answer"].source = by_id["center-answer"].source.splitlines()[0] + "\n" + right
        assert said("center-answer") == ""
        assert "✓ center" in said("center-check")
        assert said("basics-install") == "", "the course is there: it is not written again"
    assert "center" in (alone / "attention" / "exercises" / FILE).read_text("utf-8")
