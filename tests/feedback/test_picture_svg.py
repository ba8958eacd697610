"""Small matrices drawn as SVG: what they say, to whom, and what they leave alone."""

from __future__ import annotations

import math
import re
import sys
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

from grader.course.tensors import Make
from grader.feedback.disagreement import picture_of
from grader.feedback.pictures.svg import WRONG, heatmap_svg, picture_svg
from grader.records.faults import CallError
from grader.records.grade import Picture

MAKE = Make("public", "picture", "svg")
SVG = "{http://www.w3.org/2000/svg}"


def compared(ours: Tensor, theirs: Tensor, *names: str) -> Picture:
    picture = picture_of(ours, theirs, names=names or None)
    assert picture is not None
    return picture


def with_one_wrong(rows: int, columns: int) -> Picture:
    ours = MAKE.normal(name="x", rows=rows, columns=columns)
    theirs = ours.clone()
    theirs[1, 2] += 1
    return compared(ours, theirs, "queries", "keys")


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def frames(svg: str) -> int:
    """How many cells are framed as wrong."""
    paths = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return sum(p.get("d", "").count("M") for p in paths if WRONG in p.get("style", ""))


# --- what it says --------------------------------------------------------------------------------


def test_three_matrices_stand_side_by_side_with_their_axes() -> None:
    said = texts(picture_svg(with_one_wrong(3, 4)))
    assert [text for text in said if text in ("expected", "yours", "yours − expected")] == [
        "expected",
        "yours",
        "yours − expected",
    ]
    assert said.count("queries") == said.count("keys") == 3


def test_small_matrices_carry_their_numbers() -> None:
    ours = torch.tensor([[0.25, -1.5, 0.0], [1.0, 12.0, 0.5]])
    theirs = ours.clone()
    theirs[0, 0] = 0.75
    said = texts(picture_svg(compared(ours, theirs)))
    for text, times in {"0.25": 1, "0.75": 1, "−1.5": 2, "12": 2}.items():
        assert said.count(text) == times
    assert said.count("0.5") == 3  # twice as a value, once as the difference


def test_wrong_cells_are_framed() -> None:
    assert frames(picture_svg(with_one_wrong(3, 4))) == 2  # in yours, and in the difference


def test_wrong_cells_of_a_large_matrix_are_framed_and_crossed() -> None:
    svg = picture_svg(with_one_wrong(9, 9))
    assert frames(svg) == 1
    assert texts(svg).count("×") == 1


def test_a_mask_says_true_and_false_in_letters() -> None:
    ours = torch.ones(4, 4).triu(1).bool()
    said = texts(picture_svg(compared(ours, torch.ones(4, 4).triu().bool())))
    assert (said.count("T"), said.count("F"), said.count("×")) == (6 + 10, 10 + 6, 4)


def test_what_is_not_finite_is_written_out() -> None:
    ours = torch.zeros(2, 3)
    theirs = torch.tensor([[math.nan, math.inf, -math.inf], [0, 0, 0]])
    said = texts(picture_svg(compared(ours, theirs)))
    assert (said.count("NaN"), said.count("∞"), said.count("−∞"), said.count("×")) == (1, 1, 1, 3)


def test_negative_cells_of_a_large_matrix_are_marked_without_colour() -> None:
    positive = heatmap_svg(torch.full((9, 9), 0.5))
    negative = heatmap_svg(torch.full((9, 9), -0.5))
    assert negative.count("<path") == positive.count("<path") + 1


def test_a_window_says_which_rows_and_columns_it_shows() -> None:
    ours = torch.zeros(20, 30)
    theirs = ours.clone()
    theirs[15, 25] = 1
    said = texts(picture_svg(compared(ours, theirs)))
    assert "rows 8–19 of 20, columns 18–29 of 30" in said
    assert said.count("15") == 3


def test_one_matrix_of_many_is_named() -> None:
    ours = torch.zeros(2, 3, 4, 4)
    theirs = ours.clone()
    theirs[1, 2, 0, 0] = 1
    svg = picture_svg(compared(ours, theirs, "batch", "heads", "queries", "keys"))
    assert "batch 1, heads 2" in texts(svg)


def test_one_who_does_not_see_it_is_told() -> None:
    ours = torch.zeros(2, 3)
    theirs = ours.clone()
    theirs[1, 2] = 0.5
    root = ElementTree.fromstring(picture_svg(compared(ours, theirs)))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "expected, yours, and the difference"
    assert root.findtext(f"{SVG}desc") == (
        "A matrix of 2 by 3; one cell differs; row 1, column 2: expected 0, yours 0.5."
    )


def middles(svg: str, name: str) -> list[tuple[float, float, bool]]:
    """Where texts of this name have their middle, and whether they are turned."""
    found = [text for text in ElementTree.fromstring(svg).iter(f"{SVG}text") if text.text == name]
    assert not any("text-anchor" in text.get("style", "") for text in found)
    return [
        (float(t.get("x", "nan")), float(t.get("y", "nan")), "transform" in t.attrib) for t in found
    ]


@pytest.mark.parametrize("size", [(2, 1), (2, 2), (3, 1), (12, 12)])
@pytest.mark.parametrize("name", ["num_tokens", "num_heads*head_dim"])
def test_names_of_axes_have_room_beside_small_matrices(size: tuple[int, int], name: str) -> None:
    ours = torch.zeros(size)
    half = len(name) * 7.5 * 0.6 / 2
    for svg, names in (
        (heatmap_svg(ours, rows=name, columns=name), 2),
        (heatmap_svg(ours[:1], rows=name), 1),
        (heatmap_svg(ours, columns=name), 1),
        (picture_svg(compared(ours, ours + 1, name, name)), 6),
    ):
        width, height = map(float, ElementTree.fromstring(svg).get("viewBox", "").split()[2:])
        found = middles(svg, name)
        assert len(found) == names
        for x, y, turned in found:
            middle, end = (y, height) if turned else (x, width)
            assert half < middle < end - half


# --- one matrix ----------------------------------------------------------------------------------


def test_a_heatmap_has_a_title_and_axes() -> None:
    said = texts(heatmap_svg(torch.eye(3), title="weights", rows="queries", columns="keys"))
    assert {"weights", "queries", "keys", "1", "0"} <= set(said)


@pytest.mark.parametrize(
    "weights",
    [
        torch.rand(3, requires_grad=True),
        torch.rand(1, 1, 3, 4),
        [[True, False]],
        torch.rand(2, 2, dtype=torch.bfloat16),
        torch.randint(5, (100, 90)).numpy(),
    ],
    ids=["vector", "batch of one", "lists", "bfloat16", "array"],
)
def test_a_heatmap_takes_what_people_have(weights: object) -> None:
    ElementTree.fromstring(heatmap_svg(weights))


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (torch.rand(2, 3, 4), r"shape \(2, 3, 4\); pick one of them"),
        (torch.rand(3, 0), r"shape \(3, 0\)"),
        (torch.tensor(1.0), r"shape \(\)"),
        ([["a"]], "real numbers or True and False"),
        (torch.rand(2, 2, dtype=torch.complex64), "real numbers"),
        ([[1, 2], 3], "real numbers"),
        ([[1, 2], [3]], "differ in length"),
    ],
)
def test_what_is_no_matrix_is_told(weights: object, told: str) -> None:
    with pytest.raises(CallError, match=told):
        heatmap_svg(weights)


# --- what it is ----------------------------------------------------------------------------------


def test_a_picture_needs_no_library_that_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it would fail
    assert picture_svg(with_one_wrong(3, 3))


@pytest.mark.parametrize("value", [-math.inf, -0.5])
def test_the_largest_picture_is_small(value: float) -> None:
    ours = torch.full((12, 12), value)
    assert len(picture_svg(compared(ours, torch.full((12, 12), math.nan)))) < 60_000


def test_it_can_stand_on_a_page_beside_others() -> None:
    svg = picture_svg(with_one_wrong(12, 12))
    assert svg.startswith("<svg ")
    assert svg.rstrip().endswith("</svg>")
    assert not re.search(r"\bid=|href|<style|<script|<image|<metadata|url\(|<!", svg)
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]


def test_it_stands_on_the_page_in_the_colour_of_its_text() -> None:
    root = ElementTree.fromstring(picture_svg(with_one_wrong(3, 3)))
    assert "fill: currentColor" in root.get("style", "")
    width, height = map(float, root.get("viewBox", "").split()[2:])
    for path in root.iter(f"{SVG}path"):
        assert f"h{width:g}v{height:g}" not in path.get("d", ""), "a ground of its own"


def test_text_is_text_whatever_it_says() -> None:
    title = 'a <b> & "c" id="d" $x_1$ 0.12345 \x1b[31m\n'
    svg = heatmap_svg(torch.eye(2), title=title, rows="<q>", columns="k&")
    assert 'a <b> & "c" id="d" $x_1$ 0.12345  [31m ' in texts(svg)
    assert {"<q>", "k&"} <= set(texts(svg))
