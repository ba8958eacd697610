"""What tests of adoption share: a block or a model of a student's, with a reference's weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from grader.course.tensors import Make
from grader.testing import adopt
from tests.support.seats import Adopted, OpenSeat
from tests.support.transformers import ALIASES, COMMON


@pytest.fixture(name="adopted")
def _adopted(open_seat: OpenSeat) -> Callable[..., Adopted]:
    """Make a student's module and a reference with the same arguments, and adopt."""

    def made(reference: type[nn.Module], source: str, *arguments: Any) -> Adopted:
        seat = open_seat(COMMON + source, reference, parameters=ALIASES)
        make = Make("nesting", reference.__name__, "tests")
        theirs = getattr(seat.student(), reference.__name__)(*arguments)
        ours = getattr(seat.reference(make), reference.__name__)(*arguments)
        return Adopted(theirs, ours, adopt(theirs, ours))

    return made
