"""Which of a submission's definitions counts as the answer, over several files and notebooks."""

from __future__ import annotations

import pytest
import torch

from grader.course.course import Course
from grader.grading.desk import Desk
from grader.wire import KERNEL, Place
from tests.support.tiny_answers import STUB, Ask, Sit, center_that_gives, found

# --- what is found -------------------------------------------------------------------------------


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


def test_a_name_is_found_however_its_letters_are_written(sit: Sit, center: Ask) -> None:
    wide = center_that_gives(7).replace("center", "\uff43\uff45nter")  # the same name to Python
    assert center(sit({"basics.py": wide})) == 7


# --- stubs ---------------------------------------------------------------------------------------


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


# --- which of several counts ---------------------------------------------------------------------


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


def test_a_copy_that_is_the_same_is_not_noted(sit: Sit) -> None:
    documented = 'def center(x: "Tensor"):\n    """Its mean is none."""\n    return x * 0 + 2\n'
    same = sit({"basics.py": center_that_gives(2), "copy of basics.py": documented})
    assert found(same).notes == []
    other = sit({"basics.py": center_that_gives(2), "copy of basics.py": center_that_gives(1)})
    (note,) = found(other).notes
    assert note.endswith("in copy of basics.py and in basics.py; the one in basics.py counts")


def test_a_copy_that_cannot_be_read_is_noted(sit: Sit) -> None:
    seat = sit({"basics.py": "def center(x):\n    return (x\n", "b.py": center_that_gives(2)})
    (note,) = found(seat).notes
    assert note == "center cannot be read in basics.py (see line 2); the one in b.py counts"


# --- however it is defined -----------------------------------------------------------------------


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


# --- in a kernel ---------------------------------------------------------------------------------

ONE, TWO = center_that_gives(1), center_that_gives(2)
RAN_LAST = {
    "a definition": ([ONE, "", TWO], 2),
    "a definition below a magic": ([ONE, f"%%time\n{TWO}"], 2),
    "an import from a file": ([ONE, "from basics import center"], 3),
    "an import of everything": (["from basics import *"], 3),
    "an import of what is saved": ([ONE, "from grader.mine import center"], 3),
    "a definition after an import": (["from basics import center", ONE], 1),
    "what is no Python": ([ONE, TWO.replace(":", "", 1)], 1),
}


@pytest.mark.parametrize(("cells", "number"), RAN_LAST.values(), ids=RAN_LAST.keys())
def test_in_a_kernel_what_ran_last_counts(
    sit: Sit, center: Ask, cells: list[str], number: int
) -> None:
    assert center(sit({"basics.py": center_that_gives(3), KERNEL: cells})) == number


@pytest.mark.parametrize(
    ("cells", "status"),
    [([ONE, STUB], "stub"), (["x = 1"], "missing"), ([STUB, ONE.replace(":", "", 1)], "broken")],
)
def test_in_a_kernel_a_file_counts_only_where_a_cell_imports_it(
    sit: Sit, cells: list[str], status: str
) -> None:
    assert found(sit({"basics.py": center_that_gives(3), KERNEL: cells})).status == status
