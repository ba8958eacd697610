"""Turn tensors and nested values into messages and back.

A tensor is sent as its dtype, its shape and its raw bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from grader.wire import (
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_ITEMS,
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


class Unsendable(Exception):
    """A value cannot be part of a reply; the text describes the value for the student."""


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


def pack(value: Any, tensor: Callable[[Tensor], TensorData] = pack_tensor) -> Value:
    """Turn nested tensors, numbers, strings and None into a `Value`; other objects become `Odd`."""
    left = MAX_ITEMS

    def nest(value: Any, depth: int) -> Value:
        nonlocal left
        kind = type(value)
        if isinstance(value, Tensor):
            try:
                return tensor(value)
            except Unsendable as error:
                return Odd(str(error)[:MAX_TEXT])
        if depth > MAX_DEPTH:
            return Odd("values nested more than eight deep")
        if value is None or kind is bool or kind is float:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return value if -(2**63) <= value < 2**63 else Odd("an integer beyond 64 bits")
        if kind is str:
            return clean(value[:MAX_TEXT])
        if isinstance(value, (tuple, list)):
            inside = list(
                tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)
            )
            left -= len(inside)
            if left < 0:
                return Odd(f"a nest of more than {MAX_ITEMS:,} values")
            items = [nest(item, depth + 1) for item in inside]
            return Items("tuple" if isinstance(value, tuple) else "list", items)
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            left -= len(pairs)
            if left < 0 or not all(type(key) is str for key, _ in pairs):
                return Odd("a dictionary with too many keys, or with keys that are not strings")
            return Entries({clean(key[:200]): nest(item, depth + 1) for key, item in pairs})
        return Odd(f"an object of type {clean(str(kind.__name__)[:80])}")

    return nest(value, 0)


def pack_input(value: Any, tensor: Callable[[Tensor], TensorData] = pack_tensor) -> Input:
    """Turn an argument of a call into an `Input`: a model, or a value for `pack`.

    Raises `UnsuitableModel` for a model that is made of other layers than `models.LAYERS`.
    """
    if isinstance(value, TableModel):
        return TableModelData(tensor(value.table), tensor(value.steps))
    if isinstance(value, nn.Module):
        state = {path: tensor(weight) for path, weight in value.state_dict().items()}
        layers = layers_of(value)
        frozen = [path for path, weight in value.named_parameters() if not weight.requires_grad]
        return ModelData(layers, state, training_of(value), frozen)
    return pack(value, tensor)


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


def unpack(value: Input, tensor: Callable[[TensorData], Tensor] = unpack_tensor) -> Any:
    """Turn an `Input` back into the value or model; `Batches` become a list.

    Raises `ValueError` if the weights of a model do not fit its layers.
    """
    match value:
        case TensorData():
            return tensor(value)
        case Items(kind, items):
            parts = [unpack(item, tensor) for item in items]
            return tuple(parts) if kind == "tuple" else parts
        case Entries(entries):
            return {key: unpack(item, tensor) for key, item in entries.items()}
        case TableModelData(table, steps):
            return TableModel(tensor(table), tensor(steps))
        case ModelData(layers, state, training, frozen):
            model = build(layers, {path: tensor(weight) for path, weight in state.items()})
            for path in frozen:
                model.get_parameter(path).requires_grad_(False)
            set_training(model, training)
            return model
        case Batches(items):
            return [unpack(item, tensor) for item in items]
        case _:
            return value
