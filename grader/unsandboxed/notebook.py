"""A notebook's own definitions as a back end.

Nothing is isolated here: a notebook is the student's own process. What a check must not do is
disturb it. So an answer has a limited time and cannot end the kernel (`guard`), and no operation is
taken away for good: uses of forbidden ones are seen by the trace alone.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import random
import re
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal

import msgspec
import numpy as np
import torch

from grader import wire
from grader.guest.server import Guest, Prints
from grader.sandbox.session import Limits
from grader.unsandboxed.guard import GivenUp, Guard
from grader.unsandboxed.in_process import InProcess
from grader.wire.definitions import is_untouched
from grader.wire.source import DEFINITIONS, UNPARSABLE, lookups

KINDS: Mapping[Any, Literal["positional", "star", "keyword", "double_star"]] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "star",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "double_star",
}

STUB_ELSEWHERE = (
    "`raise NotImplementedError` in {where} is still the stub: define it in this notebook, or "
    "write it in the file"
)

CellName = Callable[[str], str | None]  # of a file name of code, what people call that cell


class Stopped(KeyboardInterrupt):
    """The student stopped a check while their code ran; `place` says where it was."""

    def __init__(self, place: wire.Place | None = None) -> None:
        super().__init__("the check was stopped")
        self.place = place


class Notebook:
    """The back end of a notebook's checks: each looks into the namespace of that moment."""

    in_cells = True

    def __init__(self) -> None:
        self._namespace: Mapping[str, Any] = {}
        self._cell_name: CellName = cell_name

    @property
    def layers(self) -> tuple[str, ...]:
        """Nothing keeps student code from anything."""
        return ()

    @contextmanager
    def looking_into(
        self, namespace: Mapping[str, Any], name_cell: CellName | None = None
    ) -> Iterator[None]:
        """Meanwhile, exercises are found in this namespace."""
        before = self._namespace, self._cell_name
        self._namespace, self._cell_name = namespace, name_cell or cell_name
        try:
            yield
        finally:
            self._namespace, self._cell_name = before

    def open(self, limits: Limits) -> InProcess:
        """A channel to the namespace; of `limits`, those of time are enforced."""
        del limits
        return _Cells(self._namespace, _Places(self._namespace, self._cell_name))


class _Cells(InProcess):
    """The channel to a namespace: each exchange has its time."""

    def __init__(self, namespace: Mapping[str, Any], places: _Places) -> None:
        prints = Prints()
        super().__init__(
            _NotebookGuest(namespace, prints, places),
            prints=prints,
            listing=partial(_listing, namespace, places),
        )
        self._places = places
        self._used = 0.0

    def exchange(self, request: wire.Request, cpu_seconds: float) -> wire.Reply:
        """See `Channel`; raises `StudentLost` for an answer that takes longer."""
        started = time.process_time()
        try:
            with Guard().watching(cpu_seconds, self._places.files):
                return super().exchange(request, cpu_seconds)
        finally:
            self._used += time.process_time() - started
        raise AssertionError  # a guard that lets an answer go without a reply says why

    def cpu_seconds(self) -> float:
        """CPU time of all exchanges so far."""
        return self._used


class _NotebookGuest(Guest):
    """A guest whose student writes in cells: it finds places in them, and can be stopped."""

    def __init__(self, namespace: Mapping[str, Any], prints: Prints, places: _Places) -> None:
        super().__init__(self._called, prints)
        self._namespace = namespace
        self._places = places

    def _called(self, name: str) -> Any:
        """What a name stands for; it may be from a file, and lines of that are told too."""
        value = self._namespace[name]
        code = _code_of(value)
        if code is not None:
            self._places.files.add(code.co_filename)
        return value

    def _here(self) -> wire.Place | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self._places.files:
                return self._places.at(frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return None

    def _raised(self, error: BaseException, uses: list[wire.Use]) -> wire.Raised:
        if isinstance(error, GivenUp):
            raise error
        frames = traceback.walk_tb(error.__traceback__)
        lines = [
            (frame.f_code.co_filename, line)
            for frame, line in frames
            if frame.f_code.co_filename in self._places.files
        ]
        place = self._places.at(*lines[-1]) if lines else None
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(place) from None
        raised = msgspec.structs.replace(super()._raised(error, uses), place=place)
        stub = self._stub_elsewhere(error)
        return msgspec.structs.replace(raised, text=stub) if place and stub else raised

    def _stub_elsewhere(self, error: BaseException) -> str:
        """What to say of a stub that was imported from a file, and called from a cell."""
        if not isinstance(error, NotImplementedError) or error.args:
            return ""
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        file = frame.f_code.co_filename
        if file in self._places.files or "site-packages" in Path(file).parts:
            return ""
        text = linecache.getline(file, line).strip()
        if not text.startswith("raise NotImplementedError"):
            return ""
        where = wire.clean(Path(file).name[: wire.MAX_NAME])
        return STUB_ELSEWHERE.format(where=f"{where} line {line}")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever a check sets or draws inside: afterwards all is as the notebook had it."""
    generators = torch.get_rng_state(), np.random.get_state(), random.getstate()
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(generators[0])
        np.random.set_state(generators[1])
        random.setstate(generators[2])


# --- places --------------------------------------------------------------------------------------


class _Places:
    """The files and cells in which a namespace's definitions stand."""

    def __init__(self, namespace: Mapping[str, Any], name_cell: CellName) -> None:
        self._name_cell = name_cell
        own = namespace.get("__name__")
        values = [v for v in namespace.values() if isinstance(v, (type, FunctionType))]
        codes = [_code_of(value) for value in values if value.__module__ == own]
        self.files = {code.co_filename for code in codes if code}

    def at(self, file: str, line: int) -> wire.Place:
        """A line as people would name it."""
        self.files.add(file)
        text = linecache.getline(file, line).strip()[:200]
        name = self._name_cell(file) or cell_name(file) or Path(file).name
        return wire.Place(wire.clean(name[: wire.MAX_NAME]), line, wire.clean(text))


def cell_name(file: str) -> str | None:
    """What a cell is called whose code is named as notebooks name it."""
    if numbered := re.match(r"<ipython-input-(\d+)-", file):
        return f"cell [{numbered[1]}]"
    return "your cell" if "ipykernel" in Path(file).parent.name or file.startswith("<") else None


def _code_of(value: Any) -> CodeType | None:
    """The code of a function, or of a class's first method."""
    if isinstance(value, type):
        methods = (_code_of(part) for part in vars(value).values() if inspect.isfunction(part))
        return min(filter(None, methods), key=lambda code: code.co_firstlineno, default=None)
    try:
        code = getattr(inspect.unwrap(value), "__code__", None)
    except ValueError:  # a function that wraps itself
        return None
    return code if isinstance(code, CodeType) else None


# --- what stands there ---------------------------------------------------------------------------


def _listing(namespace: Mapping[str, Any], places: _Places, opening: wire.Open) -> wire.Listing:
    exercises = {wanted.name for wanted in (*opening.wanted, *opening.others)}
    found = (_found(namespace, places, wanted.name) for wanted in opening.wanted)
    return wire.Listing(
        [
            msgspec.structs.replace(one, bases=_bases(namespace, one.name, exercises))
            if one.status == "found"
            else one
            for one in found
        ]
    )


def _bases(
    namespace: Mapping[str, Any], name: str, exercises: Collection[str]
) -> dict[str, wire.FoundStatus]:
    """The other exercises that an answer uses, itself or by way of what the notebook defines.

    Not those that a function from a file finds in that file: they are not the notebook's.
    """
    used: dict[str, wire.FoundStatus] = {}
    reached, pending = {id(namespace[name])}, [namespace[name]]
    while pending:
        for function in _functions(pending.pop()):
            for word in frozenset().union(*lookups(function.__code__)) - vars(builtins).keys():
                value = function.__globals__.get(word)
                if word in exercises and word != name and value is namespace.get(word):
                    code = _code_of(value)
                    stub = code is not None and _is_stub(word, code)
                    used[word] = "missing" if word not in namespace else "stub" if stub else "found"
                own = getattr(value, "__module__", None) == namespace.get("__name__")
                if own and id(value) not in reached:
                    reached.add(id(value))
                    pending.append(value)
    return used


def _functions(value: Any) -> list[FunctionType]:
    """A function, or a class's methods."""
    parts = vars(value).values() if isinstance(value, type) else [value]
    return [part for part in parts if isinstance(part, FunctionType)]


def _found(namespace: Mapping[str, Any], places: _Places, name: str) -> wire.Found:
    if name not in namespace:
        return wire.Found(name, "missing")
    value = namespace[name]
    code = _code_of(value)
    place = places.at(code.co_filename, code.co_firstlineno) if code else None
    if code is not None and _is_stub(name, code):
        return wire.Found(name, "stub", place=place)
    if isinstance(value, type):
        made, called = _method(value, "__init__"), _method(value, "forward")
        return wire.Found(name, "found", "class", place, made, called)
    if callable(value):
        return wire.Found(name, "found", "function", place, _arguments(value))
    return wire.Found(name, "found", "other", place)


def _is_stub(name: str, code: CodeType) -> bool:
    """Whether the text of a definition, where it is known, says nothing yet."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except UNPARSABLE:
        return False
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS) and node.name == name and _holds(node, code.co_firstlineno)
    ]
    return bool(around) and is_untouched(around[-1])


def _holds(node: ast.stmt, line: int) -> bool:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return first <= line <= (node.end_lineno or first)


def _arguments(function: Any) -> list[wire.Argument] | None:
    """A function's parameters, or None where Python cannot tell them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        wire.Argument(
            parameter.name[: wire.MAX_NAME],
            KINDS[parameter.kind],
            parameter.default is not parameter.empty
            or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD),
        )
        for parameter in parameters
    ]


def _method(of: type, name: str) -> list[wire.Argument] | None:
    """A method's parameters without ``self``."""
    arguments = _arguments(getattr(of, name, None))
    if arguments and arguments[0].kind == "positional":
        del arguments[0]
    return arguments
