"""The kit's fixtures for plain pytest: ``pytest solutions/graders --submission PATH``.

Light on import: torch is loaded only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from grader.course.references import Reference
    from grader.course.tensors import Make
    from grader.grading.desk import Desk
    from grader.proxies.remote import Student


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for running a course's tests with plain pytest."""
    group = parser.getgroup("grader", "attention-grader")
    group.addoption("--submission", default=None, help="the submission that `student` stands for")
    group.addoption(
        "--grader-seed", default=None, help="seed of the inputs (default: the course's)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker that `grader.testing.rung` sets."""
    config.addinivalue_line(
        "markers", "grader(exercise, rung, points, memory_mb): set by grader.testing.rung"
    )


@pytest.fixture(scope="session")
def _grader_desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    from grader.course.course import find_course, load_course, nearest_course
    from grader.grading.order import Order

    path = Path(request.session.items[0].path)
    # Of a test file that pytest was given, code has run by now: it has chosen its course.
    course = load_course(nearest_course(path.parent) or find_course(None))
    seed = request.config.getoption("--grader-seed") or course.seed
    stubs = request.config.getoption("--submission") is not None
    with Order(course, seed, {}, stubs=stubs, isolation="weak").desk() as desk:
        yield desk


@pytest.fixture(scope="session")
def _grader_student(request: pytest.FixtureRequest, _grader_desk: Desk) -> Iterator[Any]:
    from grader.intake import find_submissions

    path = request.config.getoption("--submission")
    if path is None:
        path = str(_grader_desk.course.folder)
    (submission,) = find_submissions([Path(path)], _grader_desk.course, single=True)
    with _grader_desk.seat(submission) as seat:
        yield seat


@pytest.fixture
def make(request: pytest.FixtureRequest, _grader_desk: Desk) -> Make:
    """Seeded inputs for this test."""
    marker = request.node.get_closest_marker("grader")
    label = request.node.callspec.id if hasattr(request.node, "callspec") else ""
    return _grader_desk.make(marker.kwargs["exercise"], request.node.originalname, label)


@pytest.fixture
def reference(_grader_desk: Desk, make: Make) -> Reference:
    """The course's references."""
    return _grader_desk.reference(make)


@pytest.fixture
def student(request: pytest.FixtureRequest, _grader_student: Any, make: Make) -> Student:
    """The submission, behind the wall."""
    marker = request.node.get_closest_marker("grader")
    return _grader_student.begin(make, marker.kwargs["memory_mb"])  # type: ignore[no-any-return]
