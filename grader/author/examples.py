"""Runs the examples that stubs' docstrings print (``>>>``), with the references."""

from __future__ import annotations

import ast
import doctest
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.course.course import Course
from grader.unsandboxed.in_process import undisturbed


@dataclass(frozen=True)
class WrongExample:
    """A line of an example that gives something else than the docstring prints."""

    place: str  # file and line
    source: str
    expected: str
    got: str

    @property
    def text(self) -> str:
        """A sentence about the example."""
        expected, got = self.expected or "nothing", self.got or "nothing"
        return f"the example `{self.source}` is wrong: expected {expected}, got {got}"

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def wrong_examples(
    course: Course, exercise: str, references: Mapping[str, Any]
) -> Iterator[WrongExample]:
    """The wrong lines of an exercise's examples; `references` are the course's definitions.

    An example may use ``torch``, ``nn``, ``np``, all exercises, and every other name of the
    reference's module. Spaces and line breaks of an output do not matter.
    """
    path = course.stub_file(course.unit_of[exercise])
    module = vars(sys.modules[references[exercise].__module__])
    scope = {**module, "torch": torch, "nn": nn, "np": np, **references}
    for node in ast.walk(_definition(path.read_text("utf-8"), exercise)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        text = ast.get_docstring(node, clean=False)
        if text is None:
            continue
        start = node.body[0].lineno
        try:
            example = doctest.DocTestParser().get_doctest(text, scope, exercise, None, start)
        except ValueError as error:  # such as a prompt without a space after it
            yield WrongExample(f"{path}:{start}", ">>>", "an example", str(error))
            continue
        runner = _Runner()
        with undisturbed():
            runner.run(example, out=lambda _: None)
        for one, got in runner.wrong:
            place = f"{path}:{start + one.lineno}"
            yield WrongExample(place, one.source.strip(), one.want.strip(), got.strip())


def _definition(text: str, name: str) -> ast.AST:
    """The definition of a name; an empty module if there is none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    return ast.Module([], [])


Out = Callable[[str], object]
Raised = tuple[type[BaseException], BaseException, TracebackType]


class _Runner(doctest.DocTestRunner):
    """Keeps each line that gives another output, with the output."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        self.wrong: list[tuple[doctest.Example, str]] = []

    def report_failure(
        self, out: Out, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        """See `doctest.DocTestRunner`."""
        del out, test
        self.wrong.append((example, got))

    def report_unexpected_exception(
        self, out: Out, test: doctest.DocTest, example: doctest.Example, exc_info: Raised
    ) -> None:
        """See `doctest.DocTestRunner`."""
        del out, test
        self.wrong.append((example, f"{exc_info[0].__name__}: {exc_info[1]}"))
