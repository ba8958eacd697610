"""How a submission's text is read: cells of notebooks with magics, and files that do not parse."""

from __future__ import annotations

import sys

import pytest

from grader.grading.desk import Desk
from grader.wire import Place
from tests.support.tiny_answers import Ask, Sit, center_that_gives, complaint, found

# --- notebooks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "raise RuntimeError('a cell that fails')",
        "this is not Python",
        "%matplotlib inline",
        "!pip install torch",
        "?torch.softmax",
        "torch.softmax??",
        "%%bash\nls -l\nrm nothing",
        "%%html\n<b>bold</b>",
        "files = !ls",
        "moment = %time 3",
        "if True:\n    !ls\n    %timeit 3",
        "print('hello')",
        "import package_that_is_not_installed.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "while True:\n    pass",
        "for epoch in range(10**12):\n    loss = epoch * 2",
        "import time\ntime.sleep(1000)",
        "import sys\nsys.exit()",
        "data = open('/data/that/is/not/there.csv').read()",
        "answer = input('how many?')",
        "del something_that_is_not_there",
        "await something()",
        "return 3",
        "assert False",
        "x: Undefined = 3",
        "",
    ],
)
def test_a_cell_that_the_answer_does_not_need_costs_nothing(
    sit: Sit, center: Ask, cell: str
) -> None:
    assert center(sit({"hw.ipynb": [cell, center_that_gives(3), cell]})) == 3


@pytest.mark.parametrize(
    "magic",
    [
        "%%time",
        "%%capture",
        "%%prun -q",
        "%matplotlib inline",
        "!pip install torch",
        "%load_ext autoreload\n%autoreload 2",
        "torch?",
        "torch.nn.Linear??",
        "if True:\n    !ls",
        "try:\n    %matplotlib inline\nexcept NameError:\n    pass",
        "?torch",
        "files = !ls",
        "where = %pwd",
    ],
)
def test_a_magic_in_the_cell_of_the_answer_costs_nothing(sit: Sit, center: Ask, magic: str) -> None:
    assert center(sit({"hw.ipynb": [f"{magic}\n{center_that_gives(3)}"]})) == 3


def test_a_magic_inside_a_function_leaves_the_rest_of_it(sit: Sit, center: Ask) -> None:
    cell = "def center(x):\n    !echo hello\n    %time y = 3\n    return x * 0 + 6\n"
    assert center(sit({"hw.ipynb": [cell]})) == 6


def test_a_percent_sign_in_a_python_file_is_python(sit: Sit, center: Ask) -> None:
    text = "def center(x):\n    return x * 0 + (17\n    % 10)\n"
    assert center(sit({"basics.py": text})) == 7


def test_a_percent_sign_in_a_cell_that_is_python_is_python(sit: Sit, center: Ask) -> None:
    cell = "def center(x):\n    return x * 0 + (17\n    % 10)\n"
    assert center(sit({"hw.ipynb": [cell]})) == 7


# --- files that do not parse ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    ["    return x -\n", "    return (x\n", "  x = 1\n      return x\n", "    return 'x\n"],
)
def test_a_file_that_does_not_parse_is_told_with_its_line_for_the_names_in_it(
    sit: Sit, center: Ask, wrong: str
) -> None:
    seat = sit(
        {
            "basics.py": "import torch\n\ndef center(x):\n" + wrong + "\nclass weigh: pass\n",
            "layers.py": center_that_gives(1).replace("center", "staircase"),
        }
    )
    for name in ("center", "weigh"):
        entry = found(seat, name)
        assert entry.status == "broken"
        assert entry.message
        assert entry.place is not None
        assert entry.place.file == "basics.py"
        assert entry.place.line in (3, 4, 5)
    assert found(seat, "staircase").status == "found"
    assert found(seat, "Projection").status == "missing"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has the newer syntax")
@pytest.mark.parametrize(
    "line",
    ["type Row = list", "def first[T](x: T): return x", "name = f'{'a'}'", "class A[T]: pass"],
)
def test_syntax_that_is_newer_than_this_python_names_both_versions(sit: Sit, line: str) -> None:
    entry = found(sit({"basics.py": f"{center_that_gives(3)}\n{line}\n"}))
    assert entry.status == "broken"
    assert "is not valid Python 3.11, which the grader runs (Python 3.12 may accept it): " in (
        entry.message
    )


def test_the_line_of_a_syntax_error_is_shown(sit: Sit) -> None:
    seat = sit({"basics.py": "import torch\n\ndef center(x):\n    return x -\n"})
    assert found(seat).place == Place("basics.py", 4, "return x -")


def test_a_definition_that_parses_wins_over_a_broken_one(sit: Sit, center: Ask) -> None:
    assert center(sit({"basics.py": "def center(x:\n", "a.py": center_that_gives(5)})) == 5


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "(" * 5000,
        "x = " + "-" * 20_000 + "1",
        "x = " + "+".join(["1"] * 20_000),
        "\ufeff\f",
    ],
    ids=["a null byte", "parentheses", "a long sign", "a long sum", "odd blanks"],
)
def test_a_monstrous_file_costs_nothing_but_itself(sit: Sit, center: Ask, text: str) -> None:
    assert center(sit({"basics.py": center_that_gives(5), "other.py": text})) == 5


@pytest.mark.parametrize("terms", [500, 20_000])
def test_a_monstrous_definition_costs_nothing_but_itself(sit: Sit, terms: int) -> None:
    deep = "def center(x):\n    return x" + " + 0" * terms + "\n"
    seat = sit({"basics.py": deep, "other.py": "def staircase(n):\n    return 3\n"})
    assert found(seat, "staircase").status == "found"
    assert found(seat).status in ("found", "broken")


# --- places --------------------------------------------------------------------------------------


def test_lines_are_counted_alike_under_every_newline(sit: Sit, desk: Desk) -> None:
    lines = ["", "def center(x):", "    return nowhere"]
    for newline in ("\n", "\r\n", "\r"):
        place = complaint(sit({"a.py": newline.join(lines)}), desk).place
        assert place is not None
        assert (place.line, place.text) == (3, "return nowhere")


def test_places_in_a_notebook_are_told_by_cell_and_by_line_in_it(sit: Sit, desk: Desk) -> None:
    cells = [
        "import torch\nimport math",
        "%matplotlib inline",
        "\ndef center(x):\n    return x / 0",
    ]
    seat = sit({"week/hw.ipynb": [*cells, "def weigh(scores)\n    pass"]})
    assert found(seat).place == Place("week/hw.ipynb", 2, "def center(x):", 3)
    assert found(seat, "weigh").place == Place("week/hw.ipynb", 1, "def weigh(scores)", 4)
    bug = ["y = 3", "\ndef center(x):\n    return missing"]
    raised = complaint(sit({"hw.ipynb": bug}), desk)
    assert raised.place == Place("hw.ipynb", 3, "return missing", 2)


def test_an_error_in_a_cell_names_lines_of_that_cell(sit: Sit) -> None:
    seat = sit(
        {"hw.ipynb": ["import torch\nimport math", "def center(x):\n    if x:\n    return x"]}
    )
    assert found(seat).place == Place("hw.ipynb", 3, "return x", 2)
    assert "on line 2" in found(seat).message
