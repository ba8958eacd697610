"""The kit's fixtures for plain pytest: ``pytest solutions/graders --submission PATH``.

Pytest loads this plugin in every project of the environment. Therefore the plugin does nothing
unless pytest is started for a course: see `_near_a_course`. Importing the plugin is cheap: only the
fixtures load torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grader.course.course import NAMED, find_course, load_course, nearest_course
from grader.records.faults import CallError

if TYPE_CHECKING:
    from grader.course.references import Reference
    from grader.course.tensors import Make
    from grader.grading.desk import Desk, Seat
    from grader.proxies.remote import Student


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the command-line options for running a course's tests with plain pytest."""
    if not _near_a_course(pluginmanager.get_plugin("pytestconfig")):
        return
    group = parser.getgroup("grader", "attention-grader")
    group.addoption("--submission", default=None, help="the submission to test")
    group.addoption(
        "--grader-seed", default=None, help="seed of the inputs (default: the course's)"
    )
    group.addoption(
        "--isolation",
        choices=("strong", "weak"),
        default="strong",
        help="with weak, run a submission even if it could read secrets",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the fixtures and the markers that `grader.testing.rung` sets."""
    if not _near_a_course(config):
        return
    config.pluginmanager.register(_Fixtures(), "grader_fixtures")
    for marker in (
        "grader(exercise, rung, points, rules, memory_mb): set by grader.testing.rung",
        "grader_quotes(*rules): set by grader.testing.rung.quotes",
    ):
        config.addinivalue_line("markers", marker)


def _near_a_course(config: Any) -> bool:
    """Whether pytest was started in a course, with a path into a course, or with `NAMED` set."""
    if os.environ.get(NAMED):
        return True
    called = config.invocation_params
    # Try all arguments, and also `testpaths` once pytest has read its settings. Arguments that are
    # not paths find no course.
    given = [*called.args, *getattr(config, "args", ())]
    for place in ("", *(str(argument).partition("::")[0] for argument in given)):
        with suppress(OSError, ValueError):  # the argument cannot be a path
            if nearest_course(Path(called.dir, place)) is not None:
                return True
    return False


class _Fixtures:
    """The fixtures `make`, `reference` and `student` of a course's tests."""

    @pytest.fixture(scope="session")
    @classmethod
    def _grader_desk(cls, request: pytest.FixtureRequest) -> Iterator[Desk]:
        from grader.grading.order import Order

        tests = (item for item in request.session.items if item.get_closest_marker("grader"))
        path = Path(next(tests).path)
        config = request.config
        # The option does not exist if only `testpaths` names the course.
        foreign = config.getoption("--submission", None) is not None
        with ExitStack() as stack:
            with _in_one_line():
                # The course of the test file. Pytest has already run that file, so its course is
                # trusted.
                course = load_course(nearest_course(path.parent) or find_course(None))
                order = Order(
                    course,
                    config.getoption("--grader-seed", None) or course.seed,
                    {},
                    stubs=foreign,
                    isolation=config.getoption("--isolation") if foreign else "weak",
                )
                desk = stack.enter_context(order.desk())
            yield desk

    @pytest.fixture(scope="session")
    @classmethod
    def _grader_student(cls, request: pytest.FixtureRequest, _grader_desk: Desk) -> Iterator[Seat]:
        from grader.intake import find_submissions

        path = request.config.getoption("--submission", None)
        if path is None:
            path = str(_grader_desk.course.folder)
        with _in_one_line():
            (submission,) = find_submissions([Path(path)], _grader_desk.course, single=True)
        with _grader_desk.seat(submission) as seat:
            yield seat

    @pytest.fixture
    def make(self, request: pytest.FixtureRequest) -> Make:
        """A maker of random inputs, seeded for this test."""
        exercise = _declared(request)["exercise"]
        desk: Desk = request.getfixturevalue("_grader_desk")
        label = request.node.callspec.id if hasattr(request.node, "callspec") else ""
        return desk.make(exercise, request.node.originalname, label)

    @pytest.fixture
    def reference(self, request: pytest.FixtureRequest, make: Make) -> Reference:
        """The reference solutions of the course."""
        desk: Desk = request.getfixturevalue("_grader_desk")
        return desk.reference(make)

    @pytest.fixture
    def student(self, request: pytest.FixtureRequest, make: Make) -> Student:
        """The submission's answers, as proxies: each call runs in the process of the submission."""
        seat: Seat = request.getfixturevalue("_grader_student")
        return seat.begin(make, _declared(request)["memory_mb"])


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Turn a `CallError` into a failure of the test that shows only the message."""
    try:
        yield
    except CallError as error:
        pytest.fail(str(error), pytrace=False)


def _declared(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments of the `rung` that decorates a test."""
    marker = request.node.get_closest_marker("grader")
    if marker is None:
        request.raiseerror(
            "make, reference and student are for the tests of a course, but this test has no rung: "
            '@rung.value("exercise", points=1)'
        )
    return dict(marker.kwargs)
