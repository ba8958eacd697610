"""What tests of proxies share: a right answer behind the wall, and modules that adopt weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import nn

from grader.course.tensors import Make
from grader.sandbox.jails import Warm
from grader.testing import adopt
from tests.support import attentions, seats, transformers
from tests.support.contracts import ALL, RIGHT
from tests.support.seats import Adopted, OpenSeat

# Modules of references to adopt: each also has what students write beside them, and their names.
KINDS = {kind.__name__: kind for kind in (attentions, transformers)}


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
    """Make a student's module and a reference with the same arguments, and adopt.

    In one test, the same source is the same submission.
    """
    opened: dict[str, seats.Seat] = {}

    def made(reference: type[nn.Module], source: str, *arguments: Any) -> Adopted:
        kind = KINDS[reference.__module__]
        if source not in opened:
            opened[source] = open_seat(kind.COMMON + source, reference, parameters=kind.ALIASES)
        seat = opened[source]
        make = Make(kind.SEED, reference.__name__, "tests")
        theirs = getattr(seat.student(), reference.__name__)(*arguments)
        ours = getattr(seat.reference(make), reference.__name__)(*arguments)
        return Adopted(theirs, ours, adopt(theirs, ours))

    return made
