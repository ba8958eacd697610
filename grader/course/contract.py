"""Shape contracts: the arguments and results of an exercise, in named dimensions.

A contract is plain data, compiled once from the jaxtyping annotations of the reference. It is never
read from the file being graded. Messages name every dimension, to show a student *which* axis is
wrong.
"""

from __future__ import annotations

import ast
import inspect
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from grader.course.forms import (
    ANY,
    ANYTHING,
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    NUMBERS,
    Array,
    Dimension,
    Form,
    Misfit,
    Place,
    TensorSpec,
    Unsupported,
    ValueSpec,
    describe,
    dtype_of,
    form_of,
    named_place,
    oddities,
    parsed,
    settled,
    sizes_in,
    specs_of,
    wanted,
)
from grader.records.rows import counted
from grader.wire.models import TableModel, UnsuitableModel, layers_of
from grader.wire.payload import DTYPES, SENDABLE


class ContractBroken(AssertionError):
    """A student's result breaks the contract; the text is for the student."""


class ContractError(Exception):
    """The course is wrong: a reference lacks annotations, or a test's call breaks the contract."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, and the form of its argument.

    An int may be the size of a dimension. A model is annotated as `nn.Module` and comes from
    `grader.wire.models`.
    """

    name: str
    form: Form = ANYTHING
    optional: bool = False

    @property
    def kind(self) -> str:
        """The kind of value to pass, apart from None: ``tensor``, or a kind of `ValueSpec`."""
        parts = self.form.parts if self.nullable and isinstance(self.form, ValueSpec) else ()
        some = [part for part in parts if part != NOTHING]
        form = some[0] if len(some) == 1 else self.form
        return "tensor" if isinstance(form, TensorSpec) else form.kind

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """The forms of the tensors to pass, in order."""
        return tuple(specs_of(self.form))

    @property
    def nullable(self) -> bool:
        """Whether None may be passed in place of a value."""
        form = self.form
        return isinstance(form, ValueSpec) and form.kind == "either" and NOTHING in form.parts


@dataclass(frozen=True)
class Signature:
    """A function's parameters in order, and the form of its result."""

    parameters: tuple[Parameter, ...]
    returns: Form = ANYTHING

    @property
    def returned(self) -> TensorSpec | None:
        """The form of the first tensor of a result; None if a result has none."""
        return next(specs_of(self.returns), None)


@dataclass(frozen=True)
class Contract:
    """The signature of a function, or those of a module's ``__init__`` and ``forward``."""

    name: str
    kind: Literal["function", "module"]
    call: Signature
    forward: Signature | None = None

    @property
    def called(self) -> Signature:
        """What an input of a test is given to: a module's ``forward``, or the function."""
        return self.forward or self.call


# --- compiling -----------------------------------------------------------------------------------


def compile_contract(name: str, reference: Any) -> Contract:
    """Compile a reference's annotations; raise `ContractError` if an annotation is missing."""
    if inspect.isclass(reference) and issubclass(reference, nn.Module):
        made = _signature(name, reference.__init__, method=True)
        called = _signature(name, reference.forward, method=True)
        for parameter in (*made.parameters, *called.parameters):
            if parameter.kind in ("model", "batches"):
                raise ContractError(
                    f"{name}: {parameter.name} is for a function: a class takes neither models nor "
                    "generators"
                )
        _require_known_sizes(name, reference.forward, called, [made])
        return Contract(name, "module", made, called)
    if inspect.isfunction(reference):
        signature = _signature(name, reference, method=False)
        _require_known_sizes(name, reference, signature)
        return Contract(name, "function", signature)
    file = getattr(inspect.getmodule(reference), "__file__", None)
    where = f"{file}: {name}" if file else name
    raise ContractError(f"{where}: a reference is a function or an nn.Module class")


def _require_known_sizes(
    name: str, function: Callable[..., Any], signature: Signature, made: Sequence[Signature] = ()
) -> None:
    """Raise `ContractError` if a result has a size that no argument gives."""
    parameters = [one for some in (*made, signature) for one in some.parameters]
    known = {one.name for one in parameters if one.kind == INT}
    for spec in (spec for one in parameters for spec in one.specs):
        known |= {dimension.label for dimension in spec.dimensions or ()}
    for size in (size for spec in specs_of(signature.returns) for size in sizes_in(spec)):
        if size not in known:
            raise ContractError(
                f"{_place(function, name)}: the result: no argument has the size {size!r}; if it "
                f"depends on values, write _{size.strip('.')}"
            )


def _place(function: Callable[..., Any], name: str) -> str:
    """The file, the line and the name of a reference."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: {name}" if code else name


def _signature(name: str, function: Callable[..., Any], method: bool) -> Signature:
    parameters = list(inspect.signature(function).parameters.values())[1 if method else 0 :]
    where = _place(function, name)
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise ContractError(f"{where}: an annotation cannot be read: {error}") from None

    def form(part: str, hint: Any) -> Form:
        try:
            return form_of(hint)
        except Unsupported as error:
            raise ContractError(f"{where}: {part}: {error}") from None

    found = []
    for one in parameters:
        if one.name not in hints:
            raise ContractError(f"{where}: parameter '{one.name}' has no annotation")
        optional = one.default is not inspect.Parameter.empty
        part = f"parameter {one.name}"
        found.append(Parameter(one.name, form(part, hints[one.name]), optional))
    result = form("the result", hints.get("return", Any))
    if isinstance(result, ValueSpec) and result.kind in ("model", "batches"):
        raise ContractError(
            f"{where}: the result: modules and generators cannot be sent: return a list, or "
            "annotate None and let the function change the model that it is given; a test then "
            "reads the weights of its own model"
        )
    return Signature(tuple(found), result)


def dataclasses_in(contract: Contract) -> frozenset[str]:
    """The names of the dataclasses in a contract."""
    signatures = filter(None, (contract.call, contract.forward))
    forms = [
        form for one in signatures for form in (one.returns, *(p.form for p in one.parameters))
    ]
    names = set()
    while forms:
        form = forms.pop()
        if isinstance(form, ValueSpec):
            names |= {form.name} - {""}
            forms += form.parts
    return frozenset(names)


# --- checking ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Binding:
    """The sizes of the named dimensions in a call, and the dtype and device of its results."""

    sizes: Mapping[str, int]
    leading: tuple[int, ...]  # the sizes of the dimensions that ``...`` matches
    dtype: torch.dtype | None  # of inputs or weights; None if results have the default dtype
    device: str


def bind(
    contract: Contract,
    arguments: Sequence[Any],
    made_with: Sequence[Any] = (),
    weights: torch.dtype | None = None,
) -> Binding:
    """Determine the size of every named dimension from the arguments of a call.

    For a call of a module, `made_with` are the constructor's arguments. `weights` is the dtype of
    the module's parameters, which is also the results' dtype if all inputs are integers. The
    arguments come from a test; raises `ContractError` if they break the contract.
    """
    signature = contract.call if contract.kind == "function" else contract.forward
    assert signature is not None
    tensors = fits(contract.call, made_with, contract.name) if made_with else []
    tensors += fits(signature, arguments, contract.name)
    sizes: dict[str, int] = {}
    leading: tuple[int, ...] | None = None
    dtype = None
    device = "cpu"
    pairs = [*zip(contract.call.parameters, made_with, strict=False)]
    for parameter, value in (*pairs, *zip(signature.parameters, arguments, strict=False)):
        if parameter.kind == INT and type(value) is int:
            sizes[parameter.name] = value
    for name, spec, tensor in tensors:
        shape = tuple(tensor.shape)
        names = [d for d in spec.dimensions or () if not d.variadic]
        exact = spec.dimensions is not None and len(names) == len(spec.dimensions)
        if len(names) > len(shape) or (exact and len(names) != len(shape)):
            raise ContractError(f"{contract.name}: {name} has shape {shape}")
        if spec.dimensions and not exact and leading is None:
            leading = shape[: len(shape) - len(names)]
        for dimension, size in zip(reversed(names), reversed(shape), strict=False):
            if dimension.free:
                continue
            known = sizes.setdefault(dimension.label, size)
            if known != size and spec.kind != BOOL:  # masks may broadcast
                raise ContractError(
                    f"{contract.name}: {dimension.label} is {known} and also {size}"
                )
        held = dtype_of(tensor)
        if dtype is None and held is not None and held.is_floating_point:
            dtype = held
        if isinstance(tensor, Tensor) and tensor.device.type != "cpu":
            device = tensor.device.type
    for parameter in signature.parameters:
        # If an argument such as a cache is None, dimensions that no other argument has get size 0.
        for spec in parameter.specs if parameter.nullable else ():
            for dimension in spec.dimensions or ():
                sizes.setdefault(dimension.label, 0)
    return Binding(sizes, leading or (), dtype or weights, device)


def fits(
    signature: Signature, arguments: Sequence[Any], name: str
) -> list[tuple[str, TensorSpec, Tensor | Array]]:
    """The tensors in a test's arguments, each with its parameter's name and its form.

    Raises `ContractError` if the arguments break the contract.
    """
    needed = [parameter for parameter in signature.parameters if not parameter.optional]
    if not len(needed) <= len(arguments) <= len(signature.parameters):
        takes = counted(len(needed), "argument")
        raise ContractError(f"{name} takes {takes}, got {len(arguments)}")
    found: list[tuple[str, TensorSpec, Tensor | Array]] = []
    for parameter, value in zip(signature.parameters, arguments, strict=False):

        def note(_: Place, spec: TensorSpec, tensor: Any, to: str = parameter.name) -> None:
            found.append((to, spec, tensor))

        try:
            settled(parameter.form, value, note, exact=True)
        except Misfit as misfit:
            what = named_place(misfit.place, parameter.name, "item")
            told = f"is {wanted(misfit.form)}, not {describe(misfit.value)}"
            raise ContractError(f"{name}: {what} {told}") from None
        if parameter.kind == "model" and isinstance(value, nn.Module):
            _require_suitable(f"{name}: {parameter.name}", value)
    return found


def _require_suitable(what: str, model: nn.Module) -> None:
    """Raise `ContractError` unless a model can be sent to a student's process."""
    try:
        _ = isinstance(model, TableModel) or layers_of(model)
    except UnsuitableModel as error:
        raise ContractError(f"{what}: {error}") from None


def check_result(name: str, signature: Signature, binding: Binding, value: Any) -> Any:
    """Check a result, and return it, with numbers of Python where the contract promises numbers.

    Raises `ContractBroken`, with a message for the student, if the result breaks the contract.
    """

    def check(place: Place, spec: TensorSpec, tensor: Any) -> None:
        _check_tensor(_should(name, place), spec, binding, tensor)

    try:
        return settled(signature.returns, value, check)
    except Misfit as misfit:
        if misfit.form == ANYTHING:
            odd = next(oddities(misfit.value))
            what = named_place(misfit.place, name, "result") if misfit.place else f"{name}'s result"
            raise ContractBroken(
                f"{what} holds {odd.what}, which cannot leave your code: use {SENDABLE}"
            ) from None
        should = f"{_should(name, misfit.place)} {wanted(misfit.form)}"
        raise ContractBroken(f"{should}, got {_returned(misfit)}") from None


def _should(name: str, place: Place) -> str:
    return f"{named_place(place, name, 'result')} should {'be' if place else 'return'}"


def _returned(misfit: Misfit) -> str:
    """A value that breaks the contract, with a guess at the reason."""
    form, value = misfit.form, misfit.value
    told = describe(value)
    if value is None:
        return f"{told}: is there a `return` at the end?"
    if isinstance(form, TensorSpec):
        if form.array and isinstance(value, Tensor):
            return f"{told}: use NumPy, not torch, or convert it with .numpy()"
        if not form.array and isinstance(value, np.ndarray):
            return f"{told}: use torch, not NumPy, or convert it with torch.from_numpy"
    elif form.kind in NUMBERS and isinstance(value, Tensor | np.ndarray):
        told += f" with {_dtype(dtype_of(value))} values"
    return told


def _check_tensor(what: str, spec: TensorSpec, binding: Binding, value: Tensor | Array) -> None:
    if spec.dimensions is not None:
        shape = tuple(value.shape)
        labels, sizes = expected_shape(spec.dimensions, binding, shape)
        if shape != sizes:
            raise ContractBroken(f"{what} {shape_message(labels, sizes, shape)}")
    kept = spec.kind == FLOAT and binding.dtype is not None
    usual = torch.float64 if spec.array else torch.get_default_dtype()
    families = {FLOAT: binding.dtype or usual, BOOL: torch.bool, INT: torch.int64}
    got = dtype_of(value)
    expected = families.get(spec.kind) or (got if spec.kind == ANY else DTYPES[spec.kind])
    if got != expected:
        raise ContractBroken(
            f"{what} {_dtype(expected)} values, got {_dtype(got)}"
            + (": the result should have the input's dtype" if kept else "")
        )
    device = value.device.type if isinstance(value, Tensor) else "cpu"
    if device != binding.device:
        raise ContractBroken(
            f"{what} a tensor on device {binding.device}, like the input, got {device}"
        )


def expected_shape(
    dimensions: Sequence[Dimension], binding: Binding, got: Sequence[int] = ()
) -> tuple[list[str], tuple[int, ...]]:
    """The labels and sizes of the dimensions that a result of the shape `got` must have."""
    labels: list[str] = []
    sizes: list[int] = []
    for dimension in dimensions:
        if dimension.variadic:
            labels += ["..."] * len(binding.leading)
            sizes += binding.leading
        elif dimension.free:
            labels.append(dimension.label)  # with its underscore: it has no size to show
            sizes.append(got[len(sizes)] if len(sizes) < len(got) else 0)
        else:
            labels.append(dimension.label)
            sizes.append(_evaluate(dimension.expression, binding.sizes))
    return labels, tuple(sizes)


def shape_message(labels: Sequence[str], sizes: Sequence[int], got: Sequence[int]) -> str:
    """Describe a wrong shape, with a guess at the reason.

    For example, ``shape (batch=2, tokens=5), got (5, 2): batch and tokens look swapped``.
    """
    expected = ", ".join(
        str(size)
        if label == "..."
        else label[1:] or "any"
        if label[0] == "_"
        else f"{label}={size}"
        for label, size in zip(labels, sizes, strict=True)
    )
    actual = f"({', '.join(map(str, got))})"
    guess = _guess(labels, tuple(sizes), tuple(got))
    return f"shape ({expected}), got {actual}" + (f": {guess}" if guess else "")


def _guess(labels: Sequence[str], sizes: tuple[int, ...], got: tuple[int, ...]) -> str:
    named = [
        label if label != "..." else f"leading dimension {i + 1}" for i, label in enumerate(labels)
    ]
    if len(got) == len(sizes):
        wrong = [index for index in range(len(sizes)) if sizes[index] != got[index]]
        if len(wrong) == 2:
            first, second = wrong
            crossed = (got[first], got[second]) == (sizes[second], sizes[first])
            if crossed and sizes.count(got[first]) == sizes.count(got[second]) == 1:
                return f"{named[first]} and {named[second]} look swapped"
        if sorted(got) == sorted(sizes) and len(set(sizes)) == len(sizes):
            order = ", ".join(named[sizes.index(size)] for size in got)
            return f"the dimensions look like ({order})"
        if len(wrong) == 1:
            index = wrong[0]
            other = [n for n, s in zip(named, sizes, strict=True) if s == got[index]]
            hint = f", which is the size of {other[0]}" if len(other) == 1 else ""
            return f"{named[index]} should be {sizes[index]}, not {got[index]}{hint}"
        return ""
    if len(got) == len(sizes) - 1:
        gone = [i for i in range(len(sizes)) if sizes[:i] + sizes[i + 1 :] == got]
        return f"the {named[gone[0]]} dimension is missing" if gone else ""
    if len(got) > len(sizes):
        rest = list(got)
        for size in sizes:
            if size not in rest:
                return ""
            rest.remove(size)
        if all(size == 1 for size in rest):
            return "there is an extra dimension of size 1"
        return "there are more dimensions than the contract names"
    return ""


def _dtype(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.")


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def _evaluate(expression: str, sizes: Mapping[str, int]) -> int:
    def value(node: ast.expr) -> int:
        match node:
            case ast.Name(name) if name in sizes:
                return sizes[name]
            case ast.Constant(int() as number):
                return number
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
        raise ContractError(f"no size for {expression!r}; known are {', '.join(sizes)}")

    return value(parsed(expression))


# --- calling a student's function whose parameters have another order ----------------------------


def call_order(
    contract: Signature, names: Mapping[str, bool], aliases: Mapping[str, Sequence[str]]
) -> dict[str, int] | None:
    """Map the name of each of the student's parameters to the index of the contract's parameter.

    `names` are the student's parameters in order, each with whether it has a default. A name
    matches if it equals the contract's name or an alias of that name. Returns None if the names do
    not match, or match in the contract's order: then arguments are passed by position.
    """
    positions = {parameter.name: index for index, parameter in enumerate(contract.parameters)}
    spelled = {
        _plain(spelling): index
        for name, index in positions.items()
        for spelling in (*aliases.get(name, ()), name)
    }
    order = {name: spelled[_plain(name)] for name in names if _plain(name) in spelled}
    unknown = [name for name, optional in names.items() if name not in order and not optional]
    if unknown or len(set(order.values())) != len(order):
        return None
    in_order = list(order.values()) == list(range(len(order)))
    # A student's extra parameter with a default may come before the contract's parameters.
    return None if in_order and list(names)[: len(order)] == list(order) else order


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return name.replace("_", "").lower()
