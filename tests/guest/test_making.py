"""How an answer is made: only what it needs is run, and what fails is told."""

from __future__ import annotations

import pytest
import torch

from grader.grading.desk import Desk
from grader.sandbox.session import StudentLost
from tests.support.tiny_answers import Ask, Sit, center_that_gives, complaint

# --- only what is needed is run ------------------------------------------------------------------


def test_a_main_block_is_not_run_and_binds_nothing(sit: Sit, center: Ask) -> None:
    main = "if __name__ == '__main__':\n    center = None\n    shift = 100\n    raise SystemExit\n"
    assert center(sit({"basics.py": "shift = 2\n" + center_that_gives("shift") + main})) == 2


def test_only_needed_statements_run(sit: Sit, center: Ask) -> None:
    text = """
import builtins

def note(what):
    builtins.seen = getattr(builtins, 'seen', 0) + what
    return what

note(1)
unused = note(10)
shift = note(100)

def other(x=note(1000)):
    return x

class Unneeded:
    size = note(10000)

Numbers = note(100000)

def center(x: Numbers) -> Numbers:
    return x * 0 + builtins.seen + shift * 0
"""
    assert center(sit({"basics.py": text})) == 100


def test_what_is_needed_is_made_once_and_not_at_every_call(sit: Sit, center: Ask) -> None:
    seat = sit(
        {
            "basics.py": "calls = []\ndef center(x):\n    calls.append(x)\n"
            "    return x * 0 + len(calls)\n"
        }
    )
    assert [center(seat), center(seat)] == [1, 2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("shift = 5", ""),
        ("first = 2\nsecond = first + 1\nshift = first + second", ""),
        (
            "def two():\n    return 2\ndef three():\n    return two() + 1\nshift = three() + two()",
            "",
        ),
        ("shift = 4\nshift = shift + 1", ""),
        ("shift = 4\nshift += 1", ""),
        ("a, (b, *c) = 1, (2, 3)\nshift = a + b + c[0] - 1", ""),
        ("class Config:\n    shift = 0\nConfig.shift = 5\nshift = Config.shift", ""),
        ("table = {}\ntable['shift'] = 5\nshift = table['shift']", ""),
        ("import math as m\nshift = m.floor(5.5)", ""),
        ("from math import *\nshift = floor(5.5)", ""),
        ("for k in range(6):\n    shift = k", ""),
        ("with open('/dev/null') as f:\n    shift = 5", ""),
        ("try:\n    import not_installed_at_all\nexcept ImportError:\n    shift = 5", ""),
        ("if True:\n    shift = 5\nelse:\n    shift = 6", ""),
        ("shift = (n := 4) + 1", ""),
        ("shift: int = 5", ""),
        ("shift: NoSuch[type, 1 / 0] = 5", ""),
        ("from __future__ import annotations\nshift = 5", ""),
        ("", "shift = 5"),
        ("shift = 1", "shift = 5"),
        ("", "def make():\n    return 5\nshift = make()"),
    ],
)
def test_what_an_answer_uses_is_made_in_the_order_in_which_it_stands(
    sit: Sit, center: Ask, before: str, after: str
) -> None:
    text = f"{before}\n{center_that_gives('shift')}\n{after}\n"
    assert center(sit({"basics.py": text})) == 5


@pytest.mark.parametrize(
    "use",
    [
        "def center(x, k=shift):\n    return x * 0 + k",
        "def center(x):\n    def inner():\n        return shift\n    return x * 0 + inner()",
        "def center(x):\n    return x * 0 + [shift for _ in range(3)][0]",
        "def center(x):\n    return x * 0 + (lambda: shift)()",
        "def helper():\n    return shift\ndef center(x):\n    return x * 0 + helper()",
        "def add(k):\n    return lambda f: lambda x: f(x) + k\n@add(shift)\n"
        "def center(x):\n    return x * 0",
        "def center(x):\n    global shift\n    shift += 0\n    return x * 0 + shift",
        "class Tool:\n    size = shift\n    def run(self):\n        return self.size\n"
        "def center(x):\n    return x * 0 + Tool().run()",
    ],
    ids=[
        "a default",
        "an inner function",
        "a comprehension",
        "a lambda",
        "a helper",
        "a decorator",
        "a global statement",
        "a class body",
    ],
)
def test_a_constant_is_found_wherever_it_is_used(sit: Sit, center: Ask, use: str) -> None:
    assert center(sit({"basics.py": f"shift = 5\n{use}\n"})) == 5


def test_a_constant_is_found_among_hundreds_of_names(sit: Sit, center: Ask) -> None:
    names = [f"name_{n}" for n in range(300)]
    many = "\n".join(f"{name} = 1" for name in names)
    text = f"{many}\nshift = 5\ndef center(x):\n    {', '.join(names)}\n    return x * 0 + shift\n"
    assert center(sit({"basics.py": text})) == 5


def test_annotations_that_would_raise_do_not(sit: Sit, center: Ask) -> None:
    text = (
        "def center(x: Undefined[1 / 0, 'no such'], *rest: nope.at) -> jaxtyping.Float[x]:\n"
        "    y: AlsoUndefined = 1\n"
        "    return x * 0 + y\n"
    )
    assert center(sit({"basics.py": text})) == 1


def test_a_class_with_undefined_annotations_is_made(sit: Sit, desk: Desk) -> None:
    text = (
        "from torch import nn\nclass Projection(nn.Module):\n    mask: Undefined\n"
        "    def __init__(self, d_in: Nope, d_out, bias=False) -> Nothing:\n"
        "        super().__init__()\n        self.linear: Odd = nn.Linear(d_in, d_out)\n"
        "    def forward(self, x):\n        return self.linear(x)\n"
    )
    student = sit({"layers.py": text}).begin(desk.make("Projection", "test", ""))
    assert student.Projection(3, 4)(torch.ones(2, 3)).shape == (2, 4)


def test_a_class_finds_the_module_that_it_says_it_is_from(sit: Sit, center: Ask) -> None:
    text = (
        "from dataclasses import dataclass\nimport inspect, sys\n"
        "@dataclass\nclass Config:\n    eight: float = 8.0\n"
        "me = sys.modules[__name__]\n"
        "def center(x):\n"
        "    assert 'eight' in inspect.getsource(Config)\n"
        "    return x * 0 + me.Config().eight\n"
    )
    assert center(sit({"basics.py": text})) == 8


def test_prints_and_warnings_inside_an_answer_cost_nothing(sit: Sit, center: Ask) -> None:
    text = (
        "import warnings, sys\n"
        "def center(x):\n"
        "    print('x =', x, flush=True)\n"
        "    warnings.warn('careful')\n"
        "    sys.stderr.write('a word')\n"
        "    return x * 0 + 8\n"
    )
    assert center(sit({"basics.py": text})) == 8


# --- what goes wrong is told ---------------------------------------------------------------------


def test_a_misspelt_local_name_gets_the_nearest_one(sit: Sit, desk: Desk) -> None:
    text = "def center(scores):\n    average = scores.mean()\n    return scores - averge\n"
    assert complaint(sit({"basics.py": text}), desk).text.endswith("did you mean average?")


def test_a_global_that_existed_only_in_the_session_is_told_as_such(sit: Sit, desk: Desk) -> None:
    raised = complaint(sit({"hw.ipynb": [center_that_gives("scale")]}), desk)
    assert raised.kind == "NameError"
    assert "scale is defined nowhere in these files" in raised.text
    assert "session" in raised.text


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "from einops import scale",
            "ModuleNotFoundError: there is no einops here. An answer may import Python's own "
            "library, torch and numpy",
        ),
        ("from math import scale", "ImportError"),
        ("scale = 1 / 0", "ZeroDivisionError"),
        ("scale = open('/no/such/file').read()", "FileNotFoundError"),
    ],
)
def test_a_helper_that_could_not_be_made_is_told_with_its_line(
    sit: Sit, desk: Desk, line: str, kind: str
) -> None:
    raised = complaint(sit({"basics.py": f"\n{line}\n{center_that_gives('scale')}"}), desk)
    assert raised.text == f"scale was not made: basics.py line 2 raised {kind}"


def test_a_helper_in_another_file_that_could_not_be_made_is_told(sit: Sit, desk: Desk) -> None:
    files = {
        "basics.py": f"from tools import scale\n{center_that_gives('scale')}",
        "tools.py": "import math\nscale = 1 / 0\n",
    }
    raised = complaint(sit(files), desk)
    assert "scale" in raised.text
    assert "ZeroDivisionError" in raised.text


def test_a_statement_that_raises_costs_only_the_exercises_that_need_it(
    sit: Sit, desk: Desk
) -> None:
    stairs = (
        "import torch\ndef staircase(n):\n    return torch.ones(n, n, dtype=torch.bool).tril()\n"
    )
    seat = sit({"basics.py": f"shift = 1 / 0\n{center_that_gives('shift')}\n{stairs}"})
    assert "ZeroDivisionError" in complaint(seat, desk).text
    assert bool(seat.begin(desk.make("staircase", "test", "")).staircase(2)[1, 0])


def test_a_statement_that_never_ends_costs_only_the_exercises_that_need_it(
    sit: Sit, desk: Desk
) -> None:
    stairs = "import torch\ndef staircase(n):\n    return torch.eye(n) > 0\n"
    endless = "shift = 0\nwhile True:\n    shift += 1\n"
    seat = sit({"basics.py": f"{endless}\n{center_that_gives('shift')}\n{stairs}"})
    student = seat.begin(desk.make("center", "test", ""))
    with pytest.raises(StudentLost) as lost:
        student.center(torch.ones(2))
    assert lost.value.status == "timeout"
    assert bool(seat.begin(desk.make("staircase", "test", "")).staircase(2)[0, 0])


def test_a_definition_whose_decorator_is_missing_says_so(sit: Sit, desk: Desk) -> None:
    text = f"from not_installed_at_all import magic\n\n@magic\n{center_that_gives(1)}"
    raised = complaint(sit({"basics.py": text}), desk)
    assert "magic was not made: basics.py line 1 raised ModuleNotFoundError" in raised.text
