"""`grader.heatmap`: a matrix as a picture and as text, with words along its axes."""

from __future__ import annotations

import io
import sys
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import grader
from grader.records.faults import CallError

WORDS = ["Your", "journey", "starts", "with", "one", "step"]
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_a_heatmap_is_blocks_in_text_and_a_picture_in_a_notebook() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.3, -0.7]])
    heatmap = grader.heatmap(weights, rows="queries", columns="keys", title="weights")
    assert repr(heatmap).splitlines() == [
        "weights",
        "0 ██ ·",
        "1 ▒▒-▓",
        "2 by 2, rows: queries, columns: keys",
    ]
    assert "queries" in heatmap._repr_html_()


@pytest.mark.parametrize(
    ("size", "call", "told"),
    [
        ((1, 3), {"columns": "tokens"}, "1 by 3, columns: tokens"),
        ((3, 1), {"rows": "tokens"}, "3 by 1, rows: tokens"),
        ((2, 2), {}, "2 by 2"),
        ((88, 38), {}, "88 by 38"),
        ((89, 38), {}, "89 by 38, only rows 0–87 are shown"),
        (
            (90, 39),
            {"rows": "time"},
            "90 by 39, rows: time, only rows 0–87 are shown, only columns 0–37 are shown",
        ),
    ],
)
def test_the_text_of_a_heatmap_says_what_is_there(
    size: tuple[int, int], call: dict[str, str], told: str
) -> None:
    heatmap = grader.heatmap(torch.ones(size), **call)
    assert repr(heatmap).splitlines()[-1] == told


# --- tokens --------------------------------------------------------------------------------------


def test_tokens_stand_along_both_axes_of_a_square_matrix() -> None:
    heatmap = grader.heatmap(torch.eye(3), tokens=WORDS[:3])
    assert repr(heatmap).splitlines() == [
        "         Your journey starts",
        "   Your    ██       ·      ·",
        "journey     ·      ██      ·",
        " starts     ·       ·     ██",
        "3 by 3",
    ]
    said = [text.text for text in texts(heatmap._repr_svg_())]
    assert [said.count(word) for word in WORDS[:3]] == [2, 2, 2]
    assert "2" not in said


@pytest.mark.parametrize(
    ("size", "first", "times"),
    [((2, 6), "   Your journey starts with one step", 1), ((6, 2), "   Your ████", 1)],
    ids=["columns", "rows"],
)
def test_tokens_stand_along_the_axis_that_they_fit(
    size: tuple[int, int], first: str, times: int
) -> None:
    heatmap = grader.heatmap(torch.ones(size), tokens=WORDS)
    assert repr(heatmap).splitlines()[0] == first
    assert [text.text for text in texts(heatmap._repr_svg_())].count("journey") == times


def test_tokens_without_room_above_their_columns_stand_upright() -> None:
    narrow = texts(grader.heatmap(torch.eye(3), tokens="abc")._repr_svg_())
    wide = texts(grader.heatmap(torch.eye(3), tokens=WORDS[:3])._repr_svg_())
    assert [sum("transform" in text.attrib for text in some) for some in (narrow, wide)] == [0, 3]


def test_a_long_token_is_cut_and_says_so() -> None:
    heatmap = grader.heatmap(torch.eye(2), tokens=["antidisestablishmentarianism", "x"])
    assert repr(heatmap).splitlines()[1].startswith("antidisesta… ")
    assert [t.text for t in texts(heatmap._repr_svg_())].count("antidisestabl…") == 2


@pytest.mark.parametrize("count", [6, 14, 20, 33, 40, 90])
def test_the_text_with_tokens_fits_a_terminal_of_80_columns(count: int) -> None:
    tokens = [f"{word}{index}" for index, word in enumerate(WORDS * 15)][:count]
    lines = repr(grader.heatmap(torch.ones(count, count), tokens=tokens)).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(word in lines[row] for row, word in ((1, "Your0"), (2, "journey1")))


def test_where_tokens_have_no_room_above_the_rows_tell_which_number_is_which() -> None:
    tokens = (WORDS * 4)[:20]
    head, first, second, *_ = repr(grader.heatmap(torch.ones(20, 20), tokens=tokens)).splitlines()
    assert head.split()[:3] == ["0", "2", "4"]
    assert first.startswith(" 0 Your    ██")
    assert second.startswith(" 1 journey ██")


def test_tokens_may_be_characters_numbers_and_line_ends() -> None:
    assert repr(grader.heatmap(torch.eye(2), tokens="hi")).splitlines()[0] == "    h  i"
    heatmap = grader.heatmap(torch.eye(2), tokens=["\n", 7])
    assert repr(heatmap).splitlines()[0].split() == ["\\n", "7"]
    assert "\\n" in [text.text for text in texts(heatmap._repr_svg_())]


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (WORDS, "there are 6 tokens, and the matrix is 2 by 3: give one token for each row or"),
        (7, r"tokens must be a list of labels for rows and columns, as in tokens=text\.split\(\)"),
    ],
)
def test_tokens_that_fit_no_axis_are_reported(tokens: Any, told: str) -> None:
    with pytest.raises(CallError, match=told):
        grader.heatmap(torch.ones(2, 3), tokens=tokens)


# --- shown here and now --------------------------------------------------------------------------


def test_show_prints_the_text_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    heatmap = grader.heatmap(torch.eye(3), tokens=WORDS[:3])
    heatmap.show()
    assert capsys.readouterr().out == f"{heatmap!r}\n"


def test_show_prints_other_marks_where_a_terminal_has_no_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(page, encoding="cp1252", newline="\n"))
    grader.heatmap(torch.eye(2), tokens=["café", "→"]).show()
    sys.stdout.flush()
    assert page.getvalue().decode("cp1252").splitlines() == [
        "      café  ?",
        "café    ##  .",
        "   ?     . ##",
        "2 by 2",
    ]
