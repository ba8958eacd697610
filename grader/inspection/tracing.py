"""Traces a student's own code in the public checks: the statements that run, and their values.

Tracing adds no tensor operations. It reads a tensor's shape and dtype, and never calls methods of
the student's objects.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn

from grader import wire
from grader.course.course import Course
from grader.grading.ladder import Climb
from grader.inspection.cases import (
    Bench,
    CallReader,
    CaseTrace,
    NamedValue,
    Step,
    calls_of,
    case_trace,
    check_trace,
    described,
    open_bench,
    run_cases,
    runs_answer,
)
from grader.unsandboxed.in_process import Do, InProcess, Loaded, unseen_prints
from grader.wire.source import SourceFile

MAX_STEPS = 60  # statements shown per call
BINDINGS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
LOOPS = (ast.For, ast.While)  # shown without a count, since the head runs once more than the body


def show(course: Course, name: str, folder: Path | None = None) -> Iterator[CaseTrace]:
    """Run an exercise's public checks in this process, and trace each case.

    Student code runs in this process, so use this on the student's own computer only. Raises
    `CallError` for a wrong name or folder.
    """
    with open_bench(course, name, folder) as bench:
        yield from traced(bench)


def traced(bench: Bench) -> Iterator[CaseTrace]:
    """Run the tests of a bench in this process, and trace each case."""
    watched = Watched(Loaded())
    with bench.seat(InProcess(watched.answers, around=watched.do)) as seat:
        climb = Climb(bench.desk, seat, bench.name)
        if (hindrance := check_trace(climb.hindrance)) is not None:
            yield hindrance
            return
        reader = CallReader(seat.listing)
        for test, case, ran in run_cases(bench, climb):
            # If a call raises, the case ends: calls that were queued after this call are not made.
            followed = zip(calls_of(ran), watched.take(), strict=False)
            calls = [
                replace(
                    reader.trace(asked),
                    steps=trail.steps(),
                    steps_left_out=len(trail.left_out),
                    prints=printed,
                )
                for asked, (trail, printed) in followed
            ]
            yield case_trace(test, case, ran, calls)
            if watched.stopped:
                return
        if (used := check_trace(climb.forbidden())) is not None:
            yield used


@dataclass
class Watched:
    """Traces the calls of a case, and captures their prints."""

    answers: Loaded
    stopped: bool = False  # whether Ctrl-C ended the last call
    _followed: list[tuple[Trail, str]] = field(default_factory=list)

    def do(self, call: wire.Call, do: Do) -> wire.Outcome:
        """Make a call, and trace it if it runs the student's answer for a test."""
        trail = Trail(self.answers.files)
        with unseen_prints() as prints:
            if not runs_answer(call):
                return do()
            try:
                with trail.following():
                    outcome = do()
            finally:
                self._followed.append((trail, prints.take()))
        if isinstance(outcome, wire.Raised):
            self.stopped = outcome.kind == "KeyboardInterrupt"
        return outcome

    def take(self) -> list[tuple[Trail, str]]:
        """The trail and the prints of each call since `take` was last called."""
        followed, self._followed = self._followed, []
        return followed


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """A statement's text as it is shown, and the attributes that the statement may set."""

    line: int
    text: str
    attributes: Sequence[tuple[str, str]] = ()  # ("self", "linear") for self.linear = …
    returns: bool = False
    loops: bool = False


def _statements(file: SourceFile) -> Mapping[int, _Statement]:
    """The innermost statement on each line; a long statement is found under each of its lines."""
    found: dict[int, _Statement] = {}
    for top in file.statements:
        for node in ast.walk(top.node):  # inner statements come later, and replace outer ones
            if not isinstance(node, ast.stmt):
                continue
            end = node.end_lineno or node.lineno
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            if body:
                inner = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
                end = max(node.lineno, inner.lineno - 1)
            text = " ".join(line.strip() for line in file.lines[node.lineno - 1 : end])
            statement = _Statement(
                node.lineno,
                text.strip(),
                tuple(_attributes(node)),
                isinstance(node, ast.Return),
                isinstance(node, LOOPS),
            )
            found |= dict.fromkeys(range(node.lineno, end + 1), statement)
    return found


def _attributes(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if not isinstance(node, BINDINGS):
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for part in ast.walk(target):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                yield part.value.id, part.attr


def _attribute(holder: Any, name: str) -> Any:
    """An attribute's value, read without running the object's code; raises KeyError if missing."""
    kept = object.__getattribute__(holder, "__dict__")
    for slot in ("_parameters", "_buffers", "_modules"):
        if issubclass(type(holder), nn.Module) and name in (kept.get(slot) or {}):
            return kept[slot][name]
    return kept[name]


# --- following -----------------------------------------------------------------------------------


def _with_version(value: Any) -> tuple[Any, int | None]:
    """A value and, if it is a tensor, the number of times that it was changed in place."""
    if not issubclass(type(value), Tensor):
        return value, None
    with torch._C.DisableTorchFunction():
        try:
            return value, value._version
        except Exception:  # an inference tensor has no version
            return value, None


@dataclass
class _Visited:
    """A statement that has run, and the number of times."""

    statement: _Statement
    file: SourceFile
    depth: int
    bound: list[NamedValue] | None = None  # None until the statement has ended for the first time
    times: int = 0


@dataclass
class Trail:
    """The student's statements that ran in one call, in the order in which they first ran."""

    files: Sequence[SourceFile]
    visited: dict[tuple[str, int], _Visited] = field(default_factory=dict)
    left_out: set[tuple[str, int]] = field(default_factory=set)
    depth: int = 0

    def __post_init__(self) -> None:
        self._files = {file.code_name: (file, _statements(file)) for file in self.files}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Trace the student's code in this thread, inside the ``with`` block."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def steps(self) -> tuple[Step, ...]:
        """The statements that have run, ready to be shown."""
        steps = []
        for one in self.visited.values():
            place = one.file.place(one.statement.line)
            times = 1 if one.statement.loops else one.times
            steps.append(
                Step(
                    place.within,
                    place.line,
                    one.statement.text,
                    one.depth,
                    tuple(one.bound or ()),
                    times,
                )
            )
        return tuple(steps)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> _Walk | None:
        """See sys.settrace: called for every frame, torch's included, so this must be fast."""
        del event, arg
        code = frame.f_code
        if code.co_filename not in self._files or not is_function(code):
            return None
        return _Walk(self, frame)

    def visit(self, frame: FrameType, line: int) -> _Visited | None:
        """Record that a statement begins; None if `MAX_STEPS` statements are recorded already."""
        name = frame.f_code.co_filename
        file, statements = self._files[name]
        statement = statements.get(line) or _Statement(line, file.place(line).text)
        key = name, statement.line
        if key not in self.visited:
            if len(self.visited) >= MAX_STEPS:
                self.left_out.add(key)
                return None
            self.visited[key] = _Visited(statement, file, max(self.depth - 1, 0))
        self.visited[key].times += 1
        return self.visited[key]

    def line_of(self, frame: FrameType) -> int:
        """The first line of the statement that the frame runs now."""
        statements = self._files[frame.f_code.co_filename][1]
        statement = statements.get(frame.f_lineno)
        return statement.line if statement else frame.f_lineno


class _Walk:
    """Traces a single frame of the student's code, until it returns."""

    def __init__(self, trail: Trail, frame: FrameType) -> None:
        self._trail = trail
        self._line = 0
        self._on: _Visited | None = None
        self._raising = False
        self._known = {name: _with_version(value) for name, value in frame.f_locals.items()}
        trail.depth += 1
        if trail.depth > 1:  # the arguments of the outermost call are already in its CallTrace
            head = trail.visit(frame, frame.f_code.co_firstlineno)
            if head is not None and head.bound is None:
                head.bound = [
                    NamedValue(name, described(value))
                    for name, (value, _) in self._known.items()
                    if name not in ("self", "__class__")
                ]

    def __call__(self, frame: FrameType, event: str, arg: Any) -> _Walk:
        """See sys.settrace."""
        if event == "line":
            line = self._trail.line_of(frame)
            self._raising = False
            if line != self._line:  # if equal, the same statement goes on
                self._ended(frame)
                self._line, self._on = line, self._trail.visit(frame, line)
        elif event == "exception":
            self._raising = True
        elif event == "return":
            on = self._on
            first = on is not None and on.bound is None
            self._ended(frame)
            if on is not None and on.bound is not None and first and on.statement.returns:
                on.bound += [NamedValue("→", described(arg))] if not self._raising else []
            self._trail.depth -= 1
        return self

    def _ended(self, frame: FrameType) -> None:
        """Record the values that the last statement assigned or changed, the first time it ends."""
        now = {name: _with_version(value) for name, value in frame.f_locals.items()}
        before, self._known = self._known, now
        if self._on is None or self._on.bound is not None:
            return
        self._on.bound = [
            NamedValue(name, described(value))
            for name, (value, version) in now.items()
            if name not in before or before[name][0] is not value or before[name][1] != version
        ]
        for holder, name in self._on.statement.attributes:
            if holder in now and not self._raising:
                try:
                    value = _attribute(now[holder][0], name)
                except (KeyError, AttributeError):
                    continue  # a property or a slot
                self._on.bound.append(NamedValue(f"{holder}.{name}", described(value)))


def is_function(code: CodeType) -> bool:
    """Whether code is a function's; a comprehension is part of its line, and not a function."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return False
    return code.co_name[0] != "<" or code.co_name == "<lambda>"
