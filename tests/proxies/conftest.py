"""What tests of proxies share: a right answer behind the wall, and modules that adopt weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import nn

from grader.course.tensors import Make
from grader.sandbox.jails import Warm
from grader.testing import adopt
from tests.support import seats
from tests.support.contracts import ALL, RIGHT
from tests.support.seats import Adopted, OpenSeat
from tests.support.transformers import ALIASES, COMMON


@pytest.fixture(scope="module")
def right_seat(warm: Warm) -> Iterator[seats.Seat]:
    """One jail for all of a file's tests of a right answer."""
    seat = seats.open_seat(warm.open, RIGHT, *ALL)
    yield seat
    seat.session.close()


@pytest.fixture(name="student")
def _student(right_seat: seats.Seat) -> Any:
    """The proxies of a test of a right answer."""
    return right_seat.student()


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
