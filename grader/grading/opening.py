"""Opens a desk: loads the references, the tests and the library of mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from grader.course.collection import Test, collect, rung
from grader.course.course import parsed
from grader.course.references import Oracle, open_oracle
from grader.grading.desk import Desk
from grader.grading.play import replay
from grader.grading.recorded import Recorded
from grader.grading.replays import Replays
from grader.grading.rows import Rows, cache
from grader.grading.sheet import Sheet
from grader.mistakes import Library, load_library
from grader.records.faults import CallError
from grader.sandbox.jails import shortfall
from grader.sandbox.session import Backend
from grader.unsandboxed import forked
from grader.wire.definitions import skeletons

if TYPE_CHECKING:
    from grader.grading.order import Order  # `order` imports this module to open a desk


def set_up(order: Order, behind: Backend, rows: Rows | None = None) -> Desk:
    """Open a desk: load references, tests and known mistakes.

    `behind` is the started backend, which opens the jails. In a course without solutions, recorded
    results replace the references. The sheet reads `rows` and adds to them. Raises `CallError` if
    the course or the machine is unfit.
    """
    course = order.course
    if order.device == "cuda" and not torch.cuda.is_available():
        raise CallError("torch finds no CUDA device here: leave out --device cuda")
    recorded = None if course.has_solutions else Recorded(course)
    oracle: Oracle = recorded or open_oracle(course)
    tests = _collected(order)
    pristine: dict[str, str] = {}
    for path in (course.pristine(unit.name) for unit in course.units) if order.stubs else ():
        if path.is_file():  # in a clone, a renamed file has no original stubs
            parsed(path)
            pristine |= skeletons(path.read_text("utf-8"))
    torch.set_num_threads(1)
    desk = Desk(
        course,
        oracle,
        behind,
        order.seed,
        tests,
        fingerprint=course.fingerprint(),
        stubs=pristine,
        sheet=Sheet(recorded.rows) if recorded is not None else None,
        isolation=_layers(order, behind),
        device=order.device,
    )
    if recorded is None:
        bases = (base for name in tests for base in course.exercises[name].requires)
        desk.sheet = sheet_of(desk, load_library(course, {*tests, *bases}), rows)
    return desk


def _collected(order: Order) -> dict[str, list[Test]]:
    """The tests of each chosen exercise, in the order of the ladder's rungs."""
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
    """The layers of isolation; with "weak" if submissions could read solutions or secrets.

    Raises `CallError` in this case, unless the order allows weak isolation.
    """
    solutions = order.course.secrets if order.course.has_solutions else ()
    kept = [cache()] if order.keeps_sheet else []
    reach = shortfall(behind, [*solutions, *order.secrets, *kept])
    if reach is not None and order.isolation == "strong":
        raise CallError(
            f"submissions are not isolated enough to be graded: {reach} (`grader doctor` "
            "lists the layers; --isolation=weak grades all the same, and says so in each grade)"
        )
    return behind.layers if reach is None else (*behind.layers, "weak")


def sheet_of(desk: Desk, library: Library, rows: Rows | None = None) -> Sheet:
    """The desk's sheet; to find a missing row, it runs a known answer in the desk's tests."""
    cases = {
        (test.key, case.label): (test, case)
        for tests in desk.tests.values()
        for test in tests
        for case in test.cases
    }
    replays = Replays(
        library,
        desk.definitions,
        lambda definitions, *which: replay(desk, definitions, *cases[which]).known,
        # The desk's listener cannot hear calls that run in a fork.
        lambda: desk.limits if forked.possible() and desk.listener is None else None,
    )
    return Sheet(rows or Rows(), replays)


def _refuse_unpaid(exercises: Sequence[str], tests: Sequence[Test]) -> None:
    """Raise `CallError` for an exercise without hidden tests: every student would get no points."""
    paid = {test.exercise for test in tests if test.hidden and test.weight > 0}
    for name in exercises:
        if name not in paid:
            raise CallError(f"no hidden test carries points for {name}: {name} cannot be graded")
