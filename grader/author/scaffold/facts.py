"""Facts about a reference's results, found by running it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.author.scaffold.kinds import Normal
from grader.author.scaffold.trial import (
    Case,
    Key,
    Refused,
    Trial,
    specs_drawn,
    tensors_in,
)
from grader.course.forms import BOOL, TensorSpec
from grader.course.tensors import Make
from grader.course.tolerances import UNMOVED
from grader.testing.values import agree
from grader.wire import payload

LARGE = 1000.0
MUTABLE = (Tensor, np.ndarray, tuple, list, set, dict)


@dataclass(frozen=True)
class Facts:
    """Facts about a reference's results, found by running it."""

    float64: bool  # a float64 input gives a float64 result
    gradients: tuple[str, ...]  # the arguments to which gradients flow
    unchanged: bool  # no argument is changed in place
    batch: str  # the argument whose rows are a batch that does not mix; else ""
    ones: tuple[str, ...]  # the sizes that may be 1
    large: bool  # numbers of a thousand give finite results
    weights: tuple[str, ...]  # the names of a module's weights
    result: Any  # of the first case


def facts_of(trial: Trial) -> Facts:
    """Run the reference, and note what holds."""
    case = trial.cases[-1]
    return Facts(
        _keeps_float64(trial, case),
        tuple(_with_gradients(trial, case)),
        _leaves_unchanged(trial, case),
        _batch(trial, case),
        tuple(_ones(trial, case)),
        _bears_large(trial, case),
        tuple(_weights(trial, case)),
        trial.run(trial.cases[0]),
    )


def _floats(trial: Trial) -> list[Key]:
    """The called function's parameters that are one tensor of floats."""
    function = trial.signatures[-1][0]
    return [
        key
        for key, parameter in trial.parameters
        if key[0] == function
        and parameter.kind == "tensor"
        and not parameter.specs[0].whole
        and parameter.specs[0].kind != BOOL
    ]


def _keeps_float64(trial: Trial, case: Case) -> bool:
    with suppress(Refused):
        results = [*tensors_in(trial.run(case, torch.float64))]
        floats = [one for one in results if one.is_floating_point()]
        exact = bool(floats) and all(one.dtype == torch.float64 for one in floats)
        return exact and bool(_floats(trial) or trial.is_module)
    return False


def gradients_of(trial: Trial, case: Case) -> dict[str, Tensor | None]:
    """The gradient of each float argument; empty if the result has none."""
    arguments = trial.arguments(case, Make("trial", trial.name, "gradients"))
    tensors = [key for key in _floats(trial) if isinstance(arguments[key], Tensor)]
    leaves = {key: arguments[key].requires_grad_() for key in tensors}
    with suppress(Refused, RuntimeError):
        results = [one for one in tensors_in(trial.call(arguments)) if one.requires_grad]
        if results:
            torch.autograd.backward([one.square().sum() for one in results])
            return {name: leaf.grad for (_, name), leaf in leaves.items()}
    return {}


def _with_gradients(trial: Trial, case: Case) -> Iterator[str]:
    for name, gradient in gradients_of(trial, case).items():
        if gradient is not None and bool(gradient.isfinite().all() and gradient.any()):
            yield name


def _weights(trial: Trial, case: Case) -> Iterator[str]:
    if trial.is_module:
        arguments = trial.arguments(case, Make("trial", trial.name, "weights"))
        function, call = trial.signatures[0]
        module = trial.definition(*(arguments[function, one.name] for one in call.parameters))
        yield from (name for name, _ in module.named_parameters())


def _leaves_unchanged(trial: Trial, case: Case) -> bool:
    arguments = trial.arguments(case, Make("trial", trial.name, "unchanged"))
    given = [
        value
        for value in arguments.values()
        if isinstance(value, MUTABLE) or payload.fields_of(value) is not None
    ]
    before = [payload.pack_input(value) for value in given]
    with suppress(Refused):
        trial.call(arguments)
    return bool(given) and [payload.pack_input(value) for value in given] == before


def _batch(trial: Trial, case: Case) -> str:
    """The first argument of floats, if the rows of its first dimension do not mix; else ""."""
    floats, returns = _floats(trial), trial.signatures[-1][1].returns
    if not floats or not isinstance(returns, TensorSpec) or not returns.dimensions:
        return ""
    dimensions = dict(trial.parameters)[floats[0]].specs[0].dimensions or ()
    label = returns.dimensions[0].label
    shared = len(dimensions) > 1 and dimensions[0].label == label
    if not shared or case.sizes.get(label, 1) < 2:
        return ""
    with suppress(Refused):
        arguments = trial.arguments(case, Make("trial", trial.name, "batch"))
        before = trial.call(arguments)
        arguments[floats[0]] = copy.deepcopy(arguments[floats[0]])
        arguments[floats[0]][0] = arguments[floats[0]][0] * -2000.0 + 1.0
        after = trial.call(arguments)
        if agree(after[1:], before[1:], UNMOVED) and not agree(after[0], before[0], UNMOVED):
            return floats[0][1]
    return ""


def enlarged(trial: Trial) -> Trial:
    """The trial with numbers of a thousand in place of numbers of order one."""
    return trial.drawn_as(lambda kind: Normal(LARGE) if isinstance(kind, Normal) else kind)


def _bears_large(trial: Trial, case: Case) -> bool:
    """Whether the reference takes large numbers, and gives finite results for them."""
    if not any(isinstance(kind, Normal) for kinds in trial.kinds.values() for kind in kinds):
        return False
    with suppress(Refused):
        results = [*tensors_in(enlarged(trial).run(case))]
        return all(bool(one.isfinite().all()) for one in results)
    return False


def _ones(trial: Trial, case: Case) -> Iterator[str]:
    """The sizes of the arguments that may be 1, each tried with those before it.

    Not a size for which the result is all zeros, as a norm of one element: functions of a library
    may refuse it. If an int could count elements, only the first dimension of a tensor may be 1.
    """
    sizes = dict(case.sizes)
    counting = any(type(values[0]) is int and values[0] > 1 for values in trial.domains.values())
    specs = [spec for _, parameter in trial.parameters for spec in specs_drawn(parameter)]
    shapes = [spec.dimensions or () for spec in specs]
    first = {shape[0].label for shape in shapes if len(shape) > 1}
    inner = {one.label for shape in shapes for one in shape[1:]}
    for name in case.sizes:
        if counting and name not in first - inner:
            continue
        one = replace(case, sizes={**sizes, name: 1})
        if trial.takes(one) and not _is_zero(trial.run(one)):
            sizes[name] = 1
            yield name


def _is_zero(result: Any) -> bool:
    tensors = [*tensors_in(result)]
    return bool(tensors) and not any(bool(one.any()) for one in tensors)
