"""The models that a test may pass to a student's function.

A model consists of layers of torch from the closed list `LAYERS`, or is the kit's own `TableModel`.
A message has the names of the layers, their plain arguments, and the weights: both processes build
the model from the code below, and run no code that the other process sends. A student may read the
layers and the weights, since calling the model reveals the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grader.wire import MAX_DEPTH, LayerData, Plain

# The arguments of each layer's constructor, which the layer keeps as attributes.
LAYERS: Mapping[type[nn.Module], tuple[str, ...]] = {
    nn.Sequential: (),
    nn.Linear: ("in_features", "out_features", "bias"),
    nn.Embedding: ("num_embeddings", "embedding_dim", "padding_idx"),
    nn.Conv1d: ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation",
                "groups", "bias"),
    nn.Conv2d: ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation",
                "groups", "bias"),
    nn.MaxPool2d: ("kernel_size", "stride", "padding"),
    nn.LayerNorm: ("normalized_shape", "eps", "elementwise_affine", "bias"),
    nn.BatchNorm1d: ("num_features", "eps", "momentum", "affine"),
    nn.Dropout: ("p",),
    nn.Flatten: ("start_dim", "end_dim"),
    nn.ReLU: (),
    nn.LeakyReLU: ("negative_slope",),
    nn.Tanh: (),
    nn.Sigmoid: (),
    nn.GELU: ("approximate",),
    nn.SiLU: (),
    nn.Softmax: ("dim",),
    nn.LogSoftmax: ("dim",),
}  # fmt: skip
_KINDS = {kind.__name__: kind for kind in LAYERS}
MAX_MODEL = 2**18  # numbers in a model; a reply brings them all back


class UnsuitableModel(ValueError):
    """A test's model cannot be sent; the text says why, and what to use."""


def layers_of(model: nn.Module) -> LayerData:
    """A model's layers as data; raise `UnsuitableModel` if it is not made of `LAYERS`."""
    held = [(path, t) for path, t in _weights(model) if t is not None]
    if len({id(tensor) for _, tensor in held}) < len(held):
        raise UnsuitableModel("a model whose layers share a weight cannot be sent: use two layers")
    if any(tensor.grad is not None for _, tensor in held):
        raise UnsuitableModel(
            "gradients in .grad are not sent: call model.zero_grad(), and let the function "
            "compute them"
        )
    if sum(tensor.numel() for _, tensor in held) > MAX_MODEL:
        raise UnsuitableModel(f"a model has at most {MAX_MODEL:,} numbers: use a smaller one")
    data = _layer_data(model, 0)
    with torch.random.fork_rng(devices=()):
        copied = _built(data)
    if repr(copied) != repr(model) or _shapes(copied) != _shapes(model):
        raise UnsuitableModel(
            "a layer has an argument or a weight that cannot be sent: use the arguments "
            + "; ".join(f"{kind.__name__}({', '.join(names)})" for kind, names in LAYERS.items())
        )
    return data


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {path: tensor.shape for path, tensor in model.state_dict().items()}


def _weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _layer_data(layer: nn.Module, depth: int) -> LayerData:
    kind = type(layer)
    if kind not in LAYERS or depth > MAX_DEPTH:
        listed = ", ".join(_KINDS)
        raise UnsuitableModel(
            f"a model for a student's function is made of layers of torch.nn: {listed}. "
            f"{kind.__name__} is not among them"
            if kind not in LAYERS
            else f"a model nests nn.Sequential at most {MAX_DEPTH} deep"
        )
    arguments = {name: _plain(getattr(layer, name)) for name in LAYERS[kind]}
    parts = {name: _layer_data(part, depth + 1) for name, part in _children(layer)}
    return LayerData(kind.__name__, arguments, parts)


def _plain(value: Any) -> Plain:
    """An argument of a layer's constructor; a layer has its bias in place of the argument True."""
    if isinstance(value, Tensor):
        return True
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return tuple(int(size) for size in value)


def build(data: LayerData, state: Mapping[str, Tensor]) -> nn.Module:
    """Build a model from its layers and its weights and buffers, by path.

    Raises `ValueError` for a layer that is not in `LAYERS`, and for weights that do not fit it.
    """
    model = _built(data)
    if {path: tensor.shape for path, tensor in state.items()} != _shapes(model):
        raise ValueError("the weights do not fit the model's layers")
    model.load_state_dict(dict(state), assign=True)
    return model


def _built(data: LayerData) -> nn.Module:
    kind = _KINDS.get(data.kind)
    if kind is None or data.arguments.keys() != {*LAYERS[kind]}:
        raise ValueError(f"{data.kind[:40]!r} is no layer of a model")
    arguments: dict[str, Any] = dict(data.arguments)
    if "bias" in arguments:
        arguments["bias"] = bool(arguments["bias"])
    layer = kind(**arguments)
    for name, part in data.parts.items():
        layer.add_module(name, _built(part))
    return layer


def _children(layer: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers inside a layer; one that is there twice, such as an activation, comes twice."""
    return ((name, part) for name, part in layer._modules.items() if part is not None)


def _modules(model: nn.Module) -> Iterator[nn.Module]:
    yield model
    for _, part in _children(model):
        yield from _modules(part)


def training_of(model: nn.Module) -> list[bool]:
    """Whether each module of a model is in training mode; a module comes before those inside."""
    return [part.training for part in _modules(model)]


def set_training(model: nn.Module, flags: Sequence[bool]) -> None:
    """Set the mode of each module of a model: the inverse of `training_of`."""
    for part, flag in zip(_modules(model), flags, strict=True):
        part.training = flag


def set_state(model: nn.Module, weights: Mapping[str, Tensor], flags: Sequence[bool]) -> None:
    """Give a model these weights and buffers, by path, and these modes; the tensors stay."""
    for path, tensor in model.state_dict().items():
        tensor.copy_(weights[path])
    set_training(model, flags)


class TableModel(nn.Module):
    """A tiny language model: ids (batch, tokens) become logits (batch, tokens, vocab).

    Each id has a step, an integer that depends on the id and its position. The sum of the steps so
    far, modulo the table's length, is the row of the table with the logits. Therefore the logits
    depend on each visible id and its position. The arithmetic is exact: every machine finds the
    same largest logit. Like a GPT, the model raises an error for more ids than its context length.
    """

    def __init__(self, table: Tensor, steps: Tensor) -> None:
        """`table` is (vocab, vocab); `steps` is int64 (context_length, vocab)."""
        super().__init__()
        self.table = nn.Parameter(table, requires_grad=False)
        self.steps = nn.Parameter(steps, requires_grad=False)
        self.eval()

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the next id, at each position; raises `ValueError` for unknown ids."""
        self._require_known(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)
        sums = self.steps[positions, ids].cumsum(dim=1)  # (batch, tokens)
        return self.table[sums % len(self.table)]

    def _require_known(self, ids: Tensor) -> None:
        context_length, vocab = self.steps.shape
        if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.dim() != 2:
            raise ValueError("the model takes ids as an int64 tensor of shape (batch, tokens)")
        if not 1 <= ids.shape[1] <= context_length:
            raise ValueError(
                f"the model takes 1 to {context_length} ids a row (its context_length is "
                f"{context_length}), got {ids.shape[1]}"
            )
        if not ids.is_meta and bool(((ids < 0) | (ids >= vocab)).any()):
            found = f"ids from {int(ids.min())} to {int(ids.max())}"
            raise ValueError(f"the model knows the ids 0 to {vocab - 1}, got {found}")
