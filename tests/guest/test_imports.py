"""Imports among a submission's own files, and of one's own answers by their names."""

from __future__ import annotations

import pytest

from grader.grading.desk import Desk
from tests.support.tiny_answers import Ask, Sit, center_that_gives, complaint, found

# --- imports among a submission's own files ------------------------------------------------------


@pytest.mark.parametrize("folder", ["", "homework/"])
@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("from tools import shift", "shift"),
        ("from tools import shift as s", "s"),
        ("import tools", "tools.shift"),
        ("import tools as t", "t.shift"),
        ("from tools import *", "shift"),
        ("from .tools import shift", "shift"),
        ("from .tools import *", "shift"),
        ("from . import tools", "tools.shift"),
        ("from ..lib.tools import shift", "shift"),
        ("from homework.tools import shift", "shift"),
        ("from homework.tools import *", "shift"),
        ("from homework import tools", "tools.shift"),
        ("import homework.tools", "homework.tools.shift"),
        ("import homework.tools as t", "t.shift"),
        ("from course.week1.homework.tools import shift", "shift"),
        ("import course.week1.tools as t", "t.shift"),
        ("try:\n    from .tools import shift\nexcept ImportError:\n    shift = 6", "shift"),
    ],
)
def test_a_submissions_files_import_each_other(
    sit: Sit, center: Ask, folder: str, statement: str, use: str
) -> None:
    seat = sit(
        {
            f"{folder}basics.py": f"{statement}\n{center_that_gives(use)}",
            f"{folder}tools.py": "one = 1\nshift = one + 4\n",
        }
    )
    assert center(seat) == 5


@pytest.mark.parametrize(
    "name",
    [
        "tools (1).py", "tools(2).py", "tools-1.py", "tools copy.py", "tools - Copy.py",
        "tools-Copy1.ipynb", "Copy of tools.ipynb",
    ],
)  # fmt: skip
@pytest.mark.parametrize("statement", ["from tools import shift", "from exercises.tools import *"])
def test_a_file_that_a_download_renamed_is_found_by_its_own_name(
    sit: Sit, center: Ask, name: str, statement: str
) -> None:
    text = f"{statement}\n{center_that_gives('shift')}"
    assert center(sit({"basics.py": text, name: "shift = 5"})) == 5


def test_a_file_of_the_very_name_comes_before_a_copy(sit: Sit, center: Ask) -> None:
    text = f"from tools import shift\n{center_that_gives('shift')}"
    files = {"basics.py": text, "tools (1).py": "shift = 6", "tools.py": "shift = 5"}
    assert center(sit(files)) == 5


@pytest.mark.parametrize(
    "line",
    ["from tools import shift", "from .tools import shift", "import tools as t; shift = t.shift"],
)
def test_files_may_be_imported_inside_a_function(sit: Sit, center: Ask, line: str) -> None:
    text = f"def center(x):\n    {line}\n    return x * 0 + shift\n"
    assert center(sit({"basics.py": text, "tools.py": "shift = 5"})) == 5


def test_a_notebook_may_import_a_file_and_a_file_a_notebook(sit: Sit, center: Ask) -> None:
    first = sit(
        {
            "hw.ipynb": ["from tools import shift", center_that_gives("shift")],
            "tools.py": "shift = 5",
        }
    )
    second = sit(
        {
            "basics.py": f"from hw import shift\n{center_that_gives('shift')}",
            "hw.ipynb": ["!ls", "shift = 5"],
        }
    )
    assert center(first) == center(second) == 5


def test_what_a_file_imports_can_be_imported_from_it(sit: Sit, center: Ask) -> None:
    seat = sit(
        {
            "a.py": f"from b import shift\n{center_that_gives('shift')}",
            "b.py": "from c import shift",
            "c.py": "shift = 5",
        }
    )
    assert center(seat) == 5


def test_files_may_import_each_other_in_a_circle(sit: Sit, center: Ask) -> None:
    seat = sit(
        {
            "a.py": f"from b import shift\none = 1\n{center_that_gives('shift')}",
            "b.py": "from a import one\nshift = one + 4",
        }
    )
    assert center(seat) == 5


def test_importing_a_file_runs_no_more_of_it_than_is_needed(sit: Sit, center: Ask) -> None:
    tools = "while True:\n    break\nraise RuntimeError\nshift = 5\nprint(undefined)\n"
    assert (
        center(
            sit({"a.py": f"import tools\n{center_that_gives('tools.shift')}", "tools.py": tools})
        )
        == 5
    )


def test_an_own_file_never_shadows_an_installed_package(sit: Sit, center: Ask) -> None:
    trap = "def ones(*size):\n    return 'a trap'\nrelu = ones\n"
    text = """
import torch, numpy
from torch import nn
import torch.nn.functional as F

def center(x):
    return F.relu(x - torch.ones(2) * float(numpy.ones(1)[0])) + 1
"""
    names = ("torch", "numpy", "nn", "functional")
    assert center(sit({"basics.py": text, **{f"{name}.py": trap for name in names}})) == 1


# --- answers use each other ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["code", "test", "calendar", "statistics"])
@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("from {} import shift", "shift"),
        ("import {}", "{}.shift"),
        ("import {} as t", "t.shift"),
        ("from {} import *", "shift"),
    ],
)
def test_a_file_named_like_a_module_of_python_is_what_the_students_files_import(
    sit: Sit, center: Ask, name: str, statement: str, use: str
) -> None:
    answer = f"{statement}\n{center_that_gives(use)}".format(*[name] * 2)
    assert center(sit({f"{name}.py": "shift = 7\n", "basics.py": answer})) == 7


@pytest.mark.parametrize("other", ["copy.ipynb", "old/copy.py", "basics.py"])
def test_pythons_own_module_is_imported_where_python_would_not_find_the_students_file(
    sit: Sit, center: Ask, other: str
) -> None:
    answer = f"import copy\n{center_that_gives('len(copy.copy([1, 2]))')}"
    files = {other: "x = 1\n", "basics.py": answer}
    assert center(sit({n: [t] if n.endswith("nb") else t for n, t in files.items()})) == 2


def test_an_answer_in_a_file_named_like_a_module_may_import_that_module(
    sit: Sit, center: Ask
) -> None:
    answer = f"import copy\n{center_that_gives('len(copy.copy([1, 2]))')}"
    assert center(sit({"copy.py": answer})) == 2


@pytest.mark.parametrize(
    "rest",
    [
        "if __name__ == '__main__':\n    args = 1",
        "data = open('shakespeare.txt').read()",
        "import matplotlib_that_is_not_there as aaa",
        "for k in []:\n    pass",
        "try:\n    import mmm\nexcept ImportError:\n    pass",
    ],
)
@pytest.mark.parametrize("line", ["from helpers import *", "%run helpers.py"])
def test_a_star_import_brings_what_can_be_made(sit: Sit, center: Ask, rest: str, line: str) -> None:
    helpers = f"def n():\n    return 4\n{rest}\n"
    answer = f"{line}\n{center_that_gives('n()')}"
    assert center(sit({"helpers.py": helpers, "hw.ipynb": [answer]})) == 4


def test_what_libraries_import_is_pythons_own_module(sit: Sit, center: Ask) -> None:
    uses = "import pdb, copy\ndef center(x):\n    return x * 0 + hasattr(pdb, 'Pdb')\n"
    own = {"code.py": "raise RuntimeError\n", "copyreg.py": "raise RuntimeError\n"}
    assert center(sit({**own, "basics.py": uses})) == 1


def test_an_exercise_in_another_file_needs_no_import(sit: Sit, center: Ask) -> None:
    seat = sit(
        {
            "basics.py": "def center(x):\n    return weigh(x)\n",
            "cells.ipynb": ["two = 2", "def weigh(x):\n    return x * 0 + two"],
        }
    )
    assert center(seat) == 2


def test_an_answer_may_use_another_answer_of_its_file(sit: Sit, center: Ask) -> None:
    text = "def weigh(x):\n    return x * 0 + 3\n\ndef center(x):\n    return weigh(x) + 1\n"
    assert center(sit({"basics.py": text})) == 4


def test_the_answer_that_counts_is_the_one_that_others_use(sit: Sit, center: Ask) -> None:
    weigh = "def weigh(x):\n    return x * 0 + {}\n"
    text = weigh.format(1) + "def center(x):\n    return weigh(x)\n" + weigh.format(2)
    assert center(sit({"basics.py": text})) == 2
    stub = "def weigh(x):\n    raise NotImplementedError\n"
    assert center(sit({"basics.py": text + stub})) == 2


STUB = "def weigh(x):\n    raise NotImplementedError\n"
ANSWER = "def weigh(x):\n    return x * 0 + 2\n"
HELPED = "def helper(x):\n    return x\n\ndef weigh(x):\n    return helper(x) * 0 + 2\n"


@pytest.mark.parametrize(
    "line",
    ["from basics import weigh", "from .basics import weigh", "from exercises.basics import *",
     "import exercises.basics as b"],
)  # fmt: skip
@pytest.mark.parametrize(
    "files",
    [
        {"exercises/basics.py": ANSWER, "notebooks/basics.ipynb": ["x = 1", STUB]},
        {"exercises/basics.py": STUB, "notebooks/basics.ipynb": [ANSWER]},
        {"exercises/basics.py": HELPED, "notebooks/basics.ipynb": [STUB, "weigh(torch.ones(3))"]},
    ],
    ids=["untouched notebook", "untouched file", "helpers"],
)
def test_an_import_of_an_exercise_brings_its_answer_and_never_a_stub_beside_it(
    sit: Sit, center: Ask, files: dict[str, str | list[str]], line: str
) -> None:
    """A whole folder of a student's holds each unit twice: as a file, and as a notebook."""
    use = "b.weigh(x)" if line.endswith(" as b") else "weigh(x)"
    seat = sit({"exercises/layers.py": f"{line}\n{center_that_gives(use)}", **files})
    assert center(seat) == 2
    assert found(seat).bases == {"weigh": "found"}


def test_a_file_that_calls_its_own_stub_gets_no_answer_of_another_file(
    sit: Sit, desk: Desk
) -> None:
    text = f"{STUB}\ndef center(x):\n    return weigh(x)\n"
    told = complaint(sit({"basics.py": text, "more.ipynb": [ANSWER]}), desk)
    assert "NotImplementedError" in str(told)


@pytest.mark.parametrize(
    "line",
    [
        "from exercises.basics import center as stub",
        "import exercises.basics as b; stub = b.center",
    ],
)
def test_an_answer_may_use_its_own_stub(sit: Sit, center: Ask, line: str) -> None:
    """A class may have its stub as base class, for example."""
    text = f"""{line}

def center(x):
    try:
        return stub(x)
    except NotImplementedError:
        return x * 0 + 5
"""
    stub = "def center(x):\n    raise NotImplementedError\n"
    assert center(sit({"exercises/basics.py": stub, "notebooks/basics.ipynb": [text]})) == 5


# --- one's own answers by name -------------------------------------------------------------------

MEAN = "def staircase(x):\n    return x.mean()\n"
BY_NAME = (
    "from grader.mine import staircase\n\ndef center(x):\n    return x * 0 + staircase(x) + 1\n"
)


@pytest.mark.parametrize("other", ["basics.py", "deep/basics.py", "mine.py"])
def test_an_import_of_ones_own_answer_brings_what_was_handed_in(
    sit: Sit, center: Ask, other: str
) -> None:
    assert center(sit({"layers.ipynb": [BY_NAME], other: MEAN})) == 2


def test_an_import_of_ones_own_answer_is_no_evasion_and_hides_none(sit: Sit) -> None:
    hidden = "def staircase(x):\n    import sys\n    return sys._getframe()\n"
    assert found(sit({"layers.ipynb": [BY_NAME], "basics.py": MEAN})).evasions == []
    uses = found(sit({"layers.ipynb": [BY_NAME], "basics.py": hidden})).evasions
    assert [use.function for use in uses] == ["_getframe"]


def test_an_import_of_an_answer_that_was_not_handed_in_is_named(sit: Sit, desk: Desk) -> None:
    told = complaint(sit({"layers.py": BY_NAME}), desk)
    assert "staircase was not made: layers.py line 1 raised ImportError" in told.text
