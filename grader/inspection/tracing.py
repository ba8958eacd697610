"""A student's own lines as they run in the public checks: which statements, what each one binds.

No operation is added to what runs, and nothing of a value is asked for but a tensor's shape and
dtype: an object's own methods are never called.
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

MAX_STEPS = 60  # statements that are shown of one call
BINDINGS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
LOOPS = (ast.For, ast.While)  # their head runs once more than they go round: no one counts that


def show(course: Course, name: str, folder: Path | None = None) -> Iterator[CaseTrace]:
    """Run the public tests of an exercise here, and say of each case what happened in it.

    Student code runs in this process: on their own computer only. Raises `CallError` for a name
    or a folder that is not right.
    """
    with open_bench(course, name, folder) as bench:
        yield from traced(bench)


def traced(bench: Bench) -> Iterator[CaseTrace]:
    """The same of the answer on this bench."""
    watched = Watched(Loaded())
    with bench.seat(InProcess(watched.answers, around=watched.do)) as seat:
        climb = Climb(bench.desk, seat, bench.name)
        if (hindrance := check_trace(climb.hindrance)) is not None:
            yield hindrance
            return
        reader = CallReader(seat.listing)
        for test, case, ran in run_cases(bench, climb):
            # Fewer were followed than asked for where one was lost, and those after it not made.
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
    """Follows the calls of a case, and takes what they print."""

    answers: Loaded
    stopped: bool = False  # by Ctrl-C
    _followed: list[tuple[Trail, str]] = field(default_factory=list)

    def do(self, call: wire.Call, do: Do) -> wire.Outcome:
        """One call, followed if a student would want to see it."""
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
        """The lines and the prints of each call since the last time."""
        followed, self._followed = self._followed, []
        return followed


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """A statement as it is shown, and what it may bind besides local names."""

    line: int
    text: str
    attributes: Sequence[tuple[str, str]] = ()  # ("self", "linear"): self.linear = …
    returns: bool = False
    loops: bool = False


def _statements(file: SourceFile) -> Mapping[int, _Statement]:
    """By line: the statement that stands there, of which one may take several lines."""
    found: dict[int, _Statement] = {}
    for top in file.statements:
        for node in ast.walk(top.node):  # inner ones come later, and take their lines
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
    """An attribute as it is kept, without asking the object; raises KeyError."""
    kept = object.__getattribute__(holder, "__dict__")
    for slot in ("_parameters", "_buffers", "_modules"):
        if issubclass(type(holder), nn.Module) and name in (kept.get(slot) or {}):
            return kept[slot][name]
    return kept[name]


# --- following -----------------------------------------------------------------------------------


def _state(value: Any) -> tuple[Any, int | None]:
    """A value, and how often it was changed in place."""
    if not issubclass(type(value), Tensor):
        return value, None
    with torch._C.DisableTorchFunction():
        try:
            return value, value._version
        except Exception:  # an inference tensor does not count
            return value, None


@dataclass
class _Trodden:
    """A statement that has run."""

    statement: _Statement
    file: SourceFile
    depth: int
    bound: list[NamedValue] | None = None  # None until it has ended for the first time
    times: int = 0


@dataclass
class Trail:
    """The statements of the student's that ran, in the order of their first time."""

    files: Sequence[SourceFile]
    trodden: dict[tuple[str, int], _Trodden] = field(default_factory=dict)
    left_out: set[tuple[str, int]] = field(default_factory=set)
    depth: int = 0

    def __post_init__(self) -> None:
        self._files = {file.code_name: (file, _statements(file)) for file in self.files}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow what runs in this thread."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def steps(self) -> tuple[Step, ...]:
        """What is known so far."""
        steps = []
        for one in self.trodden.values():
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
        """See sys.settrace: called for each frame of anyone, so it decides quickly."""
        del event, arg
        code = frame.f_code
        if code.co_filename not in self._files or not is_function(code):
            return None
        return _Walk(self, frame)

    def step_on(self, frame: FrameType, line: int) -> _Trodden | None:
        """A statement of a frame begins; None if it is not shown."""
        name = frame.f_code.co_filename
        file, statements = self._files[name]
        statement = statements.get(line) or _Statement(line, file.place(line).text)
        key = name, statement.line
        if key not in self.trodden:
            if len(self.trodden) >= MAX_STEPS:
                self.left_out.add(key)
                return None
            self.trodden[key] = _Trodden(statement, file, max(self.depth - 1, 0))
        self.trodden[key].times += 1
        return self.trodden[key]

    def line_of(self, frame: FrameType) -> int:
        """The first line of the statement at which a frame stands."""
        statements = self._files[frame.f_code.co_filename][1]
        statement = statements.get(frame.f_lineno)
        return statement.line if statement else frame.f_lineno


class _Walk:
    """One frame of the student's, from its first line to its end."""

    def __init__(self, trail: Trail, frame: FrameType) -> None:
        self._trail = trail
        self._line = 0
        self._on: _Trodden | None = None
        self._raising = False
        self._known = {name: _state(value) for name, value in frame.f_locals.items()}
        trail.depth += 1
        if trail.depth > 1:  # what the test itself passes is told already
            head = trail.step_on(frame, frame.f_code.co_firstlineno)
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
            if line != self._line:  # else it is another line of the same statement
                self._ended(frame)
                self._line, self._on = line, self._trail.step_on(frame, line)
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
        """The statement before is done: see what it bound."""
        now = {name: _state(value) for name, value in frame.f_locals.items()}
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
                    continue  # a property, or one in a slot
                self._on.bound.append(NamedValue(f"{holder}.{name}", described(value)))


def is_function(code: CodeType) -> bool:
    """Not a file, the body of a class, or a comprehension, which is part of its line."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return False
    return code.co_name[0] != "<" or code.co_name == "<lambda>"
