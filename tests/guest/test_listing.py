"""What is read from a submission's text: exercises that an answer uses, evasions, arguments."""

from __future__ import annotations

from typing import Any

import pytest

from grader.grading.desk import Seat
from tests.support.tiny_answers import STUB, Sit, center_that_gives, found

# --- which exercises an answer uses --------------------------------------------------------------

USED = {
    "in its own file": {"basics.py": STUB + "def weigh(x):\n    return center(x)\n"},
    "by way of a helper": {
        "basics.py": STUB
        + "def weigh(x):\n    return mine(x)\ndef mine(x):\n    return center(x)\n"
    },
    "by an import": {
        "basics.py": STUB,
        "b.py": "from .basics import center\ndef weigh(x):\n    return center(x)\n",
    },
    "by an import under another name": {
        "basics.py": STUB,
        "b.py": "from basics import center as middle\ndef weigh(x):\n    return middle(x)\n",
    },
    "by its module": {
        "basics.py": STUB,
        "b.py": "import basics as bs\ndef weigh(x):\n    return bs.center(x)\n",
    },
    "by a module of a package": {
        "basics.py": STUB,
        "b.py": "from . import basics\ndef weigh(x):\n    return basics.center(x)\n",
    },
    "by an import of everything": {
        "basics.py": STUB,
        "b.py": "from basics import *\ndef weigh(x):\n    return center(x)\n",
    },
    "by a helper of another file": {
        "basics.py": STUB + "def mine(x):\n    return center(x)\n",
        "b.py": "from basics import mine\ndef weigh(x):\n    return mine(x)\n",
    },
    "in a method": {
        "basics.py": (
            STUB + "class weigh:\n    def __init__(self):\n        self.center = center(1)\n"
        )
    },
}


@pytest.mark.parametrize("files", USED.values(), ids=USED.keys())
def test_it_is_known_which_exercises_an_answer_uses(files: dict[str, str], sit: Sit) -> None:
    assert found(sit(files), "weigh").bases == {"center": "stub"}


@pytest.mark.parametrize(
    "imports", ["", "from basics import center\n", "from grader.mine import center\n"]
)
def test_an_exercise_that_is_used_and_defined_nowhere_is_missing(imports: str, sit: Sit) -> None:
    seat = sit({"b.py": f"{imports}def weigh(x):\n    return center(x)\n"})
    assert found(seat, "weigh").bases == {"center": "missing"}


UNUSED = {
    "a parameter": "def weigh(center):\n    return center(1)\n",
    "a local name": "def weigh(x):\n    center = x\n    return center\n",
    "an attribute": "def weigh(x):\n    return x.center\n",
    "a library's": "from torch import exp as center\ndef weigh(x):\n    return center(x)\n",
    "a library's, perhaps": "from torch import *\ndef weigh(x):\n    return center(x)\n",
    "a function of another module": "import torch\ndef weigh(x):\n    return torch.center(x)\n",
    "itself": "def weigh(x):\n    return weigh(x)\n",
}


@pytest.mark.parametrize("text", UNUSED.values(), ids=UNUSED.keys())
def test_a_name_alone_is_no_use_of_an_exercise(text: str, sit: Sit) -> None:
    assert found(sit({"b.py": text, "basics.py": STUB}), "weigh").bases == {}


def test_a_copy_of_an_exercise_that_does_not_count_is_no_use_of_it(sit: Sit) -> None:
    counts = center_that_gives(1)
    copy = f"{center_that_gives(2)}def weigh(x):\n    return center(x)\n"
    assert found(sit({"basics.py": counts, "b.py": copy}), "weigh").bases == {}


def test_imports_that_go_in_circles_lead_nowhere(sit: Sit) -> None:
    circle = {"a.py": "from b import center\n", "b.py": "from a import center\n"}
    weigh = {"basics.py": "from a import center\ndef weigh(x):\n    return center(x)\n"}
    assert found(sit(circle | weigh), "weigh").bases == {}


# --- evasions ------------------------------------------------------------------------------------


def evasions(seat: Seat, name: str = "center") -> list[tuple[str, int]]:
    """The words that would hide operations, with their lines."""
    return [
        (use.function, use.place.line if use.place else 0) for use in found(seat, name).evasions
    ]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("with torch._C.DisableTorchFunction():\n        x = x + 1", "DisableTorchFunction"),
        ("guard = getattr(torch._C, 'DisableTorchFunction')", "DisableTorchFunction"),
        ("from torch._C import DisableTorchFunctionSubclass as D", "DisableTorchFunctionSubclass"),
        ("torch.utils._python_dispatch._disable_current_modes()", "_disable_current_modes"),
        ("import ctypes", "ctypes"),
        ("from torch.library import custom_op", "torch.library"),
    ],
)
def test_a_line_that_hides_operations_is_found(sit: Sit, line: str, word: str) -> None:
    text = f"import torch\n\ndef center(x):\n    {line}\n    return x\n"
    assert (word, 4) in evasions(sit({"basics.py": text}))


def test_a_helper_that_hides_operations_counts_for_those_who_use_it(sit: Sit) -> None:
    text = (
        "import torch\n"
        "quiet = torch._C.DisableTorchFunction\n"
        "def hidden(x):\n    with quiet():\n        return x\n"
        "def center(x):\n    return hidden(x)\n"
        "def weigh(scores):\n    return scores\n"
    )
    seat = sit({"basics.py": text})
    assert evasions(seat) == [("DisableTorchFunction", 2)]
    assert evasions(seat, "weigh") == []


def test_a_helper_in_another_file_that_hides_operations_counts_too(sit: Sit) -> None:
    files = {
        "basics.py": "from tools import hidden\ndef center(x):\n    return hidden(x)\n",
        "tools.py": "import torch\ndef hidden(x):\n    with torch._C.DisableTorchFunction():\n"
        "        return x\n",
    }
    assert evasions(sit(files)) == [("DisableTorchFunction", 3)]


def test_an_honest_answer_hides_nothing(sit: Sit, right: str) -> None:
    seat = sit({"basics.py": right})
    assert not any(entry.evasions for entry in seat.listing.found)


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "listed"),
    [
        ("x", [("x", "positional", False)]),
        ("x, /, k=3", [("x", "positional", False), ("k", "positional", True)]),
        ("*x, **k", [("x", "star", True), ("k", "double_star", True)]),
        (
            "x, *, k, m=1",
            [("x", "positional", False), ("k", "keyword", False), ("m", "keyword", True)],
        ),
    ],
)
def test_arguments_are_read_from_the_text(sit: Sit, head: str, listed: list[Any]) -> None:
    arguments = found(sit({"a.py": f"def center({head}):\n    return 1\n"})).arguments
    assert [(a.name, a.kind, a.optional) for a in arguments or []] == listed


# --- nothing runs --------------------------------------------------------------------------------


def test_nothing_of_the_submission_runs_before_it_is_called(sit: Sit) -> None:
    text = f"import os\nos._exit(1)\nshift = os._exit(1)\n{center_that_gives('shift')}"
    seat = sit({"basics.py": text})
    assert found(seat).status == "found"
