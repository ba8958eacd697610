"""Answers to exercises of the tiny course, and helpers that read their listings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
import torch

from grader.grading.desk import Desk, Seat
from grader.proxies.calls import StudentRaised
from grader.wire import Found

Sit = Callable[[Mapping[str, str | Sequence[str]]], Seat]
Ask = Callable[[Seat], float]


STUB = '''
def center(x):
    """Subtract the mean from each element."""
    raise NotImplementedError
'''


def center_that_gives(value: object) -> str:
    """An answer that returns a number of its own, to be recognised by."""
    return f"def center(x):\n    return x * 0 + {value}\n"


def found(seat: Seat, name: str = "center") -> Found:
    """The listing's entry for an exercise."""
    (entry,) = [entry for entry in seat.listing.found if entry.name == name]
    return entry


def complaint(seat: Seat, desk: Desk) -> StudentRaised:
    """The exception that a call of `center` raises."""
    student = seat.begin(desk.make("center", "test", ""))
    with pytest.raises(StudentRaised) as raised:
        student.center(torch.ones(2))
    return raised.value
