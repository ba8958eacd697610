"""Small matrices drawn as text: what a student sees beside the numbers."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from torch import Tensor

from grader.course.course import load_course
from grader.course.references import load_solutions
from grader.course.tensors import Make
from grader.feedback.disagreement import picture_of
from grader.feedback.pictures.text import drawn as draw
from grader.feedback.terminal import show_picture
from grader.records.grade import Picture
from tests.support.places import REAL

COURSE = load_course(REAL)
MAKE = Make("public", "picture", "test")
INF = math.inf


def solution(unit: str, name: str) -> Any:
    return getattr(load_solutions(COURSE)[unit], name)


def normal(rows: int, columns: int) -> Tensor:
    return MAKE.normal(name="x", rows=rows, columns=columns)


def side_by_side(
    ours: Tensor,
    theirs: Tensor,
    names: Sequence[str] | None = None,
    wrong: Tensor | None = None,
    **options: Any,
) -> str | None:
    picture = picture_of(ours, theirs, names=names, wrong=wrong)
    return draw(picture, **options) if picture is not None else None


def drawn(ours: Tensor, theirs: Tensor, **options: Any) -> str:
    picture = side_by_side(ours, theirs, **options)
    assert picture is not None
    return picture


def assert_looks(picture: str, expected: str) -> None:
    assert picture == textwrap.dedent(expected).strip("\n")


def other(tensor: Tensor) -> Tensor:
    """A copy that differs in the first element of the last matrix only."""
    copy = tensor.clone()
    copy[(-1,) * (tensor.dim() - 2) + (0, 0)] += 1
    return copy


# --- how they look -------------------------------------------------------------------------------


def test_a_mask_that_hides_the_diagonal_too() -> None:
    ours = solution("causal_attention", "causal_mask")(5)
    theirs = torch.ones(5, 5).triu().bool()
    assert_looks(
        drawn(ours, theirs, names=("queries", "keys")),
        """
           expected      yours         differs
           0 1 2 3 4     0 1 2 3 4     0 1 2 3 4
        0  · ■ ■ ■ ■     ■ ■ ■ ■ ■     ✗ · · · ·
        1  · · ■ ■ ■     · ■ ■ ■ ■     · ✗ · · ·
        2  · · · ■ ■     · · ■ ■ ■     · · ✗ · ·
        3  · · · · ■     · · · ■ ■     · · · ✗ ·
        4  · · · · ·     · · · · ■     · · · · ✗
        ■ True  · False
        rows: queries, columns: keys
        """,
    )


def test_small_matrices_are_numbers_of_two_digits() -> None:
    ours = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [-0.3, 12.4, 1.26]])
    theirs = torch.tensor([[math.nan] * 3, [0.25, 0.75, 0.0], [-0.3, INF, 1.26]])
    assert_looks(
        drawn(ours, theirs),
        """
           expected           yours
              0    1    2        0     1     2
        0     1    0    0      nan✗  nan✗  nan✗
        1   .25  .75    0      .25   .75     0
        2  -.30   12  1.3     -.30   inf✗  1.3
        ✗ differs
        """,
    )


def test_larger_matrices_are_shades() -> None:
    ours = torch.arange(16.0).reshape(2, 8)
    theirs = -ours
    theirs[1, 5:] = torch.tensor([INF, -INF, math.nan])
    assert_looks(
        drawn(ours, theirs),
        """
           expected            yours               differs
           0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7
        0  ·░░░░░░▒▒▒▒▒▒▒▒     ·-░-░-░-▒-▒-▒-▒     · ✗ ✗ ✗ ✗ ✗ ✗ ✗
        1 ▓▓▓▓▓▓▓▓████████    -▓-▓-▓-▓-█+∞-∞ N     ✗ ✗ ✗ ✗ ✗ ✗ ✗ ✗
        · zero  ░ ▒ ▓ █ in quarters up to 15  -█ negative  ∞ infinite  N NaN
        """,
    )


def test_ascii_only() -> None:
    ours = torch.arange(16.0).reshape(2, 8)
    theirs = -ours
    theirs[1, 5:] = torch.tensor([INF, -INF, math.nan])
    assert_looks(
        drawn(ours, theirs, ascii_only=True),
        """
           expected            yours               differs
           0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7
        0  .::::::++++++++     .-:-:-:-+-+-+-+     . X X X X X X X
        1 ********########    -*-*-*-*-#+I-I N     X X X X X X X X
        . zero  : + * # in quarters up to 15  -# negative  I infinite  N NaN
        """,
    )


def test_a_vector_is_one_row() -> None:
    assert_looks(
        drawn(torch.tensor([3, 1, 2]), torch.tensor([3, 2, 2])),
        """
           expected           yours
              0    1    2        0     1     2
        0     3    1    2        3     2✗    2
        ✗ differs
        """,
    )


def test_values_beyond_all_expected_ones_are_said_to_be_so() -> None:
    ours = normal(8, 8)
    picture = drawn(ours, 1000 * ours)
    assert "█ also beyond" in picture
    assert "█ also beyond" not in drawn(ours, ours / 2)


@pytest.mark.parametrize(
    ("value", "seen"), [(2.0, "2✗"), (0.0, "0✗"), (False, "✗")], ids=["large", "zero", "boolean"]
)
def test_wrong_cells_are_red_in_a_terminal(value: float, seen: str) -> None:
    ours = torch.ones(3, 3, dtype=torch.tensor(value).dtype)
    theirs = ours.clone()
    theirs[0, 0] = value
    picture = picture_of(ours, theirs)
    assert picture is not None
    assert red_in(picture) & {seen} == {seen}
    assert red_in(picture) <= {seen, "✗"}
    assert red_in(picture, no_color=True) == set()


def red_in(picture: Picture, **options: Any) -> set[str]:
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system="standard", **options
    )
    with console.capture() as captured:
        show_picture(console, picture, 8, 72)
    return set(re.findall(r"\x1b\[31m([^\x1b]*)", captured.get()))


# --- which part is shown -------------------------------------------------------------------------


def test_the_first_matrix_that_differs_is_shown_and_named() -> None:
    ours = MAKE.normal(name="many", batch=2, heads=3, tokens=4, keys=4)
    theirs = other(ours)
    assert drawn(ours, theirs).splitlines()[0] == "at [1, 2]:"
    names = ("batch", "heads", "queries", "keys")
    lines = drawn(ours, theirs, names=names).splitlines()
    assert lines[0] == "batch 1, heads 2:"
    assert lines[-1] == "rows: queries, columns: keys"
    alone = drawn(ours[1, 2], theirs[1, 2])
    assert drawn(ours, theirs) == f"at [1, 2]:\n{alone}"


def test_large_matrices_are_cut_to_twelve_rows_and_columns() -> None:
    ours = normal(20, 30)
    lines = drawn(ours, other(ours)).splitlines()
    assert lines[-1] == "… only rows 0–11 of 20, columns 0–11 of 30"
    assert [line[:2].strip() for line in lines[2:14]] == [str(row) for row in range(12)]
    assert lines[1].split() == ["0", "2", "4", "6", "8", "10"] * 3
    assert max(map(len, lines)) <= 80


def test_the_cut_has_a_difference_in_it() -> None:
    ours = normal(40, 30)
    theirs = ours.clone()
    theirs[20, 25] += 1
    picture = drawn(ours, theirs)
    assert picture.count("✗") == 1
    assert picture.splitlines()[-1] == "… only rows 20–31 of 40, columns 18–29 of 30"


def test_the_cut_has_a_difference_in_it_where_the_first_row_and_column_are_apart() -> None:
    ours = torch.zeros(30, 30)
    theirs = ours.clone()
    theirs[0, 29] = theirs[29, 0] = 1
    assert drawn(ours, theirs).count("✗") == 1


def test_no_line_is_wider_than_the_terminal() -> None:
    ours = MAKE.normal(name="many", batch=2, tokens=40, keys=40)
    for width in range(20, 100):
        picture = side_by_side(ours, other(ours), width=width)
        assert picture is None or max(map(len, picture.splitlines())) <= width
    assert side_by_side(ours, other(ours), width=80) is not None
    assert side_by_side(ours, other(ours), width=20) is None


def test_numbers_give_way_to_shades_where_there_is_no_room() -> None:
    ours = normal(6, 6)
    for width in (64, 68, 72, 90):  # 68 is what a terminal of 80 columns leaves
        assert "░" not in drawn(ours, 2 * ours, width=width)
    assert "░" in drawn(ours, 2 * ours, width=60)
    thousands = ours * 100_000
    assert "░" in drawn(thousands, 2 * thousands, width=90)


def test_the_caller_may_say_what_differs() -> None:
    ours = normal(4, 4)
    wrong = torch.eye(4, dtype=torch.bool)
    assert drawn(ours, 2 * ours, wrong=wrong).count("✗") == 4 + 1, "and once in the legend"


# --- what cannot be shown ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (torch.tensor(1.0), torch.tensor(2.0)),
        (torch.ones(1, 1), torch.zeros(1, 1)),
        (torch.ones(0, 3), torch.ones(0, 3)),
        (torch.ones(3, 3), torch.ones(3, 3)),
        (torch.ones(3, 3), torch.zeros(3, 4)),
        (torch.ones(3, 3), torch.zeros(3, 3, dtype=torch.float64)),
        (torch.ones(3, 3) + 0j, torch.zeros(3, 3) + 0j),
    ],
    ids=["number", "single", "empty", "equal", "shapes", "dtypes", "complex"],
)
def test_there_is_no_picture_of(ours: Tensor, theirs: Tensor) -> None:
    assert side_by_side(ours, theirs) is None


DTYPES = (
    torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64,
)  # fmt: skip
ANY = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.004, 9.96, 0.996, 1e-40, 1e300, INF, -INF, math.nan])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data(), st.lists(st.integers(0, 15), max_size=3), st.sampled_from(DTYPES), st.booleans())
def test_whatever_is_drawn_is_printable_and_fits(
    data: st.DataObject, shape: list[int], dtype: torch.dtype, ascii_only: bool
) -> None:
    few = [torch.tensor(data.draw(st.lists(ANY, min_size=7, max_size=7))) for _ in range(2)]
    if not dtype.is_floating_point:
        few = [values.nan_to_num(3.0, 4.0, 5.0).clamp(0, 9) for values in few]
    steps = torch.arange(math.prod(shape)).reshape(shape)
    ours, theirs = few[0].to(dtype)[steps * 2 % 7], few[1].to(dtype)[steps * 3 % 7]
    picture = side_by_side(ours, theirs, ascii_only=ascii_only)
    if picture is not None:
        lines = picture.splitlines()
        assert max(map(len, lines)) <= 80
        assert all(line.isprintable() and line == line.rstrip() for line in lines)
        assert picture.isascii() or not ascii_only
        assert ("X" if ascii_only else "✗") in picture
        assert picture == side_by_side(ours, theirs, ascii_only=ascii_only)
