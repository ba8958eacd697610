"""What tests of the loader share: a call of a submission's answer."""

from __future__ import annotations

import pytest
import torch

from grader.grading.desk import Desk, Seat
from tests.support.shells import one_shell, shell
from tests.support.tiny_answers import Ask

__all__ = ["center", "one_shell", "shell"]


@pytest.fixture
def center(desk: Desk) -> Ask:
    """Call a submission's `center`, and return the number that it gives."""

    def ask(seat: Seat) -> float:
        student = seat.begin(desk.make("center", "test", ""))
        return float(student.center(torch.ones(2))[0])

    return ask
