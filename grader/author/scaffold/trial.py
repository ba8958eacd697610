"""Runs a reference on drawn arguments; the sizes in its contract."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.author.scaffold.kinds import Kind, as_argument, is_wide
from grader.author.scaffold.source import defaults_of, methods
from grader.course.contract import (
    Binding,
    Contract,
    ContractBroken,
    ContractError,
    Parameter,
    Signature,
    bind,
    check_result,
)
from grader.course.forms import NOTHING, TensorSpec, ValueSpec, dtype_of, sizes_in, specs_of
from grader.course.references import draw_weights
from grader.course.tensors import Make
from grader.course.tolerances import Tolerance
from grader.testing.values import as_tensor, assert_agrees
from grader.wire.payload import fields_of

OUTER = ("outer", "inner")  # the names of two sizes for ``...``
Key = tuple[str, str]  # a function (or a module's method) and a parameter


class Refused(Exception):
    """The reference raises for an input, or its result is of no use; the text says why."""


class NoNumbers(Refused):
    """The result has NaN, since the reference does not take such numbers."""


@dataclass(frozen=True)
class Case:
    """The sizes and the other values with which the reference is called."""

    sizes: Mapping[str, int]
    values: Mapping[Key, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A reference with inputs that it takes."""

    name: str
    definition: Any
    contract: Contract
    kinds: Mapping[Key, Sequence[Kind]]  # of each tensor in a parameter
    domains: Mapping[Key, Sequence[Any]]  # of parameters that are no tensors and no sizes
    cases: Sequence[Case] = ()
    evaluates: bool = False  # whether a module gives repeatable results in evaluation mode only

    @property
    def is_module(self) -> bool:
        """Whether the reference is a module."""
        return self.contract.forward is not None

    @property
    def signatures(self) -> Sequence[tuple[str, Signature]]:
        """The signatures of the functions that a test calls, in order."""
        if self.contract.forward is None:
            return ((self.name, self.contract.call),)
        return (("__init__", self.contract.call), ("forward", self.contract.forward))

    @property
    def parameters(self) -> Sequence[tuple[Key, Parameter]]:
        """All parameters with their keys."""
        return [
            ((function, parameter.name), parameter)
            for function, signature in self.signatures
            for parameter in signature.parameters
        ]

    def is_size(self, parameter: Parameter) -> bool:
        """Whether an int is the size of a dimension."""
        return parameter.kind == "int" and parameter.name in names_of_sizes(self.contract)

    def drawn_as(self, change: Callable[[Kind], Kind]) -> Trial:
        """The trial with another kind in place of each."""
        kinds = {key: tuple(map(change, some)) for key, some in self.kinds.items()}
        return replace(self, kinds=kinds)

    # --- running ---------------------------------------------------------------------------------

    def arguments(
        self, case: Case, make: Make, dtype: torch.dtype = torch.float32
    ) -> dict[Key, Any]:
        """Draw the arguments of a case."""
        found: dict[Key, Any] = {}
        for key, parameter in self.parameters:
            drawn = []
            for spec, kind in zip(specs_drawn(parameter), self.kinds.get(key, ()), strict=False):
                own = torch.float64 if is_wide(spec) else dtype
                shape = shape_of(spec, case.sizes)
                drawn.append(as_argument(spec, kind.draw(make, shape, case.sizes, own)))
            if drawn:
                found[key] = whole_of(parameter, drawn, self.domains.get(key, (None,))[0])
            elif self.is_size(parameter):
                found[key] = case.sizes[parameter.name]
            else:
                found[key] = copy.deepcopy(case.values.get(key, self.domains[key][0]))
        return found

    def call(
        self,
        arguments: Mapping[Key, Any],
        dtype: torch.dtype = torch.float32,
        weights: Callable[[nn.Module], object] | None = None,
    ) -> Any:
        """Call the reference; raise `Refused` if it raises, or gives NaN or nothing."""
        (first, call), *rest = self.signatures
        made = _given(arguments, first, call)
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings(action="ignore"):
                result = self.definition(*made)
                for function, signature in rest:
                    assert isinstance(result, nn.Module)
                    if weights is None:
                        draw_weights(result, Make("trial", self.name, "weights"), "weights")
                    else:
                        weights(result)
                    result.train(not self.evaluates).to(dtype)
                    result = result(*_given(arguments, function, signature))
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from None
        if any(bool(tensor.isnan().any()) for tensor in tensors_in(result)):
            raise NoNumbers("the result has NaN")
        if any(not tensor.numel() for tensor in tensors_in(result)):
            raise Refused("the result is empty")
        return result

    def run(self, case: Case, dtype: torch.dtype = torch.float32) -> Any:
        """Call the reference with the arguments of a case."""
        return self.call(self.arguments(case, Make("trial", self.name, str(case)), dtype), dtype)

    def takes(self, case: Case) -> bool:
        """Whether the reference takes a case, with a result that keeps the contract."""
        with suppress(Refused, ContractBroken, ContractError):
            arguments = self.arguments(case, Make("trial", self.name, str(case)))
            self.check(arguments, self.call(arguments))
            return True
        return False

    def check(self, arguments: Mapping[Key, Any], result: Any) -> None:
        """Raise `ContractBroken` or `ContractError` if a call breaks the contract.

        Raises `Refused` if a size of the result is a quotient with a remainder: other right answers
        may refuse such sizes.
        """
        lists = [
            [arguments[function, parameter.name] for parameter in signature.parameters]
            for function, signature in self.signatures
        ]
        made = lists[0] if self.is_module else ()
        weights = torch.float32 if self.is_module else None
        binding: Binding = bind(self.contract, lists[-1], made, weights)
        check_result(self.name, self.signatures[-1][1], binding, result)
        for spec in specs_of(self.signatures[-1][1].returns):
            for text in expressions(spec):
                if "//" in text and eval(text.replace("//", "/"), {}, dict(binding.sizes)) % 1:
                    raise Refused(f"{text} has a remainder")


# --- sizes ---------------------------------------------------------------------------------------


def names_of_sizes(contract: Contract) -> list[str]:
    """The names of the sizes in a contract that can be chosen."""
    found: dict[str, None] = {}
    for signature in (contract.call, contract.forward):
        if signature is None:
            continue
        specs = [spec for parameter in signature.parameters for spec in specs_drawn(parameter)]
        for spec in (*specs, *specs_of(signature.returns)):
            found |= dict.fromkeys(names_in(spec))
    return list(found)


def specs_drawn(parameter: Parameter) -> Sequence[TensorSpec]:
    """The forms of the tensors and arrays to draw for a parameter.

    These are one, those of a tuple, or some fields of a dataclass. All other values are those of
    the author's example.
    """
    some = parameter.specs
    if parameter.kind == "dataclass":
        fields = fields_drawn(parameter)
        return (
            some if len(fields) == len(some) and all(s.dimensions is not None for s in some) else ()
        )
    whole = isinstance(parameter.form, TensorSpec) or all(
        isinstance(part, TensorSpec) or part == NOTHING for part in parameter.form.parts
    )
    return some if whole and parameter.kind in ("tensor", "tuple") else ()


def fields_drawn(parameter: Parameter) -> Sequence[str]:
    """The fields of a dataclass that are tensors or arrays."""
    form = parameter.form
    assert isinstance(form, ValueSpec)
    pairs = zip(form.fields, form.parts, strict=True)
    return [field for field, part in pairs if isinstance(part, TensorSpec)]


def whole_of(parameter: Parameter, drawn: Sequence[Any], like: Any) -> Any:
    """A parameter's value of these tensors; for a dataclass, with the other fields of `like`."""
    if parameter.kind == "dataclass":
        fields = zip(fields_drawn(parameter), drawn, strict=True)
        return dataclasses.replace(like, **dict(fields))
    return drawn[0] if parameter.kind == "tensor" else tuple(drawn)


def names_in(spec: TensorSpec) -> Iterator[str]:
    """The names of the sizes in a tensor's shape."""
    for name in sizes_in(spec):
        yield from OUTER if name == "..." else (name,)


def shape_of(spec: TensorSpec, sizes: Mapping[str, int]) -> list[int]:
    """The sizes of a tensor's dimensions."""
    return [eval(text, {}, dict(sizes)) for text in expressions(spec)]


def expressions(spec: TensorSpec) -> list[str]:
    """The expression of each dimension's size; ``...`` becomes two sizes."""
    return [
        text
        for dimension in spec.dimensions or ()
        for text in (OUTER if dimension.variadic else [dimension.expression])
    ]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in a result, and its arrays as tensors."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, np.ndarray):
        if dtype_of(value) is not None:
            yield as_tensor(value)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif (record := fields_of(value)) is not None:
        yield from tensors_in(record[1])


def _given(arguments: Mapping[Key, Any], function: str, signature: Signature) -> list[Any]:
    """The arguments of a function; the last may be left to their defaults."""
    keys = [(function, parameter.name) for parameter in signature.parameters]
    return [arguments[key] for key in keys if key in arguments]


def _needed(trial: Trial, arguments: Mapping[Key, Any]) -> Mapping[Key, Any]:
    """The arguments up to the last that is not its default, as a test passes them."""
    needed = dict(arguments)
    functions = dict(methods(trial.definition))
    for function, signature in trial.signatures:
        defaults = defaults_of(functions[function])
        for parameter in reversed(signature.parameters):
            key = (function, parameter.name)
            if not parameter.optional or specs_drawn(parameter):
                break
            if needed[key] != defaults[parameter.name]:
                break
            del needed[key]
    return needed


def differs(
    trial: Trial,
    wrong: Any,
    arguments: Mapping[Key, Any],
    weights: Callable[[nn.Module], object] | None = None,
) -> bool:
    """Whether another definition gives another result than the reference, or raises."""
    arguments = _needed(trial, arguments)
    right = trial.call(copy.deepcopy(arguments), weights=weights)
    try:
        other = replace(trial, definition=wrong).call(copy.deepcopy(arguments), weights=weights)
    except Refused:
        return True
    return not same(other, right)


def same(one: Any, other: Any, within: Tolerance | None = None) -> bool:
    """Whether two values agree as in `assert_agrees`."""
    with suppress(AssertionError):
        assert_agrees(one, other, within=within)
        return True
    return False
