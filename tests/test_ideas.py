"""Every idea of the five notebooks has a place in the course, and the place is there."""

from __future__ import annotations

import pytest

from grader.course.course import load_course
from tests.support.places import REAL
from tests.tools.ideas import NOTEBOOKS, problems, read_ideas, table

COURSE = load_course(REAL)
IDEAS = read_ideas(REAL)


def test_every_idea_has_a_place_that_is_there() -> None:
    assert [*problems(IDEAS, COURSE)] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_without_a_row_is_noticed(notebook: str) -> None:
    without = {title: of for title, of in IDEAS.items() if not title.startswith(notebook)}
    assert f"{notebook} has no row" in [*problems(without, COURSE)]
    assert f"{notebook} has no row" in [*problems({**without, f"{notebook}, empty": {}}, COURSE)]


@pytest.mark.parametrize(
    "place",
    [
        "causal_masks",
        "try nosuch",
        "look nosuch",
        "after nosuch: words",
        "after causal_mask",  # which words?
        "after causal_mask: words that it does not have",
        "hint causal_mask",
    ],
)
def test_a_place_that_is_not_there_is_noticed(place: str) -> None:
    (found,) = problems({**IDEAS, "005": {"an idea": ["causal_mask", place]}}, COURSE)
    assert found == f"005: an idea: there is no {place}"


def test_an_idea_without_a_place_is_noticed() -> None:
    assert [*problems({**IDEAS, "005": {"an idea": []}}, COURSE)] == ["005: an idea has no place"]


def test_the_table_has_a_row_for_each_idea() -> None:
    rows = table(IDEAS).splitlines()[2:]
    assert len(rows) == sum(len(of) for of in IDEAS.values())
    assert rows[2].endswith("| `grader try all_ones`, `grader after prefix_sum_matrix` |")
