"""Examples: the author's call ``softmax_rows(torch.randn(2, 5))``, and that of a statement."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.author.scaffold.kinds import as_argument
from grader.author.scaffold.source import methods
from grader.author.scaffold.trial import (
    Case,
    Key,
    Refused,
    Trial,
    differs,
    names_of_sizes,
    shape_of,
    specs_drawn,
    whole_of,
)
from grader.course.tensors import Make
from grader.records.faults import CallError

HELPERS = {"torch": torch, "nn": nn, "F": nn.functional, "np": np, "math": math}


def example_values(
    text: str, name: str, names: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """The values of the parameters in an example call, by function and parameter.

    A module's call has two parts: ``Scale(3)(torch.randn(2, 3))``. `names` are the names that the
    reference's file defines. The result is empty without a text. Raises `CallError` for a text that
    is no such call.
    """
    if not text:
        return {}
    form = f"{name}(…)(…)" if len(methods(names[name])) > 1 else f"{name}(…)"
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise CallError(f"--example {text!r} is no Python: {error.msg}") from None
    calls: list[ast.Call] = []
    while isinstance(call, ast.Call):
        calls.insert(0, call)
        call = call.func
    functions = methods(names[name])
    if not (isinstance(call, ast.Name) and call.id == name) or len(calls) != len(functions):
        raise CallError(f"--example {text!r} is no call of {name}: write {form}")
    torch.manual_seed(0)
    return {
        called: _bound(function, one, {**HELPERS, **names}, text)
        for (called, function), one in zip(functions, calls, strict=True)
    }


def _bound(function: Any, call: ast.Call, names: dict[str, Any], text: str) -> Mapping[str, Any]:
    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "--example", "eval"), names)

    signature = inspect.signature(function)
    try:
        given = [value(argument) for argument in call.args]
        by_name = {str(keyword.arg): value(keyword.value) for keyword in call.keywords}
        own = [None] if "self" in signature.parameters else []
        bound = signature.bind(*own, *given, **by_name).arguments
    except Exception as error:
        raise CallError(f"--example {text!r} fails: {type(error).__name__}: {error}") from None
    return {name: one for name, one in bound.items() if name != "self"}


# --- the example of a statement ------------------------------------------------------------------

WEIGHT = 0.5  # of all weights of a module
MOST_CASES = 40
STARTS = 20  # other round numbers that are tried for a case
STRIDE = 3  # between the round numbers of an argument and those of the next
HARD_TO_READ = ("e-", "e+", "inf", "nan", "...")  # marks in the text of a result


@dataclass(frozen=True)
class Example:
    """A call with round numbers, and its result."""

    case: Case
    arguments: Mapping[Key, Any]
    result: Any


def find_example(trial: Trial, wrong: Sequence[Any] = ()) -> Example | None:
    """A small call with round numbers whose result is easily read; None if none is found.

    All definitions in `wrong` give another result for it.
    """
    if any(parameter.kind == "model" for _, parameter in trial.parameters):
        return None
    cases = itertools.islice(_small_cases(trial), MOST_CASES)
    for case, start in itertools.product(cases, range(STARTS if wrong else 1)):
        arguments = trial.arguments(case, Make("example", trial.name, ""))
        for key, parameter in trial.parameters:
            rounds = []
            for spec, kind in zip(specs_drawn(parameter), trial.kinds.get(key, ()), strict=False):
                drawn = kind.round(shape_of(spec, case.sizes), case.sizes, start)
                narrow = drawn.is_floating_point() and not spec.array
                rounds.append(as_argument(spec, drawn.float() if narrow else drawn))
                start += STRIDE
            if rounds:
                arguments[key] = whole_of(parameter, rounds, arguments[key])
        try:
            result = trial.call(arguments, weights=_constant)
        except Refused:
            continue
        readable = not any(mark in repr(result) for mark in HARD_TO_READ)
        if readable and all(differs(trial, one, arguments, _constant) for one in wrong):
            return Example(case, arguments, result)
    return None


def _small_cases(trial: Trial) -> Iterator[Case]:
    names = names_of_sizes(trial.contract)
    numbers = range(2, 3 + len(names))
    for sizes in sorted(itertools.permutations(numbers, len(names)), key=sum):
        case = Case(dict(zip(names, sizes, strict=True)))
        if trial.takes(case):
            yield case
    yield from trial.cases


def _constant(module: nn.Module) -> None:
    for weight in module.parameters():
        nn.init.constant_(weight.requires_grad_(False), WEIGHT)
