"""Opens a desk: loads the references, the tests and the library of mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from grader.course.collection import Test, collect, rung
from grader.course.references import Oracle, open_oracle
from grader.grading.desk import Desk
from grader.grading.diagnosis import LiveKnown
from grader.grading.outcomes import MistakesFile, cache
from grader.grading.play import replay
from grader.grading.recorded import Recorded
from grader.mistakes import Library, load_library
from grader.records.faults import CallError
from grader.sandbox.jails import shortfall
from grader.sandbox.session import Backend
from grader.unsandboxed import forked
from grader.wire.definitions import skeletons

if TYPE_CHECKING:
    from grader.grading.order import Order  # which opens a desk here


def set_up(order: Order, behind: Backend, outcomes: MistakesFile | None = None) -> Desk:
    """Load references and tests for a desk; `behind` has been started.

    In a course without solutions, recordings answer in their place. `outcomes` keeps the results
    of mistakes in tests. Raises `CallError` if the course or the machine is unfit.
    """
    course = order.course
    if order.device == "cuda" and not torch.cuda.is_available():
        raise CallError("torch finds no CUDA device here: leave out --device cuda")
    recorded = None if course.has_solutions else Recorded(course)
    oracle: Oracle = recorded or open_oracle(course)
    tests = _collected(order)
    pristine: dict[str, str] = {}
    for text in course.stubs().values() if order.stubs else ():
        pristine |= skeletons(text)
    torch.set_num_threads(1)
    desk = Desk(
        course,
        oracle,
        behind,
        order.seed,
        tests,
        fingerprint=course.fingerprint(),
        stubs=pristine,
        known=recorded,
        isolation=_layers(order, behind),
        device=order.device,
    )
    if recorded is None:
        desk.known = live_known(desk, load_library(course, tests), outcomes)
    return desk


def _collected(order: Order) -> dict[str, list[Test]]:
    """The tests of each exercise that is asked for, in ladder order."""
    chosen = order.course.select(order.only)
    tests: list[Test] = []
    for hidden in (False, True):
        group = [path for path, is_hidden in order.files.items() if is_hidden is hidden]
        tests += collect(group, hidden, order.course) if group else []
    tests.sort(key=lambda test: rung.order.index(test.rung))
    if any(order.files.values()):
        _refuse_unpaid(chosen, tests)
    return {name: [test for test in tests if test.exercise == name] for name in chosen}


def _layers(order: Order, behind: Backend) -> tuple[str, ...]:
    """The layers of isolation; with "weak", if submissions could read solutions or secrets."""
    solutions = order.course.secrets if order.course.has_solutions else ()
    kept = [cache()] if order.remembers else []
    reach = shortfall(behind, [*solutions, *order.secrets, *kept])
    if reach is not None and order.isolation == "strong":
        raise CallError(
            f"submissions are not isolated enough to be graded: {reach} (`grader doctor` "
            "lists the layers; --isolation=weak grades all the same, and says so in each grade)"
        )
    return behind.layers if reach is None else (*behind.layers, "weak")


def live_known(desk: Desk, library: Library, outcomes: MistakesFile | None = None) -> LiveKnown:
    """The results of known mistakes in this desk's tests; it runs them when asked."""
    cases = {
        (test.key, case.label): (test, case)
        for tests in desk.tests.values()
        for test in tests
        for case in test.cases
    }
    return LiveKnown(
        library,
        desk.definitions,
        lambda definitions, *which: replay(desk, definitions, *cases[which]),
        outcomes,
        # A listener would hear nothing from a fork.
        lambda: desk.limits if forked.possible() and desk.listener is None else None,
    )


def _refuse_unpaid(exercises: Sequence[str], tests: Sequence[Test]) -> None:
    """Refuse to grade an exercise without hidden tests: it would be a zero for everyone."""
    paid = {test.exercise for test in tests if test.hidden and test.weight > 0}
    for name in exercises:
        if name not in paid:
            raise CallError(f"no hidden test carries points for {name}: grading it makes no sense")
