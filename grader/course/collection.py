"""Collect tests: pytest finds the test functions, and this module returns them as plain data.

Test files are ordinary pytest files that any tool can run. The kit's own runner calls the collected
functions directly, without pytest's protocol. Some features of pytest, such as test classes and
further fixtures, would have no effect in that runner. This module refuses a test that uses such a
feature, and names the file and the line.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grader.course.course import Course, parsed, wrong_key
from grader.course.statements import (
    BUILT_IN,
    COMPUTES,
    FORBIDDEN,
    RETURNS,
    Statement,
    stated_or_none,
    statement,
)
from grader.records.faults import CallError, did_you_mean

Marked = TypeVar("Marked", bound=Callable[..., None])


class rung:  # noqa: N801
    """Decorators for tests, which give each test its rung: the subject of the test.

    The tests of an exercise run in the order of their rungs, `order`. The first two rungs, *exists*
    and *signature*, have no tests: the kit itself checks them. When a test of the first four rungs
    fails, all tests of later rungs are skipped, to report a bug only once. Shape tests have no
    points.

    `rules` are the keys of the statement's rules that a test checks: first the rule that the test
    is about, then other rules whose breach also fails the test. The keys `COMPUTES` and `RETURNS`
    are built in. If the cases of a test check different rules, `quotes` sets the rules of
    a case.
    """

    order = (
        "exists", "signature", "shape", "value", "property", "gradient", "stability", "efficiency",
    )  # fmt: skip

    @staticmethod
    def shape(exercise: str, *, rules: Sequence[str] = (RETURNS,)) -> Callable[[Marked], Marked]:
        """The result has the promised shape and dtype."""
        return _mark(exercise, "shape", 0, rules, paid=False)

    @staticmethod
    def value(
        exercise: str, *, points: float | None = None, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """The result agrees with the reference.

        Value tests must have at least half of an exercise's points. A test has 1 point, unless
        `points` says another number; only hidden tests have points.
        """
        return _mark(exercise, "value", points, rules)

    @staticmethod
    def property(
        exercise: str, *, points: float | None = None, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """The result has a property of every right answer, such as causality."""
        return _mark(exercise, "property", points, rules)

    @staticmethod
    def gradient(
        exercise: str, *, points: float | None = None, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """Gradients flow, and agree with the reference."""
        return _mark(exercise, "gradient", points, rules)

    @staticmethod
    def stability(
        exercise: str, *, points: float | None = None, rules: Sequence[str] = (COMPUTES,)
    ) -> Callable[[Marked], Marked]:
        """Extreme inputs give finite and right results."""
        return _mark(exercise, "stability", points, rules)

    @staticmethod
    def efficiency(
        exercise: str,
        *,
        points: float | None = None,
        rules: Sequence[str] = (COMPUTES,),
        memory_mb: int | None = None,
    ) -> Callable[[Marked], Marked]:
        """Work and memory grow no faster than necessary.

        With `memory_mb`, the test gets its own process, and the kernel limits the memory of that
        process. Student code cannot forge the result of such a limit, but could forge a count of
        operations. Only jails enforce the limit.
        """
        return _mark(exercise, "efficiency", points, rules, memory_mb)

    @staticmethod
    def quotes(*rules: str) -> pytest.MarkDecorator:
        """Set the rules that a case checks: ``pytest.param(…, marks=rung.quotes("large"))``."""
        return pytest.mark.grader_quotes(*rules)


def _mark(
    exercise: str,
    name: str,
    points: float | None,
    rules: Sequence[str],
    memory_mb: int | None = None,
    *,
    paid: bool = True,
) -> Callable[[Marked], Marked]:
    if points is not None and (not isinstance(points, int | float) or not 0 <= points < math.inf):
        raise CallError(f"points={points!r}: write a number from 0")
    if isinstance(rules, str):
        raise CallError(f"rules={rules!r} is text: write rules=({rules!r},)")
    return pytest.mark.grader(
        exercise=exercise,
        rung=name,
        points=1 if points is None else points,
        paid=paid and points is not None,  # whether the author wrote a number of points
        rules=tuple(rules),
        memory_mb=memory_mb,
    )


# --- collection ----------------------------------------------------------------------------------


FIXTURES = frozenset({"student", "reference", "make"})
BEHIND_THEM = frozenset({"request", "_grader_desk", "_grader_student"})


@dataclass(frozen=True)
class Case:
    """A case of a test: values for the test's parameters."""

    label: str  # "" for a test without parameters
    parameters: Mapping[str, Any]
    rules: tuple[str, ...] = (COMPUTES,)  # keys of the rules that the case checks

    @property
    def words(self) -> str:
        """The label for people: ``step = 2, decay = 0.2`` where pytest's own label is ``2-0.2``."""
        numbers = all(isinstance(value, int | float) for value in self.parameters.values())
        if not numbers or self.label != "-".join(map(str, self.parameters.values())):
            return self.label
        return ", ".join(f"{name} = {value}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class Test:
    """A test function with its cases, all of which must pass."""

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
    memory_mb: int | None = None  # memory limit, if lower than the course's

    __test__ = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The keys of all rules that the test's cases check."""
        return tuple(dict.fromkeys(rule for case in self.cases for rule in case.rules))

    @cached_property
    def key(self) -> str:
        """A key that is unique although a public and a hidden test may have the same name."""
        return f"{'hidden' if self.hidden else 'public'} {self.name}"


def collect(files: Sequence[Path], hidden: bool, course: Course) -> list[Test]:
    """The tests in these files; raises `CallError` for a test that uses a refused feature."""
    for path in files:
        if not path.is_file():
            raise CallError(
                f"{path} is missing: each unit needs a file of checks and a file of hidden tests"
            )
        _refuse_lost(path)
    found: dict[str, Test] = {}
    for item in _items(files):
        test = _test(item, hidden, course)
        before = found.get(test.name)
        if before is None:
            found[test.name] = test
        elif before.function is test.function:
            _refuse_equal_labels(before, test)
            found[test.name] = replace(before, cases=(*before.cases, *test.cases))
        elif _replaces(test, before, course):
            found[test.name] = test
        else:
            raise CallError(f"{test.place}: there is another test called {test.name}")
    if hidden:
        for name in course.exercises:
            own = [test for test in found.values() if test.exercise == name]
            _check_weights(name, own)
            _check_heart(course, name, own)
    return list(found.values())


def _replaces(test: Test, before: Test, course: Course) -> bool:
    """Whether a private test replaces the public one of its name, which must be of its exercise."""
    first, second = (Path(one.place.rpartition(":")[0]) for one in (before, test))
    return (
        test.exercise == before.exercise
        and course.is_private(second)
        and not course.is_private(first)
    )


def _refuse_lost(path: Path) -> None:
    """Raise `CallError` for a test that would silently be lost.

    Python drops the first of two tests with one name, and pytest ignores a function whose name does
    not begin with ``test_``.
    """
    lines: dict[str, int] = {}
    for node in parsed(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.name in lines:
            raise CallError(
                f"{path}:{node.lineno}: there is another {node.name} in line "
                f"{lines[node.name]}, which would never run: give it another name"
            )
        if node.name.startswith("test_"):
            lines[node.name] = node.lineno
        elif any(ast.unparse(one).startswith("rung.") for one in node.decorator_list):
            raise CallError(
                f"{path}:{node.lineno}: {node.name} has a rung, but would never run: begin its "
                "name with test_"
            )


def unchecked_rules(stated: Statement, tests: Iterable[Test]) -> Mapping[str, str]:
    """The rules of an exercise that no public check in `tests` checks: each sentence by its key.

    The rule about forbidden operations is left out, since the kit itself checks it.
    """
    checked = {key for test in tests if not test.hidden for key in test.rules}
    return {k: rule for k, rule in stated.rules.items() if k not in checked | {FORBIDDEN}}


def rules_left_out(course: Course) -> Mapping[str, Collection[str]]:
    """For each exercise, the keys of the rules that its public checks do not check."""
    tests = collect(course.check_files(), False, course)
    return {
        name: unchecked_rules(
            statement(course, name), [test for test in tests if test.exercise == name]
        )
        for name in course.exercises
    }


def _refuse_equal_labels(before: Test, test: Test) -> None:
    """Raise `CallError` if two cases of a test have the same label, the key of their results."""
    labels = {case.label for case in before.cases}
    for case in test.cases:
        if case.label in labels:
            raise CallError(
                f"{test.place}: two cases of {test.name} are called [{case.label}]: "
                "give their parameters other ids"
            )


def _check_weights(exercise: str, tests: Sequence[Test]) -> None:
    total = sum(test.weight for test in tests)
    values = [test for test in tests if test.rung == "value"]
    value = sum(test.weight for test in values)
    if 2 * value < total:
        raise CallError(
            f"{(values or tests)[0].place}: value tests must hold at least half of {exercise}'s "
            f"points, but they hold {value:g} of {total:g}"
        )


def _check_heart(course: Course, exercise: str, tests: Sequence[Test]) -> None:
    """Raise `CallError` if no hidden test checks an essential rule (``heart``) of the exercise."""
    quoted = {rule for test in tests for rule in test.rules}
    for rule in course.exercises[exercise].heart if tests else ():
        if rule not in quoted:
            why = f"{rule!r} is at the heart of {exercise}, but no hidden test quotes it"
            stated = stated_or_none(course, exercise)
            if stated is not None and rule not in stated.keys:
                why = f"the statement of {exercise} has no rule called {rule!r}"
                why += did_you_mean(rule, stated.keys)
            raise wrong_key(course, exercise, "heart", why)


def _test(item: pytest.Item, hidden: bool, course: Course) -> Test:
    path, line, _ = item.reportinfo()
    place = f"{path}:{(line or 0) + 1}"
    if not isinstance(item, pytest.Function) or item.cls is not None:
        raise CallError(f"{place}: a test is a function at module level, not a class or doctest")
    marker = item.get_closest_marker("grader")
    if marker is None:
        raise CallError(f'{place}: {item.name} needs a rung: @rung.value("exercise", points=1)')
    details = marker.kwargs
    if details["exercise"] not in course.exercises:
        name = details["exercise"]
        near = did_you_mean(name, course.exercises, "")
        raise CallError(f"{place}: course.toml has no exercise called {name!r}{near}")
    _refuse_elsewhere(Path(path), details["exercise"], course, place)
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    label = item.callspec.id if hasattr(item, "callspec") else ""
    direct = set(inspect.signature(item.obj).parameters)
    others = (set(item.fixturenames) - BEHIND_THEM | direct) - FIXTURES - set(parameters)
    if others:
        usual = "; a test may use student, reference, make, and the names of its parameters"
        near = did_you_mean(sorted(others)[0], FIXTURES.union(parameters), usual)
        raise CallError(
            f"{place}: {item.originalname} uses the fixture {sorted(others)[0]!r}{near}"
        )
    if details["paid"] and not hidden:
        raise CallError(
            f"{place}: {item.originalname} is a public check, and only hidden tests have points: "
            "leave out points="
        )
    quoted = item.get_closest_marker("grader_quotes")
    rules = quoted.args if quoted is not None else details["rules"]
    _refuse_unknown(rules, details["exercise"], course, place)
    marks = {mark.name for mark in item.iter_markers()} - {"grader", "grader_quotes", "parametrize"}
    if marks:
        raise CallError(
            f"{place}: {item.originalname} is marked {sorted(marks)[0]!r}, which the kit's own "
            "runner ignores"
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
    """Raise `CallError` for a test in another unit's file.

    A grading reads only the files of the units that it grades.
    """
    unit, here = course.unit_of[exercise], path.stem.removeprefix("test_")
    if here != unit and any(here == other.name for other in course.units):
        raise CallError(f"{place}: {exercise} belongs to the unit {unit}: use test_{unit}.py")


def _refuse_unknown(rules: Sequence[str], exercise: str, course: Course, place: str) -> None:
    """Raise `CallError` for a rule that the exercise's statement does not have.

    If a student has replaced the stub by an answer, the statement may have changed too. Then the
    rules are not checked.
    """
    if {*rules} <= {*BUILT_IN}:
        return
    stated = stated_or_none(course, exercise)
    if stated is None or "NotImplementedError" not in stated.stub:
        return
    for rule in rules:
        if rule not in stated.keys:
            near = did_you_mean(rule, stated.keys)
            raise CallError(
                f"{place}: the statement of {exercise} has no rule called {rule!r}{near}"
            )


# Plugins of pytest that only running tests needs: loading them would double the collection time.
UNUSED = (
    "cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "legacypath", "logging",
    "monkeypatch", "pastebin", "recwarn", "setuponly", "setupplan", "stepwise", "subtests",
    "threadexception", "tmpdir", "unraisableexception",
)  # fmt: skip


class _Collector:
    """A pytest plugin that keeps the tests of the requested files, and ignores all other files."""

    def __init__(self, files: Collection[Path]) -> None:
        whole = [Path(os.path.abspath(file)) for file in files]  # noqa: PTH100 - links stay
        self._wanted = {place for file in whole for place in (file, *file.parents)}
        self.items: list[pytest.Item] = []
        self.errors: list[str] = []
        self.interrupted = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool:
        """Ignore all paths except the requested files and the folders above them."""
        return collection_path not in self._wanted

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the collected tests."""
        self.items = list(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep import errors."""
        if report.failed:
            self.errors.append(str(report.longrepr))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember Ctrl-C, which pytest would swallow."""
        self.interrupted = excinfo.type is KeyboardInterrupt  # pytest's own exits call this too


def _one_line(report: str, files: Sequence[Path]) -> str:
    """The exception in pytest's report on a file that cannot be imported, with file and line."""
    names = "|".join(re.escape(path.name) for path in files)
    places = re.findall(rf"^(\S*?(?:{names}):\d+): in ", report, re.M)
    said = [line.removeprefix("E").strip() for line in report.splitlines() if line[:2] == "E "]
    why = " ".join(said).removeprefix(f"{CallError.__module__}.{CallError.__name__}: ") or report
    return f"{places[-1] if places else files[0].parent}: {why}"


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # do not write into the course's folder
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
        # Do not redirect file descriptors, since the kit may be drawing on the terminal.
        "--capture=no",
        "-c",
        os.devnull,
        "--rootdir",
        str(files[0].parent),
    ]
    before = set(sys.modules)
    with _quietly():
        code = pytest.main([*options, *map(str, files)], plugins=[collector])
    # pytest names modules by their path below the root. Remove the modules from Python's cache: a
    # file of the same name in another course, or among the public checks, must be imported anew.
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {path.stem for path in files}:
            del sys.modules[name]
    if collector.interrupted:
        raise KeyboardInterrupt
    if collector.errors:
        raise CallError(_one_line(collector.errors[0], files))
    if code != pytest.ExitCode.OK:
        raise CallError(f"no tests were found in {files[0].parent}")
    return collector.items
