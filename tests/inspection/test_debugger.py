"""Python's debugger stops in a student's code where a public check fails."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from grader.course.course import Course
from grader.inspection.debugger import debug
from tests.support.places import TINY


class Stopped(NamedTuple):
    """Whether there was something to stop at, and what was printed."""

    anything: bool
    text: str


Debug = Callable[..., Stopped]


@pytest.fixture
def debugged(tiny: Course, tmp_path: Path) -> Debug:
    """Debug an exercise of the tiny course, with this text as the answer and these commands."""

    def run(name: str, text: str, *commands: str) -> Stopped:
        (tmp_path / "basics.py").write_text(textwrap.dedent(text).lstrip(), "utf-8")
        out = io.StringIO()
        stdin = io.StringIO("\n".join((*commands, "")))
        anything = debug(tiny, name, tmp_path, stdin=stdin, stdout=out)
        return Stopped(anything, out.getvalue())

    return run


RAISES = """
def helper(x):
    return x.reshape(3, 3)

def center(x):
    print("so far")
    return helper(x)
"""

WRONG = """
import torch

@torch.no_grad()
def center(x):
    print("so far")
    mean = x.sum()
    return x - mean
"""


def test_it_looks_back_at_the_line_that_raised(debugged: Debug) -> None:
    anything, text = debugged("center", RAISES, "p tuple(x.shape)", "l", "u", "w", "q")
    assert anything
    assert text.startswith("The result has as many elements as the input\n")
    assert "basics.py line 2 raised RuntimeError" in text
    assert "> <submission>/basics.py(2)helper()\n-> return x.reshape(3, 3)" in text
    assert "(4,)" in text
    assert "  2  ->\t    return x.reshape(3, 3)" in text
    assert "> <submission>/basics.py(6)center()\n-> return helper(x)" in text
    assert "guest.py" not in text
    assert text.count("\nso far\n") == 1  # while it is looked at, and not while it is looked for


def test_it_stops_at_the_first_line_of_the_call_with_a_wrong_result(debugged: Debug) -> None:
    anything, text = debugged("center", WRONG, "p x.tolist()", "n", "n", "n", "p mean.item()", "c")
    assert anything
    assert text.startswith("1, 2, 6 become -2, -1, 3\n")
    assert '> <submission>/basics.py(5)center()\n-> print("so far")' in text
    assert "[1.0, 2.0, 6.0]" in text
    assert "\nso far\n" in text.replace("(Pdb) ", "\n")
    assert "(Pdb) 9.0" in text
    assert "_contextlib" not in text


def test_q_leaves_quietly(debugged: Debug) -> None:
    before = sys.gettrace(), sys.stdout
    anything, text = debugged("center", WRONG, "q")
    assert anything
    assert "Bdb" not in text
    assert (sys.gettrace(), sys.stdout) == before


def test_an_end_of_the_input_leaves_too(debugged: Debug) -> None:
    assert debugged("center", WRONG).anything
    assert debugged("center", RAISES).anything


def test_s_steps_into_own_functions_only(debugged: Debug) -> None:
    text = debugged(
        "center",
        """
        import torch.nn.functional as F

        def helper(x):
            return F.softmax(x, 0)

        def center(x):
            return helper(x)
        """,
        "s",
        "s",
        "s",
        "s",
        "s",
        "s",
        "q",
    ).text
    assert "basics.py(4)helper()" in text
    assert "functional.py" not in text


def test_a_module_stops_in_its_forward(debugged: Debug) -> None:
    text = debugged(
        "Projection",
        """
        from torch import nn

        class Projection(nn.Module):
            def __init__(self, d_in, d_out):
                super().__init__()
                self.linear = nn.Linear(d_in, d_out, bias=False)

            def forward(self, x):
                return self.linear(x) + 1
        """,
        "p x.shape",
        "q",
    ).text
    assert "> <submission>/basics.py(9)forward()" in text
    assert "torch.Size([2, 3])" in text


def test_a_line_outside_any_function_is_looked_back_at(debugged: Debug) -> None:
    text = debugged("center", "size = 1 / 0\ndef center(x):\n    return x * size\n", "q").text
    assert "NameError" in text
    assert "> <submission>/basics.py(3)center()" in text


def test_what_no_line_of_the_student_raised_is_told(debugged: Debug) -> None:
    text = debugged("center", "import functools\ncenter = functools.partial(abs, 1)\n", "q").text
    assert "none of your lines was running" in text


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("center", "x = 1\n", "no definition with this name"),
        ("center", "def center():\n    return 1\n", "the statement lists (x)"),
        ("weigh", "def weigh(scores):\n    return scores.softmax(-1)\n", "uses softmax"),
    ],
)
def test_what_is_wrong_without_a_case_is_told(
    debugged: Debug, name: str, answer: str, told: str
) -> None:
    anything, text = debugged(name, answer)
    assert anything
    assert told in text


def test_where_all_is_well_there_is_nothing_to_stop_at(debugged: Debug) -> None:
    right = (TINY / "solutions" / "basics.py").read_text("utf-8")
    assert debugged("center", right) == (
        False,
        "nothing to stop at: all public checks of center pass\n",
    )
