"""Turn values into messages and back.

Tensors come first, then NumPy arrays, then the values that are sent as they are, and nests of all
of these. `pack` and `unpack` name every kind of value. The counterpart of this module is
`grader.course.forms`, which says what a contract promises about each kind.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import Parameter

from grader.wire import (
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_ITEMS,
    MAX_NAME,
    MAX_REPLY,
    MAX_TEXT,
    Batches,
    Entries,
    Input,
    Items,
    ModelData,
    ModelState,
    Odd,
    TableModelData,
    TensorData,
    Value,
    WireError,
    clean,
)
from grader.wire.models import TableModel, build, layers_of, set_training, training_of

Array = np.ndarray[Any, np.dtype[Any]]

SENDABLE = (
    "tensors, NumPy arrays, numbers, strings, None, and tuples, lists, sets, dicts and dataclasses "
    "of these"
)
# What an author may use in place of some values that cannot be sent.
INSTEAD = {
    "bytes": "a list of ints", "bytearray": "a list of ints", "complex": "two floats",
    "range": "a list", "generator": "a list", "deque": "a list", "ndarray": "numbers or bools",
}  # fmt: skip


class Record:
    """The value of a dataclass, in a process that has not the class; its fields are attributes."""

    __slots__ = ("__dict__", "_class")

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        """`name` is that of the class."""
        self._class = name
        self.__dict__.update(fields)


def fields_of(value: Any) -> tuple[str, dict[str, Any]] | None:
    """The name of a dataclass, and the fields of this value of it; None for any other value."""
    if type(value) is Record:
        return value._class, dict(vars(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return type(value).__name__, {name: getattr(value, name) for name in names}
    return None


class Unsendable(Exception):
    """A value cannot be part of a message; the text describes the value."""


DTYPES: Mapping[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    )
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

# Bound before any student code runs, because a submission may replace functions of torch.
_detach = Tensor.detach
_clone = Tensor.clone  # torch marks the memory of a tensor that it has shown to NumPy
_as_subclass = Tensor.as_subclass
_resolve_neg = Tensor.resolve_neg
_view = Tensor.view
_numpy = Tensor.numpy
_cpu = Tensor.cpu
_ndarray, _generic, _text = np.ndarray, np.generic, np.str_
_as_ndarray, _as_type, _to_bytes = np.ndarray.view, np.ndarray.astype, np.ndarray.tobytes
_array_of, _item = np.array, np.generic.item
_no_subclass = torch._C.DisableTorchFunctionSubclass
_untraced = torch._C.DisableTorchFunction


def pack_tensor(tensor: Tensor, limit: int = MAX_REPLY, home: str = "cpu") -> TensorData:
    """Copy a tensor into bytes; raise `Unsendable` for a tensor that is not dense or too large.

    `home` is the type of device that this process uses; tensors are sent as CPU tensors.
    """
    if type(tensor) not in (Tensor, Parameter):
        # Read a subclass as a plain tensor, since its properties may run student code.
        try:
            with _no_subclass():
                tensor = _as_subclass(tensor, Tensor)
        except RuntimeError:
            raise Unsendable("a tensor of a kind without dense storage") from None
    with _untraced():  # if traced, reading the attributes would take longer than the copy
        if tensor.layout != torch.strided:
            raise Unsendable(f"a sparse tensor (layout {tensor.layout}); return a dense one")
        if tensor.dtype not in NAMES:
            raise Unsendable(f"a tensor of dtype {tensor.dtype}, which no exercise asks for")
        if tensor.dim() > MAX_DIMENSIONS:
            raise Unsendable(f"a tensor with {tensor.dim()} dimensions")
        shape = tuple(tensor.shape)
        name = NAMES[tensor.dtype]
        device = tensor.device.type
        if device == "meta":
            return TensorData(name, shape, b"", "meta")
        if device != home:
            raise Unsendable(f"a tensor on device {tensor.device}")
        # Compute the size from the shape: an expanded tensor needs little memory until it is dense.
        if math.prod(shape) * tensor.element_size() > limit:
            raise Unsendable(f"a tensor of shape {shape}: larger than {limit // 2**20} MB")
        dense = _resolve_neg(_cpu(_clone(_detach(tensor))))
        if tensor.dtype == torch.bfloat16:  # NumPy does not know this dtype
            dense = _view(dense, torch.int16)
        return TensorData(name, shape, _numpy(dense).tobytes())


def unpack_tensor(packed: TensorData) -> Tensor:
    """Rebuild a plain tensor that owns its memory; raise `WireError` for inconsistent parts."""
    dtype = DTYPES.get(packed.dtype)
    if dtype is None:
        raise WireError(f"unknown dtype {packed.dtype[:20]!r}")
    if len(packed.shape) > MAX_DIMENSIONS or any(not 0 <= n < 2**31 for n in packed.shape):
        raise WireError("impossible shape")
    if packed.device == "meta":
        if packed.data or math.prod(packed.shape) >= 2**62:
            raise WireError("a meta tensor carries no data")
        return torch.empty(packed.shape, dtype=dtype, device="meta")
    if len(packed.data) != math.prod(packed.shape) * dtype.itemsize:
        raise WireError("a tensor's bytes do not match its shape")
    if not packed.data:
        return torch.empty(packed.shape, dtype=dtype)
    # Booleans are read as integers, since bytes other than 0 and 1 would be undefined as bool.
    read_as = torch.uint8 if dtype == torch.bool else dtype
    flat = torch.frombuffer(bytearray(packed.data), dtype=read_as)
    # Both make memory of torch's own: writing into that of others counts as leaving torch.
    return (flat.ne(0) if dtype == torch.bool else flat.clone()).reshape(packed.shape)


# --- arrays --------------------------------------------------------------------------------------


def pack_array(array: Array, limit: int = MAX_REPLY) -> TensorData:
    """Copy an array into bytes; raise `Unsendable` for one of another dtype, or too large."""
    array = _as_ndarray(array, _ndarray)  # the methods of a subclass may run student code
    dtype, shape = array.dtype, array.shape
    if dtype.kind not in "biuf" or dtype.name not in DTYPES:
        ragged = ": have its rows different lengths?" if dtype.kind == "O" else ""
        raise Unsendable(f"an array of dtype {dtype.name[:40]}{ragged}")
    if len(shape) > MAX_DIMENSIONS:
        raise Unsendable(f"an array with {len(shape)} dimensions")
    # Compute the size from the shape: a broadcast array needs little memory until it is dense.
    if math.prod(shape) * dtype.itemsize > limit:
        raise Unsendable(f"an array of shape {shape}: larger than {limit // 2**20} MB")
    if not dtype.isnative:
        array = _as_type(array, dtype.newbyteorder("="))
    return TensorData(dtype.name, shape, _to_bytes(array), array=True)


def unpack_array(packed: TensorData) -> Array:
    """Rebuild a plain array that owns its memory; raise `WireError` for inconsistent parts."""
    if packed.device != "cpu" or packed.dtype == "bfloat16":
        raise WireError("impossible array")
    array: Array = unpack_tensor(packed).numpy().copy()
    return array


# --- all kinds of values -------------------------------------------------------------------------


def _odd(what: str, instead: str = "") -> Odd:
    del instead
    return Odd(what[:MAX_TEXT])


def _unsendable(what: str, instead: str = "") -> NoReturn:
    raise Unsendable(f"{what} cannot be sent to a student's code: use {instead or SENDABLE}")


def pack(
    value: Any,
    tensor: Callable[[Tensor], TensorData] = pack_tensor,
    refuse: Callable[..., Value] = _odd,
) -> Value:
    """Turn a value into a `Value`; each part that cannot be sent becomes an `Odd`."""
    left = MAX_ITEMS

    def packed_keys(keys: Iterable[Any], depth: int, noun: str) -> list[Value] | str:
        """The keys as values, or else what is wrong with them: a key that is cut is another key."""
        plain = list(map(plain_key, keys))
        if not all(map(is_key, plain)):
            return f"other {noun} than strings and numbers"
        packed = [nest(key, depth) for key in plain]
        if not all(unpack(sent) == key for sent, key in zip(packed, plain, strict=True)):
            return f"{noun} that are too large"
        return packed

    def nest(value: Any, depth: int) -> Value:
        nonlocal left
        if isinstance(value, _text):
            value = _item(value)
        kind = type(value)
        try:
            if isinstance(value, Tensor):
                return tensor(value)
            if isinstance(value, (_ndarray, _generic)):
                return pack_array(value if isinstance(value, _ndarray) else _array_of(value))
        except Unsendable as error:
            return refuse(str(error))
        if depth > MAX_DEPTH:
            return refuse("values nested more than eight deep")
        if value is None or kind is bool or kind is float:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return value if -(2**63) <= value < 2**63 else refuse("an integer beyond 64 bits")
        if kind is str:
            if len(value) > MAX_TEXT and refuse is _unsendable:
                return refuse(f"a string of more than {MAX_TEXT:,} characters")
            return clean(value[:MAX_TEXT])
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            left -= 2 * len(pairs)
            if left < 0:
                return refuse("a dictionary with too many keys")
            keys = packed_keys([key for key, _ in pairs], depth, "keys")
            if isinstance(keys, str):
                return refuse(f"a dictionary with {keys}")
            items = [nest(item, depth + 1) for _, item in pairs]
            return Entries(list(zip(keys, items, strict=True)))
        for name, (container, items_of) in _CONTAINERS.items():
            if not isinstance(value, container):
                continue
            inside = list(items_of(value))
            left -= len(inside)
            if left < 0:
                return refuse(f"a nest of more than {MAX_ITEMS:,} values")
            if name not in _SETS:
                return Items(name, [nest(item, depth + 1) for item in inside])
            keys = packed_keys(inside, depth, "items")
            if isinstance(keys, str):
                return refuse(f"a set of {keys}")
            return Items(name, sorted(keys, key=repr))
        if (record := fields_of(value)) is not None:
            called, fields = record
            left -= 2 * len(fields)
            if left < 0 or len(called) > MAX_NAME:
                return refuse("a dataclass with too many fields")
            pairs = [
                (clean(field[:MAX_TEXT]), nest(part, depth + 1)) for field, part in fields.items()
            ]
            return Entries(pairs, clean(called))
        called = clean(str(kind.__name__)[:80])
        return refuse(f"an object of type {called}", INSTEAD.get(called, ""))

    return nest(value, 0)


# Each container with the function that lists its items without running code of a subclass.
_CONTAINERS: Mapping[Literal["tuple", "list", "set", "frozenset"], Any] = {
    "tuple": (tuple, tuple.__iter__), "list": (list, list.__iter__),
    "set": (set, set.__iter__), "frozenset": (frozenset, frozenset.__iter__),
}  # fmt: skip
_SETS = ("set", "frozenset")


def plain_key(key: Any) -> Any:
    """A key with Python's numbers and strings in place of NumPy's, which are equal to them."""
    if type(key) is tuple:
        return tuple(map(plain_key, key))
    return _item(key) if isinstance(key, _generic) else key


def is_key(value: Any) -> bool:
    """Whether a value is a plain key, of a dictionary or in a set: see `Entries`."""
    if type(value) is tuple:
        return all(map(is_key, value))
    plain = value is None or type(value) in (bool, int, float, str)
    return plain and value == value  # a dictionary does not find NaN again


def pack_input(value: Any, tensor: Callable[[Tensor], TensorData] = pack_tensor) -> Input:
    """Turn an argument of a call into an `Input`: a model, or a value for `pack`.

    Raises `Unsendable` with a sentence for the author of the call, and `UnsuitableModel` for a
    model that is made of other layers than `models.LAYERS`.
    """
    if isinstance(value, TableModel):
        return TableModelData(tensor(value.table), tensor(value.steps))
    if isinstance(value, nn.Module):
        state = {path: tensor(weight) for path, weight in value.state_dict().items()}
        layers = layers_of(value)
        frozen = [path for path, weight in value.named_parameters() if not weight.requires_grad]
        return ModelData(layers, state, training_of(value), frozen)
    return pack(value, tensor, _unsendable)


def pack_model_state(model: nn.Module) -> ModelState:
    """The weights, buffers and modes of one of our own models."""
    state = {path: pack_tensor(weight) for path, weight in model.state_dict().items()}
    return ModelState(state, training_of(model))


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors in nested values or in a `TableModel`, in the order in which they are sent."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, TableModel):
        yield from value.parameters()
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)
    elif (record := fields_of(value)) is not None:
        yield from tensors_of(record[1])


def unpack(
    value: Input,
    tensor: Callable[[TensorData], Tensor] = unpack_tensor,
    record: Callable[[str, dict[str, Any]], Any] = Record,
) -> Any:
    """Turn an `Input` back into the value or model; `Batches` become a list.

    `record` makes the value of a dataclass from the name of the class and the fields. Raises
    `ValueError` if the weights of a model do not fit its layers.
    """
    match value:
        case TensorData():
            return unpack_array(value) if value.array else tensor(value)
        case Items(kind, items):
            parts = [unpack(item, tensor, record) for item in items]
            if kind in _SETS:
                return _CONTAINERS[kind][0](_distinct(parts))
            return tuple(parts) if kind == "tuple" else parts
        case Entries(entries, dataclass):
            keys = _distinct([unpack(key, tensor) for key, _ in entries])
            values = [unpack(item, tensor, record) for _, item in entries]
            if dataclass and not all(isinstance(key, str) for key in keys):
                raise WireError("fields without a name")
            fields = dict(zip(keys, values, strict=True))
            return record(dataclass, fields) if dataclass else fields
        case TableModelData(table, steps):
            return TableModel(tensor(table), tensor(steps))
        case ModelData(layers, state, training, frozen):
            model = build(layers, {path: tensor(weight) for path, weight in state.items()})
            for path in frozen:
                model.get_parameter(path).requires_grad_(False)
            set_training(model, training)
            return model
        case Batches(items):
            return [unpack(item, tensor, record) for item in items]
        case _:
            return value


def _distinct(keys: list[Any]) -> list[Any]:
    """Plain keys, as they are; raises `WireError` for other keys, and for equal keys."""
    if not all(map(is_key, keys)) or len(set(keys)) < len(keys):
        raise WireError("keys that are equal, or not plain")
    return keys
