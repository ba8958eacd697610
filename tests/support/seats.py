"""A submission behind the wall, for tests of the engine: its jail, and the proxies of a test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from grader import wire
from grader.course.contract import compile_contract
from grader.course.course import load_course
from grader.course.references import LiveOracle, Reference
from grader.course.tensors import Make
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.proxies.calls import Calls
from grader.proxies.remote import Student
from grader.proxies.slots import Adoption
from grader.sandbox.jails import Warm
from grader.sandbox.session import Channel, Limits, Session
from grader.testing import assert_agrees, assert_gradients_agree
from tests.support.places import REAL


def real_order(exercise: str) -> Order:
    """The order to grade one exercise of the kit's own course by the tests of its unit."""
    course = load_course(REAL)
    tests = f"test_{course.unit_of[exercise]}"
    files = {path: hidden for path, hidden in course.tests_of().items() if path.stem == tests}
    return Order(course, "a seed", files, (exercise,), isolation="weak")


@dataclass(frozen=True)
class Seat:
    """One submission: its session, the state that its proxies share, and the references."""

    session: Session
    calls: Calls
    oracle: LiveOracle

    def student(self, seed: int = 0, memory_mb: int | None = None) -> Any:
        """Begin a test, and return its proxies. Contracts type their results; mypy cannot."""
        self.session.begin_case(seed, memory_mb=memory_mb)
        return Student(self.calls)

    def reference(self, make: Make) -> Reference:
        """The references, with weights drawn from `make`."""
        return self.oracle.reference(make)


OpenSeat = Callable[..., Seat]  # the type of the fixture `open_seat`


class Adopted(NamedTuple):
    """A student's module, the reference's module, and the adoption between them."""

    theirs: Any
    ours: Any
    adoption: Adoption


def assert_whole(found: Adopted, *inputs: Tensor, gradients: Make | None = None) -> None:
    """Every weight has a place and both modules agree; with `gradients`, these agree too."""
    assert (found.adoption.missing, found.adoption.extra) == ((), ())
    assert_agrees(found.theirs(*inputs), found.ours(*inputs))
    if gradients is not None:
        assert_gradients_agree(found.theirs, found.ours, *inputs, make=gradients)


def open_seat(
    channel: Callable[[Limits], Channel],
    source: str,
    *references: Any,
    limits: Limits | None = None,
    watch: Sequence[str] = (),
    arguments: Mapping[str, Sequence[str]] | None = None,
    parameters: Mapping[str, Sequence[str]] | None = None,
) -> Seat:
    """Open a submission whose only file is ``answers.py``, against these references."""
    limits = limits or Limits()
    definitions = {reference.__name__: reference for reference in references}
    contracts = {name: compile_contract(name, value) for name, value in definitions.items()}
    wanted = tuple(wire.Wanted(name, "answers", "") for name in definitions)
    opening = wire.Open((wire.SourceText("answers.py", (source,)),), wanted)
    session = Session(channel, opening, limits)
    calls = Calls(
        session,
        contracts,
        arguments or {},
        parameters or {},
        {name: tuple(watch) for name in definitions},
    )
    return Seat(session, calls, LiveOracle(definitions, contracts))


def warm_of(desk: Desk) -> Warm:
    """The warm process behind a desk whose submissions run in jails."""
    assert isinstance(desk.backend, Warm)
    return desk.backend


def process_of(warm: Warm) -> subprocess.Popen[bytes]:
    """The process that a test started itself."""
    assert warm._process is not None
    return warm._process
