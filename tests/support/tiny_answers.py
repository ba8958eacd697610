"""Answers to exercises of the tiny course, and what is found in them."""

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
    """An answer that is known by the number that it gives."""
    return f"def center(x):\n    return x * 0 + {value}\n"


def found(seat: Seat, name: str = "center") -> Found:
    """What the listing says of an exercise."""
    (entry,) = [entry for entry in seat.listing.found if entry.name == name]
    return entry


def complaint(seat: Seat, desk: Desk) -> StudentRaised:
    """The exception that calling `center` ends in."""
    student = seat.begin(desk.make("center", "test", ""))
    with pytest.raises(StudentRaised) as raised:
        student.center(torch.ones(2))
    return raised.value
