"""Shape contracts: the arguments and results of an exercise, in named dimensions.

A contract is plain data, compiled once from the jaxtyping annotations of the reference. It is never
read from the file being graded. Messages name every dimension, to show a student *which* axis is
wrong.
"""

from __future__ import annotations

import ast
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grader.records.rows import counted
from grader.wire.models import TableModel, UnsuitableModel, layers_of

# The kinds of elements with the dtype that a result must have; a name of a dtype is a kind, too.
FLOAT, BOOL, INT = "float", "bool", "int"


class ContractBroken(AssertionError):
    """A student's result breaks the contract; the text is for the student."""


class ContractError(Exception):
    """The course is wrong: a reference lacks annotations, or a test's call breaks the contract."""


@dataclass(frozen=True)
class Dimension:
    """An axis of a tensor: a name, an expression such as ``num_heads*head_dim``, or ``...``."""

    label: str
    expression: str

    @property
    def variadic(self) -> bool:
        """Whether the dimension is ``...``, which matches any number of leading dimensions."""
        return self.label == "..."


@dataclass(frozen=True)
class TensorSpec:
    """The form of a tensor: its dimensions, and the kind of its elements.

    A result of the kind `FLOAT` has the dtype of the inputs, and one of the kind `INT` has int64.
    Any other kind is the name of a dtype, such as ``float64``.
    """

    dimensions: tuple[Dimension, ...]
    kind: str

    @property
    def whole(self) -> bool:
        """Whether the elements are integers."""
        return self.kind.removeprefix("u").startswith(INT)

    def __str__(self) -> str:
        return "(" + ", ".join(dimension.label for dimension in self.dimensions) + ")"


Tensors = tuple[TensorSpec, ...]  # several tensors in a tuple or a list
# The form of a result, or of a part of a result; None allows any value.
Nested = TensorSpec | None | tuple[TensorSpec | Tensors | None, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: a tensor, several tensors, an int, a model, or another value.

    Each tensor has a spec; a parameter has several specs if it takes a tuple of tensors, such as a
    cache of keys and values. An int may be the size of a dimension. A model is annotated as
    `nn.Module`, and consists of the layers of `grader.wire.models`. Batches are annotated as an
    `Iterable` or `Iterator`: a test passes a list, and the function gets a generator.
    """

    name: str
    kind: Literal["tensor", "tensors", "int", "model", "batches", "other"]
    specs: Tensors = ()
    optional: bool = False
    nullable: bool = False  # None may be passed instead of tensors


@dataclass(frozen=True)
class Signature:
    """A function's parameters in order, and the form of its result."""

    parameters: tuple[Parameter, ...]
    returns: Nested | Literal["mapping", "int", "nothing", "anything"] = "anything"


@dataclass(frozen=True)
class Contract:
    """The signature of a function, or those of a module's ``__init__`` and ``forward``."""

    name: str
    kind: Literal["function", "module"]
    call: Signature
    forward: Signature | None = None


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
        return Contract(name, "module", made, called)
    if inspect.isfunction(reference):
        return Contract(name, "function", _signature(name, reference, method=False))
    raise ContractError(f"{name}: a reference is a function or an nn.Module class")


def _signature(name: str, function: Callable[..., Any], method: bool) -> Signature:
    parameters = list(inspect.signature(function).parameters.values())[1 if method else 0 :]
    hints = typing.get_type_hints(function)
    try:
        found = tuple(_parameter(parameter, hints[parameter.name]) for parameter in parameters)
    except KeyError as error:
        raise ContractError(f"{name}: parameter {error} has no annotation") from None
    returned = hints.get("return")
    if inspect.isclass(returned) and issubclass(returned, nn.Module):
        raise ContractError(
            f"{name} returns a module, which cannot be sent: annotate None, and let the function "
            "change the model that it is given; a test then reads the weights of its own model"
        )
    return Signature(found, _returns(returned))


ITERABLES = (Iterable, Iterator)  # typing's own names for them have these as origin


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    optional = parameter.default is not inspect.Parameter.empty
    specified, nullable = _specified(hint)
    if isinstance(specified, TensorSpec):
        return Parameter(parameter.name, "tensor", (specified,), optional, nullable)
    if specified is not None:
        return Parameter(parameter.name, "tensors", specified, optional, nullable)
    if inspect.isclass(hint) and issubclass(hint, nn.Module):
        return Parameter(parameter.name, "model", (), optional)
    if hint in ITERABLES or typing.get_origin(hint) in ITERABLES:
        return Parameter(parameter.name, "batches", (), optional)
    return Parameter(parameter.name, "int" if hint is int else "other", (), optional)


def _specified(hint: Any) -> tuple[TensorSpec | Tensors | None, bool]:
    """The specs of the tensors in an annotation, if any, and whether the value may be None."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        found = [spec for part in typing.get_args(hint) if (spec := _specified(part)[0])]
        return (found[0] if len(found) == 1 else None), True
    if typing.get_origin(hint) is tuple:
        parts = [_specified(part)[0] for part in typing.get_args(hint)]
        single = [part for part in parts if isinstance(part, TensorSpec)]
        return (tuple(single) if len(single) == len(parts) else None), False
    if not hasattr(hint, "dim_str"):
        return None, False
    named = (text.partition("=") for text in hint.dim_str.split())
    dimensions = (Dimension(label, expression or label) for label, _, expression in named)
    return TensorSpec(tuple(dimensions), _kind(hint)), False


# The annotations that allow several dtypes, by what the names of these dtypes begin with.
_FAMILIES = {FLOAT: ("float", "bfloat"), BOOL: ("bool",), INT: ("int",)}


def _kind(hint: Any) -> str:
    """The kind of elements that a jaxtyping annotation names; else `ContractError`."""
    dtypes = hint.dtypes if isinstance(hint.dtypes, tuple) else ()  # Shaped has no list of dtypes
    if len(dtypes) > 1:
        for kind, beginnings in _FAMILIES.items():
            if all(name.startswith(beginnings) for name in dtypes):
                return kind
    elif dtypes and isinstance(getattr(torch, dtypes[0], None), torch.dtype):
        return INT if dtypes[0] == "int64" else str(dtypes[0])
    raise ContractError(
        f"{hint.__name__}: use Float, Int or Bool, or one dtype of torch, such as Float64"
    )


def _returns(hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        parts = [_specified(part)[0] for part in typing.get_args(hint)]
        return tuple(parts) if any(parts) else "anything"
    if typing.get_origin(hint) is dict:
        return "mapping"
    if hint is int:
        return "int"
    if hint is types.NoneType:
        return "nothing"
    return _specified(hint)[0] or "anything"


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
    pairs = list(zip(contract.call.parameters, made_with, strict=False))
    signature = contract.call if contract.kind == "function" else contract.forward
    assert signature is not None
    fits(signature, arguments, contract.name)
    pairs += zip(signature.parameters, arguments, strict=False)
    sizes: dict[str, int] = {}
    leading: tuple[int, ...] | None = None
    dtype = None
    device = "cpu"
    for parameter, value in pairs:
        if parameter.kind == "int" and type(value) is int:
            sizes[parameter.name] = value
        for spec, tensor in _with_specs(parameter, value):
            names = [d for d in spec.dimensions if not d.variadic]
            exact = len(names) == len(spec.dimensions)
            if len(names) > tensor.dim() or (exact and len(names) != tensor.dim()):
                raise ContractError(
                    f"{contract.name}: {parameter.name} has shape {tuple(tensor.shape)}"
                )
            if not exact and leading is None:
                leading = tuple(tensor.shape[: tensor.dim() - len(names)])
            for dimension, size in zip(reversed(names), reversed(tensor.shape), strict=False):
                known = sizes.setdefault(dimension.label, size)
                if known != size and spec.kind != BOOL:  # masks may broadcast
                    raise ContractError(
                        f"{contract.name}: {dimension.label} is {known} and also {size}"
                    )
            if tensor.is_floating_point() and dtype is None:
                dtype = tensor.dtype
            if tensor.device.type != "cpu":
                device = tensor.device.type
    for parameter in signature.parameters:
        # If an argument such as a cache is None, dimensions that no other argument has get size 0.
        for spec in parameter.specs if parameter.nullable else ():
            for dimension in spec.dimensions:
                sizes.setdefault(dimension.label, 0)
    return Binding(sizes, leading or (), dtype or weights, device)


def _with_specs(parameter: Parameter, value: Any) -> Iterator[tuple[TensorSpec, Tensor]]:
    """The tensors in an argument, each with its spec."""
    values = value if isinstance(value, (tuple, list)) else [value]
    for spec, tensor in zip(parameter.specs, values, strict=False):
        if isinstance(tensor, Tensor):
            yield spec, tensor


def fits(signature: Signature, arguments: Sequence[Any], name: str) -> None:
    """Raise `ContractError` if a test's arguments break the contract."""
    needed = [parameter for parameter in signature.parameters if not parameter.optional]
    if not len(needed) <= len(arguments) <= len(signature.parameters):
        wanted = counted(len(needed), "argument")
        raise ContractError(f"{name} takes {wanted}, got {len(arguments)}")
    for parameter, value in zip(signature.parameters, arguments, strict=False):
        if value is None and parameter.nullable:
            continue
        if parameter.kind == "tensor" and not isinstance(value, Tensor):
            raise ContractError(f"{name}: {parameter.name} is a tensor, not {describe(value)}")
        if parameter.kind == "tensors" and (
            not isinstance(value, (tuple, list))
            or [type(part) for part in value] != [Tensor] * len(parameter.specs)
        ):
            wanted = counted(len(parameter.specs), "tensor")
            raise ContractError(f"{name}: {parameter.name} is {wanted}, not {describe(value)}")
        if parameter.kind == "model":
            _require_suitable(f"{name}: {parameter.name}", value)
        if parameter.kind == "batches" and not isinstance(value, (tuple, list)):
            raise ContractError(
                f"{name}: {parameter.name} is a list or a tuple here, not {describe(value)}: the "
                "function gets a generator of its items"
            )
        if parameter.kind == "int" and type(value) is not int:
            raise ContractError(f"{name}: {parameter.name} is an int, not {describe(value)}")


def _require_suitable(what: str, model: Any) -> None:
    """Raise `ContractError` unless a model can be sent to a student's process."""
    if not isinstance(model, nn.Module):
        raise ContractError(f"{what} is a small_model or a table_model, not {describe(model)}")
    if not isinstance(model, TableModel):
        try:
            layers_of(model)
        except UnsuitableModel as error:
            raise ContractError(f"{what}: {error}") from None


def check_result(name: str, signature: Signature, binding: Binding, value: Any) -> None:
    """Raise `ContractBroken`, with a message for the student, if a result breaks the contract."""
    returns = signature.returns
    if not isinstance(returns, str):
        _check_nest(name, (), returns, binding, value)
    elif returns == "mapping" and not isinstance(value, dict):
        raise ContractBroken(f"{name} should return a dictionary, got {describe(value)}")
    elif returns == "int" and not _is_whole(value):
        got = _returned(value)
        if isinstance(value, Tensor):
            got += f" with {_dtype(value.dtype)} values"
        raise ContractBroken(f"{name} should return an int, got {got}")


def _is_whole(value: Any) -> bool:
    """Whether a value is an integer, or a tensor of integers without dimensions."""
    if isinstance(value, Tensor):
        whole = not (value.is_floating_point() or value.dtype == torch.bool)
        return whole and value.dim() == 0 and value.device.type != "meta"
    return type(value) is int


def _check_nest(
    name: str, place: tuple[int, ...], spec: Nested, binding: Binding, value: Any
) -> None:
    """Check a part of a result; `place` ``(2, 1)`` means the first part of the second part."""
    numbers = ".".join(map(str, place))
    what = f"result {numbers} of {name} should be" if place else f"{name} should return"
    if spec is None:
        if (odd := next(_oddities(value), None)) is not None:
            raise ContractBroken(
                f"result {numbers} of {name} holds {odd}, which cannot be kept for the next call: "
                "use tensors, numbers, strings and None, in tuples, lists and dictionaries"
            )
        return
    if isinstance(spec, TensorSpec):
        _check_tensor(what, spec, binding, value)
        return
    if not isinstance(value, (tuple, list)) or len(value) != len(spec):
        wanted = "tensors" if all(isinstance(part, TensorSpec) for part in spec) else "values"
        raise ContractBroken(f"{what} {len(spec)} {wanted}, got {_returned(value)}")
    for number, (inner, part) in enumerate(zip(spec, value, strict=True), start=1):
        _check_nest(name, (*place, number), inner, binding, part)


def _oddities(value: Any) -> Iterator[str]:
    """Descriptions of the values in a result that could not be sent to this process."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _oddities(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _oddities(item)
    elif hasattr(value, "what"):
        yield describe(value)


def _check_tensor(what: str, spec: TensorSpec, binding: Binding, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ContractBroken(f"{what} a tensor, got {_returned(value)}")
    labels, sizes = expected_shape(spec, binding)
    if tuple(value.shape) != sizes:
        raise ContractBroken(f"{what} {shape_message(labels, sizes, tuple(value.shape))}")
    kept = spec.kind == FLOAT and binding.dtype is not None
    floating = binding.dtype or torch.get_default_dtype()
    usual = {FLOAT: floating, BOOL: torch.bool, INT: torch.int64}
    expected = usual.get(spec.kind) or getattr(torch, spec.kind)
    if value.dtype != expected:
        raise ContractBroken(
            f"{what} {_dtype(expected)} values, got {_dtype(value.dtype)}"
            + (": the result should have the input's dtype" if kept else "")
        )
    if value.device.type != binding.device:
        raise ContractBroken(
            f"{what} a tensor on device {binding.device}, like the input, got {value.device.type}"
        )


def expected_shape(spec: TensorSpec, binding: Binding) -> tuple[list[str], tuple[int, ...]]:
    """The labels and sizes of the dimensions that a result must have."""
    labels: list[str] = []
    sizes: list[int] = []
    for dimension in spec.dimensions:
        if dimension.variadic:
            labels += ["..."] * len(binding.leading)
            sizes += binding.leading
        else:
            labels.append(dimension.label)
            sizes.append(_evaluate(dimension.expression, binding.sizes))
    return labels, tuple(sizes)


def shape_message(labels: Sequence[str], sizes: Sequence[int], got: Sequence[int]) -> str:
    """Describe a wrong shape, with a guess at the reason.

    For example, ``shape (batch=2, tokens=5), got (5, 2): batch and tokens look swapped``.
    """
    expected = ", ".join(
        str(size) if label == "..." else f"{label}={size}"
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


def describe(value: Any) -> str:
    """A short description of a value, for messages."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if hasattr(value, "what"):
        return str(value.what)
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {counted(len(value), 'item')}"
    if isinstance(value, dict):
        return f"a dictionary of {len(value)} entries"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _returned(value: Any) -> str:
    return describe(value) + (": is there a `return` at the end?" if value is None else "")


def _dtype(dtype: torch.dtype) -> str:
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

    return value(_parsed(expression))


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


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
