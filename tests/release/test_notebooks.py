"""The course's notebooks, run in a kernel: unsolved as a student gets them, and solved."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from grader.course.collection import rules_left_out
from grader.course.course import load_course
from grader.course.file import Unit
from grader.course.statements import statement
from grader.release.notebooks import cells_of, short_stub
from tests.support.bundles import release_recorded, waits_for_recordings
from tests.support.places import ROOT, TINY

pytestmark = waits_for_recordings

COURSE = load_course(ROOT / "exercises")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle: recordings and no solutions."""
    folder = tmp_path_factory.mktemp("release") / "bundle"
    release_recorded(folder)
    return folder


def reference(unit: str) -> str:
    """The references of a unit, with those that they import from other units, as one text."""
    text = (COURSE.solutions / f"{unit}.py").read_text("utf-8")
    tree = ast.parse(text)
    before = [
        reference(node.module or "")
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    kept = [
        ast.unparse(node)
        for node in tree.body
        if not (isinstance(node, ast.ImportFrom) and (node.level or node.module == "__future__"))
    ]
    return "\n\n".join([*before, *kept])


def definition(unit: str, name: str) -> str:
    """One reference, to be pasted in place of its stub."""
    tree = ast.parse((COURSE.solutions / f"{unit}.py").read_text("utf-8"))
    (node,) = (node for node in tree.body if getattr(node, "name", "") == name)
    return ast.unparse(node)


def notebook_of(folder: Path, unit: Unit) -> Any:
    text = (folder / "notebooks" / f"{unit.name}.ipynb").read_text("utf-8")
    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def shown(cell: Any) -> str:
    """What a cell put out, as text."""
    return "\n".join(
        output.get("text") or output["data"]["text/plain"]
        for output in cell.outputs
        if output.output_type in ("stream", "display_data", "execute_result")
    )


def parts(cells: list[Any], unit: Unit, part: str) -> Iterator[tuple[str, Any]]:
    by_id = {cell.id: cell for cell in cells}
    for exercise in unit.exercise:
        yield exercise.name, by_id[f"{exercise.name}-{part}"]


def helpers(unit: Unit) -> list[str]:
    """What a unit's references define besides exercises."""
    tree = ast.parse((COURSE.solutions / f"{unit.name}.py").read_text("utf-8"))
    return [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in COURSE.exercises
    ]


WITHOUT_A_PICTURE = {"next_token_loss", "adamw_step", "generate", "sample_next"}


@pytest.mark.parametrize("unit", COURSE.units, ids=lambda unit: unit.name)
def test_a_notebook_runs_unsolved_and_its_checks_pass_when_solved(folder: Path, unit: Unit) -> None:
    notebook = notebook_of(folder, unit)
    path = folder / "notebooks" / f"{unit.name}.ipynb"
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": path.parent}},
    )
    stuck = [cell for _, cell in parts(notebook.cells, unit, "play")]
    look = [cell for cell in notebook.cells if cell.id == f"{unit.name}-look"]
    experiments = [cell for cell in notebook.cells if cell.id.endswith(("-why", "-try"))]
    # As when all cells are run: those of which an error is expected are tagged so.
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)  # raises if the cell does, and nobody expects it
        for name, cell in parts(notebook.cells, unit, "check"):
            assert f"· {name}" in shown(cell), "unsolved, and not wrong"
            assert "still the stub" in shown(cell)
        for name, cell in parts(notebook.cells, unit, "play"):
            (error,) = cell.outputs
            assert error.ename == "NotImplementedError", name
            assert "still has a part to write" in error.traceback[-1], name
        assert all(map(shown, experiments)), "nothing needs to be solved for them"

        # One kernel for both, since each loads torch: the cells are run again with answers in them.
        before = [cell for cell in notebook.cells if cell.id == f"{unit.name}-pasted"]
        imported = re.findall(
            r"^from \.(\w+) import", (COURSE.solutions / f"{unit.name}.py").read_text(), re.M
        )
        for cell in before:
            cell.source = "\n\n".join(map(reference, imported))
        for name, cell in parts(notebook.cells, unit, "answer"):
            cell.source = "\n\n".join([*helpers(unit), definition(unit.name, name)])
        for cell in (*stuck, *look, *experiments):
            del cell.metadata["tags"]
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        for name, cell in parts(notebook.cells, unit, "check"):
            assert f"✓ {name}" in shown(cell), shown(cell)
            assert "✗" not in shown(cell)
        for name, cell in parts(notebook.cells, unit, "play"):
            assert shown(cell), name
            if "heatmap" not in cell.source:
                assert name in WITHOUT_A_PICTURE, "a number or two, and no axes"
                continue
            assert " by " in shown(cell), f"{name} shows a picture, with its size in text"
            pictures = [output.data for output in cell.outputs if "data" in output]
            assert "svg" in str(pictures)
        assert all(cell.outputs for cell in look)
    solved = (folder / "exercises" / "progress.txt").read_text("utf-8")
    assert {f"solved {exercise.name}" for exercise in unit.exercise} <= set(solved.splitlines())


# --- what is in a cell ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(COURSE.exercises))
def test_an_answers_cell_holds_the_stub_without_the_statement(name: str) -> None:
    stub = statement(COURSE, name).stub
    short = short_stub(stub)
    assert "raise NotImplementedError" in short
    assert ">>>" not in short

    def bare(text: str) -> str:
        (node,) = ast.parse(text).body
        assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
        assert isinstance(node.body[0], ast.Expr)
        del node.body[0]
        return ast.unparse(node)

    assert bare(short) == bare(stub)


def test_what_a_statement_says_stands_in_the_notebook(folder: Path) -> None:
    for unit in COURSE.units:
        notebook = notebook_of(folder, unit)
        for name, cell in parts(notebook.cells, unit, "statement"):
            stated = statement(COURSE, name)
            words = re.sub(r"[*`]", "", " ".join(cell.source.split()))
            assert stated.formula in cell.source
            for key, sentence in stated.rules.items():
                assert re.sub(r"[*`]", "", f"- {key}: {sentence}") in words, name
            for line in stated.text.splitlines():
                if line.startswith(("tensor", "        [", ">>>")):
                    assert line in cell.source


@pytest.mark.parametrize("unit", COURSE.units, ids=lambda unit: unit.name)
def test_a_cell_to_play_in_needs_its_answer_and_no_other_cell(folder: Path, unit: Unit) -> None:
    for name, cell in parts(notebook_of(folder, unit).cells, unit, "play"):
        tree = ast.parse(cell.source)
        assert not any(isinstance(node, ast.Try) for node in ast.walk(tree))
        used = {node.id: node.ctx for node in ast.walk(tree) if isinstance(node, ast.Name)}
        made = {
            alias.asname or alias.name for node in tree.body for alias in getattr(node, "names", [])
        } | {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for node in ast.walk(tree):
            if isinstance(node, (ast.ClassDef, ast.arg)):
                made.add(node.name if isinstance(node, ast.ClassDef) else node.arg)
        others = used.keys() - made - vars(builtins).keys()
        assert others <= COURSE.exercises.keys(), others
        assert name in others


def test_a_unit_with_something_to_look_at_ends_in_it() -> None:
    course = load_course(TINY / "exercises")
    (unit, *_) = course.units
    about, look = cells_of(course, unit, rules_left_out(course))[-2:]
    script = course.look_file(unit.name).read_text("utf-8")
    said = ast.get_docstring(ast.parse(script))
    assert said
    assert said in "".join(about["source"])
    code = "".join(look["source"])
    assert said not in code
    rest = [
        line for line in script.partition(said)[2].splitlines()[1:] if "grader.mine" not in line
    ]
    assert [*filter(None, code.splitlines())] == [*filter(None, rest)], "answers are the notebook's"
    under_another_name = cells_of(course, unit, rules_left_out(course), "kit")
    assert f"{unit.name}-look" not in {cell["id"] for cell in under_another_name}
