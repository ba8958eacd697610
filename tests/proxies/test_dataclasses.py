"""Dataclasses in a jail: the student's code gets and gives values of its own class."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from grader.course.contract import ContractBroken, ContractError
from grader.proxies.calls import StudentRaised
from grader.testing import assert_agrees, assert_input_unchanged
from tests.support.seats import OpenSeat


@dataclass(frozen=True)
class Moments:
    mean: Float[Tensor, " features"]
    steps: int = 0
    past: list[Moments.Note] = field(default_factory=list)

    @dataclass
    class Note:
        text: str


def update(moments: Moments, x: Float[Tensor, "rows features"]) -> Moments:
    steps = moments.steps + 1
    return Moments(moments.mean + (x.mean(0) - moments.mean) / steps, steps, moments.past)


def note(text: str) -> Moments.Note:
    return Moments.Note(text)


OWN = """
from dataclasses import dataclass, field, replace
@dataclass(frozen=True)
class Moments:
    mean: object
    steps: int = 0
    past: list = field(default_factory=list)
@dataclass
class Note:
    text: str
"""
RIGHT = """
def update(moments, x):
    assert type(moments) is Moments, type(moments)
    assert all(type(one) is Note for one in moments.past)
    steps = moments.steps + 1
    return replace(moments, mean=moments.mean + (x.mean(0) - moments.mean) / steps, steps=steps)
"""
X = torch.arange(6.0).reshape(2, 3)
BEGUN = Moments(torch.zeros(3), 1, [Moments.Note("begun")])


def test_a_dataclass_arrives_as_the_students_own_and_comes_back(open_seat: OpenSeat) -> None:
    got = open_seat(OWN + RIGHT, update).student().update(BEGUN, X)
    assert_agrees(got, update(BEGUN, X))
    assert (got.steps, got.past[0].text) == (2, "begun")


def test_what_came_back_can_be_passed_on(open_seat: OpenSeat) -> None:
    student = open_seat(OWN + RIGHT, update).student()
    again = update(update(BEGUN, X), X)
    assert_agrees(student.update(student.update(BEGUN, X), X), again)


def test_gradients_flow_through_fields(open_seat: OpenSeat) -> None:
    student = open_seat(OWN + RIGHT, update).student()
    mean = torch.ones(3, requires_grad=True)
    torch.autograd.backward(student.update(Moments(mean), X).mean.sum())
    ours = torch.ones(3, requires_grad=True)
    torch.autograd.backward(update(Moments(ours), X).mean.sum())
    assert_agrees(mean.grad, ours.grad)


def test_the_class_is_found_if_the_function_does_not_use_it(open_seat: OpenSeat) -> None:
    student = open_seat(f"{OWN}def update(moments, x):\n    return moments\n", update).student()
    assert_agrees(student.update(BEGUN, X), BEGUN)


def test_a_field_that_differs_is_named(open_seat: OpenSeat) -> None:
    wrong = RIGHT.replace("moments.steps + 1", "moments.steps + 2")
    got = open_seat(OWN + wrong, update).student().update(BEGUN, X)
    with pytest.raises(AssertionError, match=r"the result\.mean: every value is"):
        assert_agrees(got, update(BEGUN, X))


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("(moments.mean, 1)", "return Moments(mean, steps, past), got a tuple of 2 items"),
        ("Note('a')", "return Moments(mean, steps, past), got Note(text)"),
        ("Moments", "return Moments(mean, steps, past), got an object of type type"),
        ("Moments(moments.mean, 1.5)", "the field steps of update should be an int, got float"),
        ("Moments(x)", "the field mean of update should be shape (features=3), got (2, 3)"),
        ("Moments(x[0], 1, [Note(b'')])", "the field text of item 1 of the field past of update"),
        ("Moments(moments)", "the field mean of update should be a tensor, got Moments("),
    ],
)
def test_another_result_is_told_to_the_student(open_seat: OpenSeat, result: str, told: str) -> None:
    source = f"{OWN}def update(moments, x):\n    return {result}\n"
    with pytest.raises(ContractBroken) as broken:
        open_seat(source, update).student().update(BEGUN, X)
    assert told in str(broken.value)


def test_a_submission_without_the_class_is_told_so(open_seat: OpenSeat) -> None:
    student = open_seat("def update(moments, x):\n    return moments\n", update).student()
    with pytest.raises(StudentRaised, match="Note is defined nowhere in these files"):
        student.update(BEGUN, X)


def test_a_changed_field_is_a_changed_argument(open_seat: OpenSeat) -> None:
    source = OWN + RIGHT.replace("    steps =", "    moments.mean.add_(1)\n    steps =")
    assert_input_unchanged(open_seat(OWN + RIGHT, update).student().update, BEGUN, X)
    with pytest.raises(AssertionError, match="`moments`"):
        assert_input_unchanged(open_seat(source, update).student().update, BEGUN, X)


def test_a_test_that_passes_another_value_is_wrong(open_seat: OpenSeat) -> None:
    student = open_seat(OWN + RIGHT, update).student()
    with pytest.raises(ContractError, match=r"moments is Moments\(mean, steps, past\), not a tu"):
        student.update((X, 1), X)


LYING = """
from dataclasses import dataclass, make_dataclass
@dataclass
class Note:
    text: str
    def __getattribute__(self, name):
        if name == "text":
            raise RuntimeError("read")
        return object.__getattribute__(self, name)
def note(text):
    if text == "raises":
        return Note("a")
    if text == "wide":
        return make_dataclass("Note", [f"f{n}" for n in range(6000)])(*range(6000))
    deep = make_dataclass("Note", ["text"])("a")
    for _ in range(50):
        deep = make_dataclass("Note", ["text"])(deep)
    named = make_dataclass("Note", ["text"])("a")
    type(named).__name__ = "N" * 5000 if text == "long" else "__class__"
    return deep if text == "deep" else named
"""


def test_what_student_code_makes_of_dataclasses_is_read_as_it_is(open_seat: OpenSeat) -> None:
    student = open_seat(LYING, note).student()
    with pytest.raises(StudentRaised, match="read"):
        student.note("raises")
    for text, told in (
        ("wide", "a dataclass with too many fields"),
        ("deep", r"field text of note should be a string, got Note\(text\)"),
        ("long", "a dataclass with too many fields"),
        ("class", r"got __class__\(text\)"),
    ):
        with pytest.raises(ContractBroken, match=told):
            student.note(text)
