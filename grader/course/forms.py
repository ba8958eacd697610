"""The form of a value: what an annotation of a reference promises about an argument or a result.

The counterpart of `grader.wire.payload`, which says how each kind of value travels. A form is plain
data, compiled once from an annotation. Each kind of value has a case in `form_of` (its annotation),
in `settled` (the check of a value) and in `wanted` (its name in messages).
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from grader.records.rows import counted
from grader.wire import Odd
from grader.wire.payload import DTYPES, INSTEAD, SENDABLE, Record, fields_of

# The kinds of elements with the dtype that a result must have; a name of a dtype is a kind, too.
FLOAT, BOOL, INT, ANY = "float", "bool", "int", "any"

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Dimension:
    """An axis of a tensor: a name, an expression such as ``num_heads*head_dim``, or ``...``."""

    label: str
    expression: str

    @property
    def variadic(self) -> bool:
        """Whether the dimension is ``...``, which matches any number of leading dimensions."""
        return self.label == "..."

    @property
    def noun(self) -> str:
        """The name in texts: ``runs`` for ``_runs``."""
        return self.label.removeprefix("_") or "any"

    @property
    def free(self) -> bool:
        """Whether the dimension may have any size, which depends on values: ``_runs``."""
        return self.label.startswith("_")


class TensorSpec(msgspec.Struct, frozen=True, tag="tensor"):
    """The form of a tensor or a NumPy array: its dimensions, and the kind of its elements.

    A result of the kind `FLOAT` has the dtype of the inputs, one of the kind `INT` has int64, and
    one of the kind `ANY` has any dtype. Any other kind is the name of a dtype, such as ``float64``.
    """

    dimensions: tuple[Dimension, ...] | None  # None: any shape
    kind: str
    array: bool = False

    @property
    def whole(self) -> bool:
        """Whether the elements are integers."""
        return self.kind.removeprefix("u").startswith(INT)

    def __str__(self) -> str:
        labels = [dimension.noun for dimension in self.dimensions or ()]
        return "(" + ", ".join(labels) + ")" if self.dimensions is not None else ""


class ValueSpec(msgspec.Struct, frozen=True, tag="value"):
    """The form of any other value; `parts` are the forms of the values inside.

    A tuple has a form for each item; a list, a set and batches (of which a function gets a
    generator) have one for all items, and a dictionary has one for the keys and one for the values.
    A dataclass has a form for each field. ``either`` allows each of its parts.
    """

    kind: Literal[
        "anything", "float", "int", "bool", "string", "None", "model",
        "batches", "tuple", "list", "set", "dictionary", "dataclass", "either",
    ]  # fmt: skip
    parts: tuple[Form, ...] = ()
    name: str = ""  # of a dataclass
    fields: tuple[str, ...] = ()  # of a dataclass


Form = TensorSpec | ValueSpec
ANYTHING, NOTHING = ValueSpec("anything"), ValueSpec("None")


class Unsupported(Exception):
    """An annotation that no form describes; the text says what to use."""


# --- annotations ---------------------------------------------------------------------------------

_SINGLE: dict[Any, Form] = {
    Any: ANYTHING, object: ANYTHING, None: NOTHING, type(None): NOTHING,
    float: ValueSpec("float"), int: ValueSpec("int"), bool: ValueSpec("bool"),
    str: ValueSpec("string"),
    Tensor: TensorSpec(None, ANY), np.ndarray: TensorSpec(None, ANY, array=True),
}  # fmt: skip
_LISTS = (list, collections.abc.Sequence)
_GENERATORS = (collections.abc.Iterable, collections.abc.Iterator)
_SETS = (set, frozenset)
_DICTIONARIES = (dict, collections.abc.Mapping)
_PLAIN = ("string", "int", "float", "bool", "None", "anything")


def form_of(hint: Any) -> Form:
    """The form that an annotation says; raises `Unsupported`."""
    if (single := _single(hint)) is not None:
        return single
    if hasattr(hint, "dim_str"):
        return _tensor(hint)
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return ValueSpec("either", tuple(map(form_of, arguments)))
    if origin is np.ndarray:  # numpy.typing.NDArray[np.float64]
        names = [argument.__name__ for argument in typing.get_args(arguments[-1])]
        if names and names[0] in DTYPES:
            return TensorSpec(None, names[0], array=True)
    if isinstance(hint, type) and issubclass(hint, nn.Module):
        return ValueSpec("model")
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass(hint)
    if origin in _GENERATORS:
        return ValueSpec("batches", (_inside(arguments[0]) if arguments else ANYTHING,))
    if origin is tuple and arguments and arguments[-1] is not ...:
        return ValueSpec("tuple", tuple(map(_inside, arguments)))
    if origin is tuple or origin in _LISTS:  # tuple[int, ...] too
        return ValueSpec("list", (_inside(arguments[0]) if arguments else ANYTHING,))
    if origin in _SETS:
        return ValueSpec("set", (_key_of(hint, arguments[0]) if arguments else ANYTHING,))
    if origin in _DICTIONARIES:
        keys, values = arguments or (Any, Any)
        return ValueSpec("dictionary", (_key_of(hint, keys), _inside(values)))
    shown = _shown(hint)
    use = INSTEAD.get(shown, SENDABLE)
    raise Unsupported(f"{shown} cannot be sent to a student's code: use {use}")


def _inside(hint: Any) -> Form:
    """The form of a part of a value."""
    form = form_of(hint)
    if isinstance(form, ValueSpec) and form.kind in ("model", "batches"):
        raise Unsupported(f"{_shown(hint)} inside another value: make it a parameter of its own")
    return form


def _dataclass(hint: type) -> Form:
    """The form that the annotations of a dataclass's fields say."""
    fields = dataclasses.fields(hint)
    hints = typing.get_type_hints(hint)
    for field in fields:
        if not field.init:
            raise Unsupported(f"{hint.__name__}: {field.name} has init=False: make it a property")
    try:
        parts = tuple(_inside(hints[field.name]) for field in fields)
    except RecursionError:
        raise Unsupported(f"{hint.__name__} holds itself: use lists or tuples") from None
    return ValueSpec("dataclass", parts, hint.__name__, tuple(field.name for field in fields))


def _single(hint: Any) -> Form | None:
    try:
        return _SINGLE.get(hint)
    except TypeError:  # not hashable
        return None


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


def _key_of(hint: Any, key: Any) -> Form:
    """The form of a key, which is plain: see `grader.wire.Entries`."""
    form = form_of(key)
    if not _is_plain(form):
        raise Unsupported(
            f"{_shown(hint)}: keys of a dict and items of a set are strings, numbers, bools, None "
            "or tuples of these"
        )
    return form


def _is_plain(form: Form) -> bool:
    if isinstance(form, TensorSpec):
        return False
    return form.kind in _PLAIN or (
        form.kind in ("tuple", "either") and all(map(_is_plain, form.parts))
    )


def _tensor(hint: Any) -> TensorSpec:
    """The form that a jaxtyping annotation says."""
    array = hint.array_type is np.ndarray
    if not array and not (
        isinstance(hint.array_type, type) and issubclass(hint.array_type, Tensor)
    ):
        raise Unsupported(f"{_shown(hint)}: use Tensor or np.ndarray inside the brackets")
    named = (text.partition("=") for text in hint.dim_str.split())
    dimensions = tuple(Dimension(label, expression or label) for label, _, expression in named)
    for dimension in dimensions:
        if not dimension.variadic and not _is_size(dimension.expression):
            raise Unsupported(
                f"{_shown(hint)}: {dimension.label} is no dimension: use names, numbers, sums, "
                "differences and products of these, //, and ... for any leading dimensions"
            )
    return TensorSpec(dimensions, _kind(hint), array)


OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)  # in the expression of a size


def _is_size(expression: str) -> bool:
    try:
        tree = parsed(expression)
    except SyntaxError:
        return False
    allowed = (ast.Name, ast.Load, ast.Constant, ast.BinOp, *OPERATORS)
    return all(isinstance(node, allowed) for node in ast.walk(tree))


@lru_cache(maxsize=1024)
def parsed(expression: str) -> ast.expr:
    """The syntax tree of a dimension's expression; raises `SyntaxError`."""
    return ast.parse(expression, mode="eval").body


# The annotations that allow several dtypes, by what the names of these dtypes begin with.
_FAMILIES = {FLOAT: ("float", "bfloat"), BOOL: ("bool",), INT: ("int",)}


def _kind(hint: Any) -> str:
    """The kind of elements that a jaxtyping annotation names."""
    dtypes = hint.dtypes if isinstance(hint.dtypes, tuple) else ()  # Shaped has no list of dtypes
    if len(dtypes) > 1:
        for kind, beginnings in _FAMILIES.items():
            if all(name.startswith(beginnings) for name in dtypes):
                return kind
    elif dtypes and dtypes[0] in DTYPES:
        return INT if dtypes[0] == "int64" else str(dtypes[0])
    raise Unsupported(
        f"{hint.__name__}: use Float, Int or Bool, or one dtype of torch, such as Float64"
    )


def sizes_in(spec: TensorSpec) -> Iterator[str]:
    """The names that a form's sizes are computed from; ``...`` for leading dimensions."""
    for dimension in spec.dimensions or ():
        if dimension.variadic:
            yield dimension.label
        elif not dimension.free:
            nodes = ast.walk(parsed(dimension.expression))
            yield from (node.id for node in nodes if isinstance(node, ast.Name))


def specs_of(form: Form) -> Iterator[TensorSpec]:
    """The forms of the tensors and arrays in a form, in order."""
    if isinstance(form, TensorSpec):
        yield form
    else:
        for part in form.parts:
            yield from specs_of(part)


# --- values --------------------------------------------------------------------------------------

# Steps from a value to one of its parts: a number for an item of a tuple or list, and else words.
Place = tuple[int | str, ...]
OnTensor = Callable[[Place, TensorSpec, Any], None]


@dataclass
class Misfit(Exception):
    """A value, or a part of it at `place`, has another form than `form`."""

    place: Place
    form: Form
    value: Any


def settled(
    form: Form, value: Any, on_tensor: OnTensor, place: Place = (), *, exact: bool = False
) -> Any:
    """Check a value against a form, and return it with numbers of Python where these are promised.

    A tensor or array without dimensions is accepted for a number, unless `exact`. `on_tensor` is
    called for each promised tensor and array, with its place. Raises `Misfit`.
    """
    if isinstance(form, TensorSpec):
        if not isinstance(value, np.ndarray if form.array else Tensor):
            raise Misfit(place, form, value)
        on_tensor(place, form, value)
        return value

    def inside(part: Form, value: Any, step: int | str) -> Any:
        return settled(part, value, on_tensor, (*place, step), exact=exact)

    parts = form.parts
    match form.kind:
        case "anything":
            if exact or next(oddities(value), None) is None:
                return value
        case "float" | "int" | "bool":
            number = value if exact else number_in(value)
            if type(number) is NUMBERS[form.kind]:
                return number
            if form.kind == "float" and type(number) is int:
                return float(number)
        case "string" if type(value) is str:
            return value
        case "None" if value is None:
            return value
        case "model" if isinstance(value, nn.Module):
            return value
        case "tuple" if isinstance(value, (tuple, list)) and len(value) == len(parts):
            items = [inside(*pair, n) for n, pair in enumerate(zip(parts, value, strict=True), 1)]
            return tuple(items) if isinstance(value, tuple) else items
        case "list" | "batches" if isinstance(value, (tuple, list)):
            items = [inside(parts[0], item, n) for n, item in enumerate(value, 1)]
            return tuple(items) if isinstance(value, tuple) else items
        case "set" if isinstance(value, (set, frozenset)):
            return {inside(parts[0], item, "an item") for item in value}
        case "dictionary" if isinstance(value, dict):
            keys, values = parts
            return {
                inside(keys, key, f"the key {_cut(key)}"): inside(
                    values, item, f"the entry {_cut(key)}"
                )
                for key, item in value.items()
            }
        case "dataclass":
            named = fields_of(value)
            if named is not None and (named[0], tuple(named[1])) == (form.name, form.fields):
                pairs = zip(parts, named[1].items(), strict=True)
                fields = {
                    name: inside(part, item, f"the field {name}") for part, (name, item) in pairs
                }
                return Record(form.name, fields)
        case "either":
            for part in parts:
                try:
                    settled(part, value, _ignore, place, exact=exact)
                except Misfit:
                    continue
                return settled(part, value, on_tensor, place, exact=exact)
            some = [part for part in parts if part != NOTHING]
            if len(some) == 1:  # tells which part of the value is wrong
                return settled(some[0], value, on_tensor, place, exact=exact)
    raise Misfit(place, form, value)


NUMBERS = {"float": float, "int": int, "bool": bool}


def _ignore(*_: object) -> None: ...


def number_in(value: Any) -> Any:
    """The number in a tensor or array without dimensions; any other value as it is."""
    if isinstance(value, Tensor) and not value.dim() and value.device.type != "meta":
        return value.item()
    return value.item() if isinstance(value, np.ndarray) and not value.ndim else value


def oddities(value: Any) -> Iterator[Odd]:
    """The parts of a result that could not be sent to this process."""
    if isinstance(value, Odd):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from oddities(item)
    elif isinstance(value, dict):
        yield from oddities(list(value.values()))
    elif type(value) is Record:
        yield from oddities(vars(value))


def dtype_of(value: Tensor | Array) -> torch.dtype | None:
    """The dtype of a tensor or array, as torch's; None for an array of another dtype."""
    return value.dtype if isinstance(value, Tensor) else DTYPES.get(value.dtype.name)


# --- words ---------------------------------------------------------------------------------------

_ARTICLES = {
    "int": "an int", "None": "None", "anything": "anything",
    "model": "a small_model or a table_model",
    "batches": "a list or a tuple here, of which the function gets a generator",
}  # fmt: skip


def wanted(form: Form) -> str:
    """The name of a form in a sentence: "a tensor", "2 tensors", "a list or None"."""
    if isinstance(form, TensorSpec):
        return "a NumPy array" if form.array else "a tensor"
    if form.kind == "tuple":
        tensors = all(isinstance(part, TensorSpec) and not part.array for part in form.parts)
        return counted(len(form.parts), "tensor" if tensors else "value")
    if form.kind == "either":
        return " or ".join(map(wanted, form.parts))
    if form.kind == "dataclass":
        return f"{form.name}({', '.join(form.fields)})"
    return _ARTICLES.get(form.kind, f"a {form.kind}")


def named_place(place: Place, whole: str, item: str) -> str:
    """A part of a value in words: ``result 2 of f``, ``item 1 of the entry 'loss' of f``.

    `whole` is the name of the value, and `item` the noun for a part of it.
    """
    if not place:
        return whole
    *before, last = place
    numbers = [last]
    while isinstance(last, int) and before and isinstance(before[-1], int):
        numbers.insert(0, before.pop())
    noun = item if not before else "item"
    step = last if isinstance(last, str) else f"{noun} {'.'.join(map(str, numbers))}"
    return f"{step} of {named_place(tuple(before), whole, item)}"


def describe(value: Any) -> str:
    """A short description of a value, for messages."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}"
    if isinstance(value, Odd):
        return value.what
    if isinstance(value, (tuple, list, set, frozenset)):
        return f"a {type(value).__name__} of {counted(len(value), 'item')}"
    if isinstance(value, dict):
        return f"a dictionary of {len(value)} entries"
    if (record := fields_of(value)) is not None:
        return f"{record[0]}({', '.join(record[1])})"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _cut(key: Any) -> str:
    shown = repr(key)
    return re.sub(r"\s+", " ", shown if len(shown) <= 40 else f"{shown[:40]}…")
