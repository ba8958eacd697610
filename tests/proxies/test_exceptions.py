"""Exceptions of student code, through a real jail: their kind, text and place arrive."""

from __future__ import annotations

import contextlib

import pytest
import torch

from grader import wire
from grader.grading.diagnosis import same
from grader.proxies.calls import CallResult, StudentRaised
from grader.sandbox.session import StudentLost
from grader.testing import assert_refuses
from tests.support.contracts import X, free, leaf, remember, rows
from tests.support.seats import OpenSeat

# --- what arrives --------------------------------------------------------------------------------


def raised_by(open_seat: OpenSeat, source: str) -> StudentRaised:
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised) as caught:
        student.free(X)
    return caught.value


def test_an_exception_arrives_with_kind_text_file_and_line(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "\n\ndef free(x):\n    raise ValueError('odd heads')\n")
    assert (error.kind, error.text) == ("ValueError", "odd heads")
    assert error.place == wire.Place("answers.py", 4, "raise ValueError('odd heads')")


def test_an_exception_inside_torch_is_placed_at_the_students_innermost_line(
    open_seat: OpenSeat,
) -> None:
    source = """
import torch
def helper(x):
    y = x + 1
    return y.view(7, 7)
def free(x):
    return helper(x)
"""
    error = raised_by(open_seat, source)
    assert error.kind == "RuntimeError"
    assert "shape '[7, 7]' is invalid" in error.text
    assert error.place == wire.Place("answers.py", 5, "return y.view(7, 7)")
    assert error.caller == wire.Place("answers.py", 7, "return helper(x)")


def test_a_function_that_calls_itself_arrives_with_the_line_of_another(open_seat: OpenSeat) -> None:
    source = """
def helper(x, depth):
    return helper(x, depth - 1) if depth else x / nothing
def free(x):
    return helper(x, 3)
"""
    error = raised_by(open_seat, source)
    assert error.caller == wire.Place("answers.py", 5, "return helper(x, 3)")


def test_an_error_in_the_answer_itself_was_called_by_no_line(open_seat: OpenSeat) -> None:
    assert raised_by(open_seat, "def free(x):\n    return x / nothing").caller is None


def test_a_name_that_is_nowhere_is_told_as_such(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    return batch_size * x")
    assert error.kind == "NameError"
    assert "batch_size is defined nowhere in these files" in error.text


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("raise NotImplementedError", "NotImplementedError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Mine', (BaseException,), {})('x')", "Mine"),
        ("raise ExceptionGroup('two', [ValueError(), TypeError()])", "ExceptionGroup"),
        ("return free(x)", "RecursionError"),
        ("assert False", "AssertionError"),
    ],
)
def test_whatever_is_raised_arrives_as_one_class(open_seat: OpenSeat, line: str, kind: str) -> None:
    assert raised_by(open_seat, f"def free(x):\n    x = x + 1\n    {line}").kind == kind


def test_a_very_long_text_is_cut(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    raise ValueError('no' * 10**6)")
    assert error.text == "no" * (wire.MAX_TEXT // 2)


@pytest.mark.parametrize(
    "text",
    ["raise ValueError", "return 3", "import os; os._exit(0)"],
    ids=["raises", "is no text", "ends the process"],
)
def test_an_exception_whose_text_cannot_be_read_costs_that_call_only(
    open_seat: OpenSeat, text: str
) -> None:
    source = f"""
class Sly(Exception):
    def __str__(self):
        {text}
def free(x):
    if x.sum() > 0:
        raise Sly
    return 1
"""
    seat = open_seat(source, free)
    with pytest.raises((StudentRaised, StudentLost)):
        seat.student().free(torch.ones(1))
    assert seat.student().free(torch.zeros(1)) == 1


def test_a_text_that_is_not_unicode_still_arrives(open_seat: OpenSeat) -> None:
    error = raised_by(open_seat, "def free(x):\n    raise ValueError('half \\ud83d a pair')")
    assert error.kind == "ValueError"
    assert error.text.startswith("half ")


def test_an_exception_in_a_students_backward_arrives(open_seat: OpenSeat) -> None:
    source = """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x
    @staticmethod
    def backward(ctx, grad):
        raise ArithmeticError("no way back")
def rows(x):
    return Square.apply(x)
"""
    result = open_seat(source, rows).student().rows(leaf("x", queries=3, keys=4))
    with pytest.raises(StudentRaised, match="no way back"):
        result.sum().backward()


# --- after an exception --------------------------------------------------------------------------


def test_an_exception_does_not_stop_the_next_call(open_seat: OpenSeat) -> None:
    source = "def free(x):\n    return 1 / int(x.sum())"
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised, match="ZeroDivisionError"):
        student.free(torch.zeros(2))
    assert student.free(torch.ones(2)) == 0.5


def test_the_first_call_of_a_list_that_raises_is_told_and_is_the_last(
    open_seat: OpenSeat,
) -> None:
    source = """
seen = []
def free(x):
    seen.append(x.item())
    if x > 1:
        raise ValueError(x.item())
    return seen
"""
    student = open_seat(source, free).student()
    with pytest.raises(StudentRaised, match=r"ValueError: 2\.0"):
        student.free.each([(torch.tensor(value),) for value in (1.0, 2.0, 3.0)])
    assert student.free(torch.tensor(0.0)) == [1.0, 2.0, 0.0]


def test_the_kind_and_text_of_a_refusal_do_not_tell_mistakes_apart(
    open_seat: OpenSeat,
) -> None:
    def gave(exception: str) -> tuple[CallResult, ...]:
        source = f"def remember(x, cache):\n    if len(x) > 3: raise {exception}\n    return x"
        seat = open_seat(source, remember)
        student = seat.student()
        for size in (4, 2):
            with contextlib.suppress(AssertionError):
                assert_refuses(student.remember, torch.ones(size), None)
        return seat.calls.seen.evidence()

    assert same(gave("ValueError('too long')"), gave("AssertionError"))
