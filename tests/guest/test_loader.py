"""How a submission's definitions are found and made, without running it from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from grader.course.course import Course
from grader.grading.desk import Desk, Seat
from grader.proxies.calls import StudentRaised
from grader.sandbox.session import StudentLost
from grader.wire import Found, Place

Sit = Callable[[Mapping[str, str | Sequence[str]]], Seat]
Ask = Callable[[Seat], float]

STUB = '''
def center(x):
    """Subtract the mean from each element."""
    raise NotImplementedError
'''


def center_that_gives(value: object) -> str:
    """An answer that can be told from others."""
    return f"def center(x):\n    return x * 0 + {value}\n"


def found(seat: Seat, name: str = "center") -> Found:
    """What the listing says of an exercise."""
    (entry,) = [entry for entry in seat.listing.found if entry.name == name]
    return entry


@pytest.fixture
def center(desk: Desk) -> Ask:
    """Call a submission's `center`, and return the number that it gives."""

    def ask(seat: Seat) -> float:
        student = seat.begin(desk.make("center", "test", ""))
        return float(student.center(torch.ones(2))[0])

    return ask


def complaint(seat: Seat, desk: Desk) -> StudentRaised:
    """The exception that calling `center` ends in."""
    student = seat.begin(desk.make("center", "test", ""))
    with pytest.raises(StudentRaised) as raised:
        student.center(torch.ones(2))
    return raised.value


# --- which definition counts ---------------------------------------------------------------------


def test_definitions_are_found_over_several_files(sit: Sit) -> None:
    seat = sit(
        {
            "first.py": center_that_gives(1),
            "deep/down/second.py": "def staircase(n): ...\n\ndef weigh(s):\n    return s\n",
            "third.ipynb": ["import torch", "class Projection(torch.nn.Module):\n    size = 3"],
        }
    )
    assert found(seat).place.file == "first.py"  # type: ignore[union-attr]
    assert found(seat, "staircase").status == "stub"
    assert found(seat, "weigh").place.file == "deep/down/second.py"  # type: ignore[union-attr]
    assert found(seat, "Projection").place.within == "third.ipynb cell 2"  # type: ignore[union-attr]


def test_what_is_nowhere_is_missing(sit: Sit) -> None:
    assert found(sit({"basics.py": "x = 1"})).status == "missing"


@pytest.mark.parametrize(
    "text",
    [
        STUB,
        "def center(x):\n    raise NotImplementedError\n",
        "def center(numbers):\n    pass\n",
        "def center(x):\n    ...\n",
        "def center(x: int) -> str:\n    raise NotImplementedError('to do')\n",
        "@decorated\ndef center(x):\n    'My notes.'\n    raise NotImplementedError\n",
    ],
    ids=["as handed out", "no docstring", "pass", "dots", "with a text", "decorated"],
)
def test_an_untouched_stub_is_a_stub_however_it_is_dressed(sit: Sit, text: str) -> None:
    assert found(sit({"basics.py": text})).status == "stub"


def test_a_stub_with_lines_given_in_advance_is_a_stub_too(sit: Sit, tiny: Course) -> None:
    given = tiny.stub_file("basics").read_text("utf-8")
    begun = given.replace("raise NotImplementedError(f", "return (largest, f")
    assert found(sit({"basics.py": given}), "weigh").status == "stub"
    assert found(sit({"basics.py": begun}), "weigh").status == "found"


def test_a_class_is_a_stub_until_one_of_its_methods_is_written(sit: Sit) -> None:
    stub = "class Projection:\n    def __init__(self, a, b, bias=False):\n"
    stub += "        super().__init__()\n        raise NotImplementedError\n"
    forward = "    def forward(self, x):\n"
    untouched = sit({"layers.py": f"{stub}{forward}        raise NotImplementedError\n"})
    begun = sit({"layers.py": f"{stub}{forward}        return x\n"})
    assert found(untouched, "Projection").status == "stub"
    assert found(begun, "Projection").status == "found"


def test_a_function_that_raises_something_else_is_no_stub(sit: Sit) -> None:
    assert found(sit({"basics.py": "def center(x):\n    raise ValueError\n"})).status == "found"


def test_a_name_is_found_however_its_letters_are_written(sit: Sit, center: Ask) -> None:
    wide = center_that_gives(7).replace("center", "\uff43\uff45nter")  # the same name to Python
    assert center(sit({"basics.py": wide})) == 7


@pytest.mark.parametrize(
    "files",
    [
        {"answers.py": center_that_gives(7), "basics.py": STUB},
        {"basics.py": STUB, "answers.py": center_that_gives(7)},
        {"basics.py": center_that_gives(7) + STUB},
        {"basics.ipynb": [center_that_gives(7), STUB]},
    ],
    ids=["in the unit's file", "in an earlier file", "further down", "in a later cell"],
)
def test_a_stub_never_wins_over_a_written_answer(
    sit: Sit, center: Ask, files: dict[str, str]
) -> None:
    assert center(sit(files)) == 7


@pytest.mark.parametrize("unit_file", ["basics.py", "basics.ipynb", "homework/basics.py"])
def test_the_file_named_like_the_unit_wins(sit: Sit, center: Ask, unit_file: str) -> None:
    seat = sit(
        {
            "another.py": center_that_gives(1),
            unit_file: center_that_gives(2),
            "zebra.py": center_that_gives(3),
        }
    )
    assert center(seat) == 2


def test_a_notebook_counts_before_a_file(sit: Sit, center: Ask) -> None:
    file, notebook = center_that_gives(1), [center_that_gives(2)]
    assert center(sit({"basics.py": file, "notebooks/basics.ipynb": notebook})) == 2
    assert center(sit({"basics.py": file, "another.ipynb": notebook})) == 2
    assert center(sit({"basics.py": file, "basics.ipynb": [STUB]})) == 1


def test_among_notebooks_that_of_the_unit_counts_and_else_the_last(sit: Sit, center: Ask) -> None:
    one, other = [center_that_gives(1)], [center_that_gives(2)]
    assert center(sit({"basics.ipynb": one, "zebra.ipynb": other})) == 1
    assert center(sit({"another.ipynb": one, "zebra.ipynb": other})) == 2


def test_among_other_files_the_last_wins(sit: Sit, center: Ask) -> None:
    assert center(sit({"a.py": center_that_gives(1), "b.py": center_that_gives(2)})) == 2


def test_within_a_file_the_last_wins(sit: Sit, center: Ask) -> None:
    seat = sit({"basics.py": center_that_gives(1) + center_that_gives(2)})
    assert center(seat) == 2
    assert found(seat).notes == []


def test_an_import_is_no_answer_but_leads_to_one(sit: Sit, center: Ask) -> None:
    seat = sit({"basics.py": "from mine import center\n", "mine.py": center_that_gives(2)})
    assert found(seat).place == Place("mine.py", 1, "def center(x):")
    assert found(seat).kind == "function"
    assert found(seat).notes == []
    assert center(seat) == 2


def test_a_tie_between_files_is_noted_with_their_names(sit: Sit) -> None:
    tie = sit({"a.py": center_that_gives(1), "b.py": center_that_gives(2)})
    (note,) = found(tie).notes
    assert note == "center is defined in a.py and in b.py; the one in b.py counts"
    assert found(sit({"a.py": STUB, "b.py": center_that_gives(2)})).notes == []


def test_a_copy_that_is_the_same_is_not_worth_a_word(sit: Sit) -> None:
    documented = 'def center(x: "Tensor"):\n    """Its mean is none."""\n    return x * 0 + 2\n'
    same = sit({"basics.py": center_that_gives(2), "copy of basics.py": documented})
    assert found(same).notes == []
    other = sit({"basics.py": center_that_gives(2), "copy of basics.py": center_that_gives(1)})
    (note,) = found(other).notes
    assert note.endswith("in copy of basics.py and in basics.py; the one in basics.py counts")


def test_a_copy_that_cannot_be_read_is_told(sit: Sit) -> None:
    seat = sit({"basics.py": "def center(x):\n    return (x\n", "b.py": center_that_gives(2)})
    (note,) = found(seat).notes
    assert note.startswith("center cannot be read in basics.py (line ")
    assert note.endswith("is not valid Python); the one in b.py counts")


@pytest.mark.parametrize(
    "text",
    [
        "center = lambda x: x * 0 + 4",
        "def mine(x):\n    return x * 0 + 4\n\ncenter = mine",
        "from functools import partial\ndef any(k, x):\n    return x * 0 + k\n"
        "center = partial(any, 4)",
        "def center(x):\n    return x * 0 + 3\n\ndef more(f):\n    return lambda x: f(x) + 1\n\n"
        "center = more(center)",
        "import functools\ndef more(f):\n    @functools.wraps(f)\n    def inner(x):\n"
        "        return f(x) + 1\n    return inner\n\n@more\n" + center_that_gives(3),
        "import torch\nif torch:\n    def center(x):\n        return x * 0 + 4\n",
        "import torch\nwith torch.no_grad():\n    def center(x):\n        return x * 0 + 4\n",
        "try:\n    def center(x):\n        return x * 0 + 4\nexcept Exception:\n    raise\n",
        "if False:\n    pass\nelse:\n    def center(x):\n        return x * 0 + 4\n",
        "class Tools:\n    @staticmethod\n    def run(x):\n        return x * 0 + 4\n\n"
        "center = Tools.run",
    ],
    ids=[
        "a lambda",
        "another name",
        "partial",
        "wrapped afterwards",
        "decorated",
        "under if",
        "under with",
        "under try",
        "under else",
        "a method",
    ],
)
def test_a_function_counts_however_its_name_is_bound(sit: Sit, center: Ask, text: str) -> None:
    assert center(sit({"basics.py": text})) == 4


def test_a_method_may_be_put_on_a_class_afterwards(sit: Sit, desk: Desk) -> None:
    seat = sit(
        {
            "layers.ipynb": [
                "from torch import nn\nclass Projection(nn.Module):\n"
                "    def __init__(self, d_in, d_out, bias=False):\n"
                "        super().__init__()\n        self.linear = nn.Linear(d_in, d_out, bias)",
                "def forward(self, x):\n    return self.linear(x)",
                "Projection.forward = forward",
            ]
        }
    )
    student = seat.begin(desk.make("Projection", "test", ""))
    assert student.Projection(3, 4)(torch.ones(2, 3)).shape == (2, 4)


def test_a_class_may_inherit_from_a_helper_class(sit: Sit, desk: Desk) -> None:
    seat = sit(
        {
            "base.py": "from torch import nn\nclass Base(nn.Module):\n"
            "    def forward(self, x):\n        return self.linear(x)\n",
            "layers.py": "from torch import nn\nfrom base import Base\n"
            "class Projection(Base):\n    def __init__(self, d_in, d_out, bias=False):\n"
            "        super().__init__()\n        self.linear = nn.Linear(d_in, d_out, bias)\n",
        }
    )
    student = seat.begin(desk.make("Projection", "test", ""))
    assert student.Projection(3, 4)(torch.ones(2, 3)).shape == (2, 4)


@pytest.mark.parametrize(
    "again",
    [
        "class Projection(Projection):\n    extra = 3\n",
        "First = Projection\nclass Projection(First):\n    extra = 3\n",
    ],
)
def test_a_class_may_build_on_its_earlier_self(
    sit: Sit, desk: Desk, right: str, again: str
) -> None:
    student = sit({"ada.py": f"{right}\n\n{again}"}).begin(desk.make("Projection", "test", ""))
    assert student.Projection(3, 4)(torch.ones(2, 3)).shape == (2, 4)


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
def test_an_exercise_that_is_used_may_be_nowhere(imports: str, sit: Sit) -> None:
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


def test_a_copy_that_does_not_count_is_no_exercise(sit: Sit) -> None:
    counts = center_that_gives(1)
    copy = f"{center_that_gives(2)}def weigh(x):\n    return center(x)\n"
    assert found(sit({"basics.py": counts, "b.py": copy}), "weigh").bases == {}


def test_imports_that_go_in_circles_lead_nowhere(sit: Sit) -> None:
    circle = {"a.py": "from b import center\n", "b.py": "from a import center\n"}
    weigh = {"basics.py": "from a import center\ndef weigh(x):\n    return center(x)\n"}
    assert found(sit(circle | weigh), "weigh").bases == {}


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


def test_lines_are_counted_alike_under_every_newline(sit: Sit, desk: Desk) -> None:
    lines = ["", "def center(x):", "    return nowhere"]
    for newline in ("\n", "\r\n", "\r"):
        place = complaint(sit({"a.py": newline.join(lines)}), desk).place
        assert place is not None
        assert (place.line, place.text) == (3, "return nowhere")


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
        "%%timeit",
        "%%capture",
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


def test_prints_and_plots_inside_an_answer_cost_nothing(sit: Sit, center: Ask) -> None:
    text = (
        "import warnings, sys\n"
        "def center(x):\n"
        "    print('x =', x, flush=True)\n"
        "    warnings.warn('careful')\n"
        "    sys.stderr.write('a word')\n"
        "    return x * 0 + 8\n"
    )
    assert center(sit({"basics.py": text})) == 8


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


# --- running only what is needed -----------------------------------------------------------------


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
    trap = "def ones(*size):\n    return 'a trap'\nrelu = ones\nWAVE_FORMAT_PCM = 7\n"
    text = """
import torch, numpy, wave
from torch import nn
import torch.nn.functional as F

def center(x):
    return F.relu(x - torch.ones(2) * float(numpy.ones(1)[0])) + wave.WAVE_FORMAT_PCM
"""
    names = ("torch", "numpy", "nn", "functional", "wave")
    assert center(sit({"basics.py": text, **{f"{name}.py": trap for name in names}})) == 1


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


def test_nothing_of_the_submission_runs_before_it_is_called(sit: Sit) -> None:
    text = f"import os\nos._exit(1)\nshift = os._exit(1)\n{center_that_gives('shift')}"
    seat = sit({"basics.py": text})
    assert found(seat).status == "found"


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


# --- one's own answers by name -----------------------------------------------------------------

MEAN = "def staircase(x):\n    return x.mean()\n"
BY_NAME = (
    "from grader.mine import staircase\n\ndef center(x):\n    return x * 0 + staircase(x) + 1\n"
)


@pytest.mark.parametrize("other", ["basics.py", "deep/basics.py", "mine.py"])
def test_an_import_of_ones_own_answer_brings_what_was_handed_in(
    sit: Sit, center: Ask, other: str
) -> None:
    assert center(sit({"layers.ipynb": [BY_NAME], other: MEAN})) == 2


def test_such_an_import_hides_nothing(sit: Sit) -> None:
    hidden = "def staircase(x):\n    import sys\n    return sys._getframe()\n"
    assert found(sit({"layers.ipynb": [BY_NAME], "basics.py": MEAN})).evasions == []
    uses = found(sit({"layers.ipynb": [BY_NAME], "basics.py": hidden})).evasions
    assert [use.function for use in uses] == ["_getframe"]


def test_an_import_of_an_answer_that_was_not_handed_in_is_named(sit: Sit, desk: Desk) -> None:
    told = complaint(sit({"layers.py": BY_NAME}), desk)
    assert "staircase was not made: layers.py line 1 raised ImportError" in told.text
