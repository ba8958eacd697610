"""What `grader audit --suggest` proposes for mutants can be pasted into the library."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from grader.author.mutants import mutants_of
from grader.author.suggestions import suggestion, unannotated
from grader.course.course import load_course
from grader.mistakes import load_library
from tests.conftest import Grader
from tests.support.places import REAL, TINY


def bare(definition: str) -> str:
    """A definition without docstrings and annotations."""
    tree = ast.parse(unannotated(definition)).body[-1]
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:] or [ast.Pass()]
    return ast.dump(tree)


@pytest.mark.parametrize(
    ("folder", "name"),
    [(TINY, "weigh"), (TINY, "Projection"), (REAL, "CausalAttention")],
    ids=["weigh", "Projection", "CausalAttention"],
)
def test_each_suggestion_makes_its_mutant(folder: Path, name: str, tmp_path: Path) -> None:
    root = folder.parent if folder.name == "exercises" else folder
    for part in ("exercises", "solutions"):
        shutil.copytree(root / part, tmp_path / part)
    course = load_course(tmp_path / "exercises")
    unit = course.unit_of[name]
    library = course.solutions / "mistakes" / f"{unit}.py"
    source = course.reference_file(unit).read_text("utf-8")
    taken = {one.slug for one in load_library(course).variants if one.exercise == name}
    before = len(taken)
    wanted = mutants_of(source, name)
    texts = [suggestion(source, name, mutant, taken) for mutant in wanted]
    library.write_text("\n\n".join([library.read_text("utf-8"), *texts]), "utf-8")
    found = load_library(course).of(name, "mistake")[-len(wanted) :]
    made = [bare(one.definition) for one in found]
    assert made == [bare(one.definition) for one in wanted]
    assert len({one.slug for one in found}) == len(wanted) == len(taken) - before
    changes = sum("change=" in text for text in texts)
    assert changes > len(texts) / 2, "most are changes of a few letters"


def test_titles_do_not_count_the_places_in_a_line() -> None:
    source = "def f(x):\n    return x[:, -1] + x[-1]\n"
    mutants = mutants_of(source, "f")
    (second,) = (one for one in mutants if one.id.endswith("-1->0#2"))
    assert '"`0` in place of `-1`"' in suggestion(source, "f", second, set())


def test_the_command_prints_suggestions_by_line_and_then_those_that_compute_the_same(
    grader: Grader, tmp_path: Path
) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    graders = tmp_path / "tiny" / "solutions" / "graders" / "test_basics.py"
    text = graders.read_text("utf-8")
    graders.write_text(text[: text.index('@rung.stability("weigh")')], "utf-8")
    ran = grader("audit", "weigh", "--suggest", "--course", tmp_path / "tiny" / "exercises")
    _, found, suggested = ran.out.partition("# solutions/mistakes/basics.py: weigh, line 2")
    assert found
    assert 'change={"scores.max": "scores.min"}' in suggested
    assert '"`scores` in place of `scores - largest`"' in suggested
    assert 'hint="TODO' in suggested
    assert '"weigh/L4:dim=-1->dim=1" = "TODO' in suggested.partition("[equivalent]")[2]
