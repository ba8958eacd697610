"""Collecting graders: pytest finds the test functions once, and hands them over as plain data.

Graders are ordinary pytest files, so that any tool can run them. The kit's own runner calls the
collected functions directly, without pytest's protocol; to keep both in agreement, whatever would
make them differ (classes, other fixtures) is refused here, with file and line.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grader.course.course import Course
from grader.course.statements import (
    BUILT_IN,
    COMPUTES,
    FORBIDDEN,
    RETURNS,
    Statement,
    stated_or_none,
    statement,
)
from grader.records.faults import CallError

Marked = TypeVar("Marked", bound=Callable[..., None])


class rung:  # noqa: N801
    """The ladder: each rung is a decorator. Rungs are climbed in the order in which they stand.

    `rules` are the keys of the statement's rules that a test checks, `COMPUTES` and `RETURNS` among
    them; `quotes` says it of one case of a test where cases differ.

    *exists* and *signature* come before these and are checked by the engine itself. When a rung
    that others stand on fails, those are skipped, so that one bug is told once. Shape tests carry
    no points.
    """

    order = (
        "exists", "signature", "shape", "value", "property", "gradient", "stability", "efficiency",
    )  # fmt: skip

    @staticmethod
    def shape(exercise: str, *, rules: Sequence[str] = (RETURNS,)) -> Callable[[Marked], Marked]:
        """The result has the promised shape and dtype."""
        return _mark(exercise, "shape", 0, rules)

    @staticmethod
    def value(
        exercise: str, *, points: float = 1, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """The result agrees with the reference. At least half of an exercise's points."""
        return _mark(exercise, "value", points, rules)

    @staticmethod
    def property(
        exercise: str, *, points: float = 1, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """Something that holds for every right answer: rows sum to one, no peeking."""
        return _mark(exercise, "property", points, rules)

    @staticmethod
    def gradient(
        exercise: str, *, points: float = 1, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """Gradients flow, and agree with the reference."""
        return _mark(exercise, "gradient", points, rules)

    @staticmethod
    def stability(
        exercise: str, *, points: float = 1, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """Extreme inputs give finite, right results."""
        return _mark(exercise, "stability", points, rules)

    @staticmethod
    def efficiency(
        exercise: str,
        *,
        points: float = 1,
        rules: Sequence[str] = (COMPUTES,),
        memory_mb: int | None = None,
    ) -> Callable[[Marked], Marked]:
        """Work and memory grow no faster than they must.

        With `memory_mb` the answer runs in a process of its own, which the kernel gives that much
        memory and no more: proof, where a count is evidence. Only jails keep to it.
        """
        return _mark(exercise, "efficiency", points, rules, memory_mb)

    @staticmethod
    def quotes(*rules: str) -> pytest.MarkDecorator:
        """For ``pytest.param(…, marks=rung.quotes("large"))``: the rules that this case checks."""
        return pytest.mark.grader_quotes(*rules)


def _mark(
    exercise: str, name: str, points: float, rules: Sequence[str], memory_mb: int | None = None
) -> Callable[[Marked], Marked]:
    return pytest.mark.grader(
        exercise=exercise, rung=name, points=points, rules=tuple(rules), memory_mb=memory_mb
    )


# --- collection ----------------------------------------------------------------------------------


FIXTURES = frozenset({"student", "reference", "make"})
BEHIND_THEM = frozenset({"request", "_grader_desk", "_grader_student"})


@dataclass(frozen=True)
class Case:
    """One set of parameters of a test."""

    label: str  # "" for a test that is not parametrised
    parameters: Mapping[str, Any]
    rules: tuple[str, ...] = (COMPUTES,)  # what it checks, by the statement's keys


@dataclass(frozen=True)
class Test:
    """One test function; all its cases must pass."""

    name: str
    title: str
    exercise: str
    rung: str
    weight: float
    hidden: bool
    function: Callable[..., None]
    fixtures: tuple[str, ...]
    cases: tuple[Case, ...]
    place: str  # file and line, for authors
    memory_mb: int | None = None  # that its process may use, if less than the course gives

    __test__ = False

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules that its cases check."""
        return tuple(dict.fromkeys(rule for case in self.cases for rule in case.rules))

    @cached_property
    def key(self) -> str:
        """A public and a hidden test may have one name."""
        return f"{'hidden' if self.hidden else 'public'} {self.name}"


def collect(files: Sequence[Path], hidden: bool, course: Course) -> list[Test]:
    """The tests in these files, as they stand; raise `CallError` for what is refused."""
    for path in files:
        if not path.is_file():
            raise CallError(f"{path} is not there: each unit has a test file on both sides")
    found: dict[str, Test] = {}
    for item in _items(files):
        test = _test(item, hidden, course)
        before = found.get(test.name)
        if before is None:
            found[test.name] = test
        elif before.function is test.function:
            _refuse_alike(before, test)
            found[test.name] = replace(before, cases=(*before.cases, *test.cases))
        else:
            raise CallError(f"{test.place}: there is another test called {test.name}")
    if hidden:
        for name in course.exercises:
            own = [test for test in found.values() if test.exercise == name]
            _check_weights(name, own)
            _check_heart(name, course.exercises[name].heart, own)
    return list(found.values())


def unchecked_rules(stated: Statement, tests: Iterable[Test]) -> Mapping[str, str]:
    """The rules of an exercise that none of its public checks quotes, by their keys.

    The engine itself looks at what is forbidden.
    """
    checked = {key for test in tests if not test.hidden for key in test.rules}
    return {k: said for k, said in stated.rules.items() if k not in checked | {FORBIDDEN}}


def rules_left_out(course: Course) -> Mapping[str, Collection[str]]:
    """Of each exercise the rules that its public checks do not look at."""
    tests = collect(course.check_files(), False, course)
    return {
        name: unchecked_rules(
            statement(course, name), [test for test in tests if test.exercise == name]
        )
        for name in course.exercises
    }


def _refuse_alike(before: Test, test: Test) -> None:
    """A case is known by its label: of two with one label, the second would end as the first."""
    labels = {case.label for case in before.cases}
    for case in test.cases:
        if case.label in labels:
            raise CallError(
                f"{test.place}: two cases of {test.name} are called [{case.label}]: "
                "give their parameters other ids"
            )


def _check_weights(exercise: str, tests: Sequence[Test]) -> None:
    total = sum(test.weight for test in tests)
    value = sum(test.weight for test in tests if test.rung == "value")
    if 2 * value < total:
        where = tests[0].place.partition(":")[0]
        raise CallError(f"{where}: value tests must hold at least half of {exercise}'s points")


def _check_heart(exercise: str, heart: Sequence[str], tests: Sequence[Test]) -> None:
    """A rule that caps the points must be one that a test looks at."""
    quoted = {rule for test in tests for rule in test.rules}
    for rule in heart if tests else ():
        if rule not in quoted:
            raise CallError(
                f"course.toml: {rule!r} is at the heart of {exercise}, and no hidden test quotes it"
            )


def _test(item: pytest.Item, hidden: bool, course: Course) -> Test:
    path, line, _ = item.reportinfo()
    place = f"{path}:{(line or 0) + 1}"
    if not isinstance(item, pytest.Function) or item.cls is not None:
        raise CallError(f"{place}: a grader is a function at module level, not a class or doctest")
    marker = item.get_closest_marker("grader")
    if marker is None:
        raise CallError(f'{place}: {item.name} needs a rung: @rung.value("exercise", points=1)')
    details = marker.kwargs
    if details["exercise"] not in course.exercises:
        raise CallError(f"{place}: course.toml has no exercise called {details['exercise']!r}")
    _refuse_elsewhere(Path(path), details["exercise"], course, place)
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    label = item.callspec.id if hasattr(item, "callspec") else ""
    direct = set(inspect.signature(item.obj).parameters)
    others = (set(item.fixturenames) - BEHIND_THEM | direct) - FIXTURES - set(parameters)
    if others:
        raise CallError(
            f"{place}: {item.originalname} uses the fixture {sorted(others)[0]!r}; a grader may "
            "use student, reference, make and parametrise names, and no autouse fixtures"
        )
    quoted = item.get_closest_marker("grader_quotes")
    rules = quoted.args if quoted is not None else details["rules"]
    _refuse_unknown(rules, details["exercise"], course, place)
    marks = {mark.name for mark in item.iter_markers()} - {"grader", "grader_quotes", "parametrize"}
    if marks:
        raise CallError(
            f"{place}: {item.originalname} is marked {sorted(marks)[0]!r}, which the kit's own "
            "runner would not see"
        )
    title = (inspect.getdoc(item.obj) or "").partition("\n")[0].rstrip(".")
    if not title:
        raise CallError(f"{place}: {item.originalname} needs a docstring: it is the test's title")
    fixtures = tuple(sorted(direct & FIXTURES))
    return Test(
        item.originalname,
        title,
        details["exercise"],
        details["rung"],
        details["points"],
        hidden,
        item.obj,
        fixtures,
        (Case(label, parameters, rules),),
        place,
        details["memory_mb"],
    )


def _refuse_elsewhere(path: Path, exercise: str, course: Course, place: str) -> None:
    """Raise `CallError` for a test in another unit's file: who grades one unit reads no other's."""
    unit, here = course.unit_of[exercise], path.stem.removeprefix("test_")
    if here != unit and any(here == other.name for other in course.units):
        raise CallError(f"{place}: {exercise} is of the unit {unit}: put it in test_{unit}.py")


def _refuse_unknown(rules: Sequence[str], exercise: str, course: Course, place: str) -> None:
    """Raise `CallError` for a rule that the exercise's statement does not have.

    Of a definition that a student has written where the stub was, the docstring is the student's.
    """
    if {*rules} <= {*BUILT_IN}:
        return
    stated = stated_or_none(course, exercise)
    if stated is None or "NotImplementedError" not in stated.stub:
        return
    for rule in rules:
        if rule not in stated.keys:
            known = ", ".join(stated.keys)
            raise CallError(
                f"{place}: the statement of {exercise} has no rule called {rule!r}; it has {known}"
            )


# Parts of pytest that have nothing to do where no test is run: to set them up is half of the time.
UNUSED = (
    "cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "legacypath", "logging",
    "monkeypatch", "pastebin", "recwarn", "setuponly", "setupplan", "stepwise", "subtests",
    "threadexception", "tmpdir", "unraisableexception",
)  # fmt: skip


class _Collector:
    """A pytest plugin that keeps what was collected, and lets pytest look at nothing else."""

    def __init__(self, files: Collection[Path]) -> None:
        whole = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 - links stay
        self._on_the_way = {place for file in whole for place in (file, *file.parents)}
        self.items: list[pytest.Item] = []
        self.errors: list[str] = []
        self.interrupted = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        """Leave out what lies beside the files that are asked for, without a look at it."""
        return collection_path not in self._on_the_way

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the items."""
        self.items = list(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be imported."""
        if report.failed:
            self.errors.append(str(report.longrepr))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep that Ctrl-C came, which pytest takes for an end like others."""
        self.interrupted = excinfo.type is KeyboardInterrupt  # its own ends are subclasses


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a course folder is not ours to write into
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        sys.dont_write_bytecode = before


def _items(files: Sequence[Path]) -> list[pytest.Item]:
    collector = _Collector(files)
    options = [
        "--collect-only",
        "-q",
        "--import-mode=importlib",
        "--disable-plugin-autoload",
        "--noconftest",
        *(part for name in UNUSED for part in ("-p", f"no:{name}")),
        "-p",
        "grader.pytest_plugin",
        # A screen may be drawn meanwhile: the terminal's descriptors are not pytest's to swap.
        "--capture=no",
        "-c",
        os.devnull,
        "--rootdir",
        str(files[0].parent),
    ]
    before = set(sys.modules)
    with _quietly():
        code = pytest.main([*options, *map(str, files)], plugins=[collector])
    # pytest names modules by their place under the root. Another course, or the public file of
    # the same name, must not be answered from this one's cache.
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {path.stem for path in files}:
            del sys.modules[name]
    if collector.interrupted:
        raise KeyboardInterrupt
    if collector.errors:
        raise CallError(f"a test file cannot be collected:\n{collector.errors[0]}")
    if code != pytest.ExitCode.OK:
        raise CallError(f"no tests were found in {files[0].parent}")
    return collector.items
