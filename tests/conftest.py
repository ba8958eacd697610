"""Fixtures that several test files share: one warm process, and the tiny course."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from grader.cli import main
from grader.course.course import NAMED, Course, load_course
from grader.grading.desk import Desk, Seat
from grader.grading.order import Order
from grader.intake import Submission
from grader.sandbox import jails
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.support import seats
from tests.support.places import ROOT, TINY

# A course's tests need a submission; see test_collection.py.
collect_ignore = ["tiny_course", "courses/arrays", "courses/training"]

# The cache that all test processes share, in place of the user's own.
CACHE = ROOT / "build" / "cache"
os.environ["XDG_CACHE_HOME"] = str(CACHE)

# Each collection of graders ends with pytest looking for garbage, in torch's objects too: 0.2 s.
gc.freeze()

# The longest files come first: begun last, one would run alone while the other processes are idle.
LONGEST = ("release/test_notebooks.py", "test_attacks.py", "test_submissions.py")


def pytest_configure(config: pytest.Config) -> None:
    """Empty the cache: results of an earlier run prove nothing."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(CACHE / "attention-grader", ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the longest files first, and skip tests for a GPU where there is none."""
    turns = {ROOT / "tests" / name: turn for turn, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turns.get(item.path, len(turns)))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        import torch

        if not torch.cuda.is_available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason="torch finds no CUDA device here"))


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """The process that holds torch: 3 s to start, 20 ms to fork."""
    with Warm() as warm:
        yield warm


@contextmanager
def sharing(warm: Warm) -> Iterator[None]:
    """Desks that are opened inside share this warm process."""

    @contextmanager
    def shared() -> Iterator[Warm]:
        yield warm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jails, "Warm", shared)
        yield


@pytest.fixture
def one_warm_process(warm: Warm) -> Iterator[None]:
    """Desks that are opened during the test share the warm process."""
    with sharing(warm):
        yield


@pytest.fixture(scope="session")
def tiny() -> Course:
    """A course of four exercises."""
    return load_course(TINY / "exercises")


def assigned(folder: Path, *exercises: str, points: float = 100) -> Course:
    """The course in this folder, as the part for an assignment of these exercises."""
    path = folder / "course.toml"
    table = f'[[assignment]]\nname = "ps1"\nexercises = {[*exercises]}\npoints = {points}\n'
    path.write_text(f'assigned = "ps1"\n{path.read_text("utf-8")}\n{table}', "utf-8")
    return load_course(folder)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a folder without a course, and hide the kit's own course."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "grader.course.course.__file__", str(tmp_path / "installed" / "course" / "course.py")
    )


@pytest.fixture(scope="session")
def right() -> str:
    """A right answer to every exercise of the tiny course, in one file."""
    units = ("basics", "layers")
    return "\n\n".join((TINY / "solutions" / f"{unit}.py").read_text("utf-8") for unit in units)


@pytest.fixture(scope="session")
def desk(warm: Warm, tiny: Course) -> Iterator[Desk]:
    """The tiny course with its public checks and hidden graders."""
    files = tiny.tests_of()
    with ExitStack() as stack:
        with sharing(warm):
            desk = stack.enter_context(
                Order(tiny, tiny.hidden_seed(), files, isolation="weak").desk()
            )
        yield desk


Files = Mapping[str, str | Sequence[str]]  # names, and text or notebook cells


@pytest.fixture
def sit(desk: Desk) -> Iterator[Callable[[Files], Seat]]:
    """Seat a submission that consists of these files."""
    with ExitStack() as stack:

        def sit_down(files: Files) -> Seat:
            sources = [
                SourceText(name, (text,) if isinstance(text, str) else tuple(text))
                for name, text in files.items()
            ]
            return stack.enter_context(desk.seat(Submission("someone", tuple(sources))))

        yield sit_down


class Ran(NamedTuple):
    """A command's exit code and output."""

    code: int
    out: str
    err: str


Grader = Callable[..., Ran]


@pytest.fixture
def cold_grader(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Grader:
    """Run a command of `grader` in this process."""
    monkeypatch.delenv(NAMED, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["grader", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        code = stopped.value.code
        return Ran(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


@pytest.fixture
def grader(one_warm_process: None, cold_grader: Grader) -> Grader:
    """Run a command of `grader` without loading torch again."""
    return cold_grader


@pytest.fixture
def open_seat(warm: Warm) -> Iterator[Callable[..., seats.Seat]]:
    """Open one file of text in a jail, against references of the test's own."""
    with ExitStack() as stack:

        def opened(source: str, *references: Any, **options: Any) -> seats.Seat:
            seat = seats.open_seat(warm.open, source, *references, **options)
            stack.callback(seat.session.close)
            return seat

        yield opened
