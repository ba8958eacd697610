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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal

import msgspec
import numpy as np
import torch

from grader import wire
from grader.guest.server import Guest, Prints
from grader.sandbox.budget import Left
from grader.sandbox.session import Limits
from grader.unsandboxed.guard import GivenUp, Guard
from grader.unsandboxed.in_process import Around, InProcess
from grader.wire.definitions import is_untouched
from grader.wire.source import DEFINITIONS, UNPARSABLE, SourceFile, lookups

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
WhyMissing = Callable[[str], str]  # of a name that is not defined: who defines it; or nothing


class Stopped(KeyboardInterrupt):
    """The student stopped a check while their code ran; `place` says where it was."""

    def __init__(self, place: wire.Place | None = None) -> None:
        super().__init__("the check was stopped")
        self.place = place


class Notebook:
    """The back end of a notebook's checks: each looks into the namespace of that moment."""

    in_cells = True

    def __init__(self) -> None:
        self._places = _Places({})

    @property
    def layers(self) -> tuple[str, ...]:
        """Nothing keeps student code from anything."""
        return ()

    @property
    def files(self) -> Sequence[SourceFile]:
        """The text of the cells, and files, in which answers stand."""
        return self._places.texts()

    @contextmanager
    def looking_into(
        self,
        namespace: dict[str, Any],
        name_cell: CellName | None = None,
        why_missing: WhyMissing | None = None,
    ) -> Iterator[None]:
        """Meanwhile, exercises are found in this namespace."""
        before = self._places
        self._places = _Places(namespace, name_cell, why_missing)
        try:
            yield
        finally:
            self._places = before

    def open(self, limits: Limits, around: Around | None = None) -> InProcess:
        """A channel to the namespace; of `limits`, those of time are enforced."""
        del limits
        return _Cells(self._places, around)


class _Cells(InProcess):
    """The channel to a namespace: each exchange has its time."""

    def __init__(self, places: _Places, around: Around | None) -> None:
        prints = Prints()
        super().__init__(
            _NotebookGuest(places, prints),
            prints=prints,
            listing=partial(_listing, places),
            around=around,
        )
        self._places = places
        self._used = 0.0

    def exchange(self, request: wire.Request, left: Left) -> wire.Reply:
        """See `Channel`; raises `StudentLost` for an answer that takes longer."""
        started = time.process_time()
        try:
            with Guard().watching(left.seconds, self._places.files, self._places.namespace):
                return super().exchange(request, left)
        finally:
            self._used += time.process_time() - started
        raise AssertionError  # a guard that lets an answer go without a reply says why

    def cpu_seconds(self) -> float:
        """CPU time of all exchanges so far."""
        return self._used


class _NotebookGuest(Guest):
    """A guest whose student writes in cells: it finds places in them, and can be stopped."""

    def __init__(self, places: _Places, prints: Prints) -> None:
        super().__init__(self._called, prints)
        self._places = places

    def _called(self, name: str) -> Any:
        """What a name stands for; it may be from a file, and lines of that are told too."""
        value = self._places.namespace[name]
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
        text = self._stub_elsewhere(error) or self._why_missing(error)
        return msgspec.structs.replace(raised, text=text) if place and text else raised

    def _why_missing(self, error: BaseException) -> str:
        """Who defines a name that this notebook's namespace does not have."""
        if type(error) is not NameError or not error.name or error.name in self._places.namespace:
            return ""
        return wire.clean(self._places.why_missing(error.name)[: wire.MAX_TEXT])

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

    def __init__(
        self,
        namespace: dict[str, Any],
        name_cell: CellName | None = None,
        why_missing: WhyMissing | None = None,
    ) -> None:
        self.namespace = namespace
        self.why_missing: WhyMissing = why_missing or "".format
        self._name_cell: CellName = name_cell or cell_name
        self._texts: dict[str, _CellText] = {}
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

    def texts(self) -> Sequence[SourceFile]:
        """All that is known so far, each parsed once."""
        for name in self.files - self._texts.keys():
            text = "".join(linecache.getlines(name))
            lines = text.split("\n")
            self._texts[name] = _CellText(
                "cell.ipynb", "cell", [text], lines, [1], compiled_as=name, place_at=self.at
            )
        return [*self._texts.values()]


@dataclass
class _CellText(SourceFile):
    """The text of a cell, with places in it as a notebook's own."""

    compiled_as: str = ""
    place_at: Callable[[str, int], wire.Place] = wire.Place

    @property
    def code_name(self) -> str:
        """See `SourceFile`."""
        return self.compiled_as

    def place(self, line: int) -> wire.Place:
        """See `SourceFile`."""
        return self.place_at(self.compiled_as, line)


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


def _listing(places: _Places, opening: wire.Open) -> wire.Listing:
    exercises = {wanted.name for wanted in (*opening.wanted, *opening.others)}
    found = (_found(places, wanted.name) for wanted in opening.wanted)
    return wire.Listing(
        [
            msgspec.structs.replace(one, bases=_bases(places.namespace, one.name, exercises))
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
                    stub = _is_stub(word, value)
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


def _is_stub(name: str, value: Any) -> bool:
    """Whether the text of a definition, where it is known, says nothing yet."""
    node = definition_of(name, value)
    return node is not None and is_untouched(node)


def found_in(namespace: dict[str, Any], name: str) -> wire.Found:
    """What a notebook has defined under an exercise's name."""
    return _found(_Places(namespace), name)


def _found(places: _Places, name: str) -> wire.Found:
    if name not in places.namespace:
        return wire.Found(name, "missing")
    value = places.namespace[name]
    code = _code_of(value)
    place = places.at(code.co_filename, code.co_firstlineno) if code else None
    if _is_stub(name, value):
        return wire.Found(name, "stub", place=place)
    if isinstance(value, type):
        made, called = _method(value, "__init__"), _method(value, "forward")
        return wire.Found(name, "found", "class", place, made, called)
    if callable(value):
        return wire.Found(name, "found", "function", place, _arguments(value))
    return wire.Found(name, "found", "other", place)


def definition_of(name: str, value: Any) -> ast.stmt | None:
    """The text of what stands under a name, where it is known."""
    code = _code_of(value)
    if code is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except UNPARSABLE:
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS) and node.name == name and _holds(node, code.co_firstlineno)
    ]
    return around[-1] if around else None


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
