"""A wrong answer is told its name, where exactly one known mistake gives the same results."""

from __future__ import annotations

import dataclasses
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.course.course import Course
from grader.course.tensors import Make
from grader.grading.desk import Desk
from grader.grading.diagnosis import same, within_size
from grader.grading.ladder import grade_submission
from grader.grading.opening import sheet_of
from grader.grading.order import Order, basis
from grader.grading.replays import Given
from grader.grading.rows import MOST_FILES, Key, Rows, image, kept_under, receive
from grader.intake import Submission
from grader.mistakes import Library, Variant, load_library
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult
from grader.sandbox.jails import Warm
from grader.wire import Raised, SourceText, payload
from tests.conftest import Grader, sharing
from tests.support.places import TINY
from tests.support.seats import real_order


def told(desk: Desk, right: str, text: str, exercise: str) -> ExerciseResult:
    """What is said of an exercise that is answered by this text."""
    source = SourceText("ada.py", (f"{right}\n\n{text}\n",))
    graded = grade_submission(desk, Submission("ada", (source,)))
    return next(result for result in graded.exercises if result.name == exercise)


def named(result: ExerciseResult) -> set[str | None]:
    return {test.mistake for test in result.tests if test.status in ("failed", "error")}


KNOWN = {
    "written another way": ("center", "m = sum(x) / len(x)\n    return x + m", "The mean is added"),
    "by a definition": ("center", "return x - torch.quantile(x, 0.5, interpolation='lower')",
                        "The median is subtracted"),
    "the first of two that are alike": (
        "staircase", "i = torch.arange(size)\n    return i[:, None] <= i[None]",
        "The upper half is True",
    ),
    "another sum": (
        "weigh", "e = (scores - scores.max(-1, keepdim=True).values).exp()\n"
        "    return e / e.sum(0, keepdim=True)", "Each column sums to one",
    ),
    "two at once": (
        "weigh", "e = (2 * scores - 2 * scores.max(-1, keepdim=True).values).exp()\n"
        "    return e / e.sum(0, keepdim=True)",
        "Each column sums to one; and: The weights are squared",
    ),
}  # fmt: skip
HEADS = {"center": "x", "staircase": "size", "weigh": "scores"}


@pytest.mark.parametrize(("exercise", "body", "title"), KNOWN.values(), ids=KNOWN.keys())
def test_a_known_mistake_is_named_with_its_hint(
    desk: Desk, right: str, exercise: str, body: str, title: str
) -> None:
    text = f"import torch\ndef {exercise}({HEADS[exercise]}):\n    {body}"
    result = told(desk, right, text, exercise)
    assert named(result) == {title}
    assert all(test.hint for test in result.tests if test.mistake)


MISMATCH = (
    "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}"
)
IN_PLACE = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [4]], which is output 0 of {}, is at version {}; expected "
    "version 0 instead. Hint: enable anomaly detection"
)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (MISMATCH.format(3, 8, 2), MISMATCH.format(8, 3, 1), True),
        (MISMATCH.format(3, 8, 2), MISMATCH.format(3, 9, 2), False),
        (IN_PLACE.format("Exp", 1), IN_PLACE.format("DivBackward0", 2), True),
        (IN_PLACE.format("Exp", 1), MISMATCH.format(3, 8, 2), False),
        ("d_out must be even", "d_out is odd", False),
    ],
)
def test_an_error_is_the_same_whichever_operand_came_first(
    one: str, other: str, alike: bool
) -> None:
    errors = [Raised("RuntimeError", text) for text in (one, other)]
    assert same(errors[:1], errors[1:]) is alike
    assert not same(errors[:1], [Raised("ValueError", one)])


def test_an_integer_is_the_same_in_a_tensor_without_dimensions() -> None:
    two = payload.pack_tensor(torch.tensor(2))
    assert same([2], [two])
    assert same([two], [2])
    assert not same([3], [two])
    assert not same([2], [payload.pack_tensor(torch.tensor([2]))])
    assert not same([1], [payload.pack_tensor(torch.tensor(True))])


def test_rounding_beside_large_numbers_makes_no_difference() -> None:
    large = torch.tensor([2000.0, 0.01])
    small = torch.tensor([2.0, 0.01])
    step = torch.tensor([0.0, 0.002])

    def alike(one: torch.Tensor, other: torch.Tensor) -> bool:
        return same([payload.pack_tensor(one)], [payload.pack_tensor(other)])

    assert alike(large, large + step)
    assert not alike(small, small + step)
    assert not alike(large, large + 20 * step)
    assert not alike(large, torch.tensor([2000.0, torch.nan]))


@pytest.mark.parametrize(
    "body",
    ["return x * 2", "return x - x.mean() + 1e-2", "return x + 1.01 * x.mean()", "raise KeyError"],
)
def test_what_is_not_known_is_given_no_name(desk: Desk, right: str, body: str) -> None:
    result = told(desk, right, f"def center(x):\n    {body}", "center")
    assert named(result) == {None}


def test_a_mistake_that_shows_in_some_tests_only_must_explain_all_that_fail(
    desk: Desk, right: str
) -> None:
    # The public check has three numbers, the hidden tests have others.
    text = "def center(x):\n    return x + x.mean() if len(x) == 3 else x * 0\n"
    assert named(told(desk, right, text, "center")) == {None}


def test_very_large_wrong_results_are_not_kept_for_a_diagnosis(desk: Desk, right: str) -> None:
    text = "def center(x):\n    return x.new_zeros(10**6)"
    assert named(told(desk, right, text, "center")) == {None}
    assert within_size([payload.pack(torch.zeros(10**6))]) == ()
    assert len(within_size([payload.pack([torch.zeros(10), {"a": 1.0}, "text", None])])) == 1


SLIGHT = {"+ 5e-5": {"A little is added"}, "+ 2e-5": {None}, "+ 9e-5": {None}}


@pytest.mark.parametrize(("rest", "names"), SLIGHT.items())
def test_a_mistake_must_explain_small_differences_too(
    desk: Desk, right: str, tiny: Course, rest: str, names: set[str | None]
) -> None:
    slight = Variant(
        "center",
        "slight",
        "mistake",
        "A little is added",
        "?",
        "def center(x):\n    return x - x.mean() + 5e-5\n",
    )
    library = load_library(tiny)
    known = Library([*library.variants, slight], library.sources, library.unit_of)
    text = f"def center(x):\n    middle = sum(x) / len(x)\n    return x - middle {rest}"
    other = dataclasses.replace(desk, sheet=sheet_of(desk, known))
    assert named(told(other, right, text, "center")) == names


def test_a_right_answer_is_told_nothing(desk: Desk, right: str) -> None:
    result = told(desk, right, "", "center")
    assert result.solved
    assert not any(test.mistake or test.hint for test in result.tests)


def test_where_two_mistakes_would_fit_neither_is_named(
    desk: Desk, right: str, tiny: Course
) -> None:
    library = load_library(tiny)
    undeclared = [dataclasses.replace(variant, same_as={}) for variant in library.variants]
    blind = Library(undeclared, library.sources, library.unit_of)
    other = dataclasses.replace(desk, sheet=sheet_of(desk, blind))
    text = "import torch\ndef staircase(size):\n    return torch.ones(size, size).triu() > 0"
    assert named(told(other, right, text, "staircase")) == {None}
    assert named(told(desk, right, text, "staircase")) == {"The upper half is True"}


def test_mistakes_that_say_the_same_leave_no_doubt(desk: Desk, right: str, tiny: Course) -> None:
    library = load_library(tiny)
    alike = [dataclasses.replace(v, same_as={}, title="Over", hint="?") for v in library.variants]
    other = dataclasses.replace(
        desk, sheet=sheet_of(desk, Library(alike, library.sources, library.unit_of))
    )
    text = "import torch\ndef staircase(size):\n    return torch.ones(size, size).triu() > 0"
    assert named(told(other, right, text, "staircase")) == {"Over"}


def test_a_pair_is_named_only_if_no_single_mistake_fits(
    desk: Desk, right: str, tiny: Course
) -> None:
    """Otherwise a pair whose second mistake shows in no test would hide the name of the first."""
    doubled = "import torch\ndef center(x):\n    return 2 * (x + x.mean())"
    both = Variant("center", "both", "pair", "Added; and: doubled", "?", doubled)
    added = "import torch\ndef center(x):\n    return x + x.mean()"
    as_added = dataclasses.replace(both, slug="as-added", title="Added twice", definition=added)
    other = knowing(desk, tiny, both, as_added)
    with closing(other):
        assert named(told(other, right, doubled, "center")) == {"Added; and: doubled"}
        assert named(told(other, right, added, "center")) == {"The mean is added"}


# --- what claims a forbidden call -----------------------------------------------------------------

BY_TORCH = "return {} * torch.softmax(scores, dim=-1)"
BY_HAND = (
    "e = (scores - scores.max(-1, keepdim=True).values).exp()\n"
    "    return {} * e / e.sum(-1, keepdim=True)"
)
TRIED_FIRST = (
    "try:\n        torch.softmax(scores, dim=-1)\n    except Exception:\n        pass\n    "
    + BY_HAND
)


def weigh(body: str, factor: int) -> str:
    return f"import torch\ndef weigh(scores):\n    {body.format(factor)}\n"


def knowing(desk: Desk, course: Course, *more: Variant, **changed: Any) -> Desk:
    """A desk that knows further mistakes."""
    library = load_library(course)
    known = Library([*library.variants, *more], library.sources, library.unit_of)
    other = dataclasses.replace(desk, **changed)
    other.sheet = sheet_of(other, known)
    return other


def softmax_of_torch(factor: int) -> Variant:
    title = "Torch's own softmax does the work"
    return Variant("weigh", "by-torch", "mistake", title, "?", weigh(BY_TORCH, factor))


@pytest.mark.parametrize(
    ("body", "names"),
    [(BY_HAND, set()), (TRIED_FIRST, {"Torch's own softmax does the work"})],
    ids=["by hand", "softmax tried first"],
)
def test_a_mistake_that_calls_what_is_forbidden_is_named_where_the_answer_called_it(
    desk: Desk, right: str, tiny: Course, body: str, names: set[str | None]
) -> None:
    other = knowing(desk, tiny, softmax_of_torch(3))
    with closing(other):
        assert named(told(other, right, weigh(body, 3), "weigh")) - {None} == names


def test_a_right_answer_is_told_nothing_by_a_test_that_the_reference_fails(
    desk: Desk, right: str, tiny: Course
) -> None:
    def faulty(student: Any, make: Make) -> None:
        assert student.weigh(make.normal(queries=2, keys=3)).sum() == 7

    right_too = dataclasses.replace(softmax_of_torch(1), definition=weigh(BY_HAND, 1))
    value = next(test for test in desk.tests["weigh"] if test.hidden and test.rung == "value")
    test = dataclasses.replace(value, function=faulty, fixtures=("make", "student"))
    other = knowing(desk, tiny, right_too, tests={**desk.tests, "weigh": [test]})
    with closing(other):
        assert named(told(other, right, "", "weigh")) == {None}


# --- what is known already ------------------------------------------------------------------------

WRONG = "def center(x):\n    return x + sum(x) / len(x)"


def test_how_a_mistake_ends_is_found_out_once_for_all_processes(
    desk: Desk, right: str, tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = named_with(desk, right, tiny, Rows(tmp_path / "this course.db"))
    monkeypatch.setattr("grader.grading.opening.replay", not_to_be_called)
    second = named_with(desk, right, tiny, Rows(tmp_path / "this course.db"))
    assert first == second == {"The mean is added"}
    another = named_with(desk, right, tiny, Rows(tmp_path / "another course.db"))
    assert another == {None}, "where nothing can be found out anew, nothing is known"


def test_what_was_found_out_for_one_device_is_not_believed_of_another(tiny: Course) -> None:
    here = Order(tiny, "a seed", {})
    assert basis(here) == basis(dataclasses.replace(here, keeps_sheet=True))
    assert basis(here) != basis(dataclasses.replace(here, device="cuda"))


def test_gradings_into_two_folders_find_out_once_how_a_mistake_ends(
    grader: Grader, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "ada.py").write_text(f"{right}\n\n{WRONG}\n", "utf-8")

    def graded(out: str, *more: str) -> set[str]:
        ran = grader("grade", tmp_path / "ada.py", "--out", tmp_path / out, "--course", TINY, *more)
        assert ran.code == 0, ran.err
        return {*re.findall("The mean is added", (tmp_path / out / "results.jsonl").read_text())}

    assert graded("first")
    (kept,) = (tmp_path / "cache").rglob("*.db")
    assert kept.stat().st_mode & 0o077 == 0 or kept.parent.stat().st_mode & 0o077 == 0
    monkeypatch.setattr("grader.grading.opening.replay", not_to_be_called)
    assert graded("second")
    assert not graded("third", "--fresh"), "where nothing can be found out anew, nothing is known"


def test_what_one_machine_has_found_out_another_knows(
    desk: Desk, right: str, tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    assert image("of this course") == b""
    with kept_under("of this course") as rows:
        assert named_with(desk, right, tiny, rows) == {"The mean is added"}
    sent = image("of this course")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    monkeypatch.setattr("grader.grading.opening.replay", not_to_be_called)
    receive("of this course", sent)
    with kept_under("of this course") as rows:
        assert named_with(desk, right, tiny, rows) == {"The mean is added"}


def test_a_cache_that_cannot_be_made_costs_no_name(
    desk: Desk, right: str, tiny: Course, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    nowhere = Rows(tmp_path / "file" / "cache" / "this course.db")
    assert named_with(desk, right, tiny, nowhere) == {"The mean is added"}


def test_of_many_courses_the_latest_are_kept(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 3):
        with closing(Rows(tmp_path / f"{number:02}.db")) as kept_here:
            kept_here.keep(Key("facts", "center"), number)
        os.utime(tmp_path / f"{number:02}.db", (number, number))
    assert len([*tmp_path.iterdir()]) == MOST_FILES
    assert not (tmp_path / "00.db").exists()
    assert (tmp_path / f"{MOST_FILES + 2:02}.db").exists()


@pytest.mark.parametrize("damage", ["no database", "other values", "a folder"])
def test_a_sheet_that_cannot_be_used_costs_no_name(
    desk: Desk, right: str, tiny: Course, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "this course.db"
    if damage == "no database":
        path.write_text("something else\n" * 100, "utf-8")
    elif damage == "a folder":
        path.mkdir()
    else:
        named_with(desk, right, tiny, Rows(path))
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE contents SET value = x'00'")
    for _ in range(2):
        assert named_with(desk, right, tiny, Rows(path)) == {"The mean is added"}


def named_with(desk: Desk, right: str, tiny: Course, rows: Rows) -> set[str | None]:
    """What a wrong answer is called at another desk that keeps its sheet there."""
    other = dataclasses.replace(desk, sheet=sheet_of(desk, load_library(tiny), rows))
    names = named(told(other, right, WRONG, "center"))
    rows.close()
    return names


def not_to_be_called(*_: object) -> Given:
    raise AssertionError("it was known how this ends")


# --- the library ---------------------------------------------------------------------------------

BAD = {
    "occurs 0 times": 'mistake("center", "a", "A", hint="?", change={"nothing like it": "x"})',
    "occurs 3 times": 'mistake("center", "a", "A", hint="?", change={"x": "y"})',
    "no exercise of unit basics": 'mistake("Projection", "a", "A", hint="?", change={"x": "y"})',
    "there are two variants center/a": (
        'mistake("center", "a", "A", hint="?", change={"x - ": "x + "})\n' * 2
    ),
    "cannot be imported: NameError": "mistake(nobody)",
}


@pytest.mark.parametrize(("why", "text"), BAD.items())
def test_a_variant_that_makes_no_sense_is_refused_with_the_reason(
    why: str, text: str, tmp_path: Path, tiny: Course
) -> None:
    solutions = tmp_path / "solutions"
    (solutions / "mistakes").mkdir(parents=True)
    for unit in ("basics", "layers"):
        (solutions / f"{unit}.py").write_text((TINY / "solutions" / f"{unit}.py").read_text())
    library = solutions / "mistakes" / "basics.py"
    library.write_text(f"from grader.mistakes import mistake\n{text}\n")
    course = dataclasses.replace(tiny, folder=tmp_path / "exercises")
    with pytest.raises(CallError, match=why):
        load_library(course)


LAYER_TOO = """
import torch
from torch import nn
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.mix = nn.Linear(d_out, d_out)
        self.qkv = nn.ModuleList([nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)])
        self.drop = nn.Dropout(dropout)
    def forward(self, x):
        q, k, v = (layer(x) for layer in self.qkv)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        return self.mix(self.drop(scores.softmax(-1)) @ v)
"""


def test_a_layer_that_nobody_asked_for_is_known_whatever_it_began_with(warm: Warm) -> None:
    """Its weights are drawn by the answer, and so are those of the mistake: nobody draws alike."""
    order = real_order("CausalAttention")
    with sharing(warm), order.desk() as desk:
        found = named(told(desk, "", LAYER_TOO, "CausalAttention"))
    assert found == {"An output layer comes last, and nobody asked for one"}


A_SHAPE_TOO_MANY = """
import torch
from torch import nn

class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(2)])
        self.up, self.down = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        nn.init.normal_(self.up.weight, std=0.02)
    def forward(self, x):
        h = x + self.norms[0](x)
        return h + self.down(self.up(self.norms[1](h))), h
"""


def test_a_wrong_shape_is_known_whatever_weights_a_module_began_with(warm: Warm) -> None:
    order = real_order("TransformerBlock")
    with sharing(warm), order.desk() as desk:
        found = named(told(desk, "", A_SHAPE_TOO_MANY, "TransformerBlock"))
    assert found == {"The first sum is returned as well"}
