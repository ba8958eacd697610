"""Weights for our modules inside an adapter, and helpers of several adapters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

Answer = Any  # a function or a class, as a student defines it
Entries = Mapping[str, Any]  # what a judge is given, by the names that it asks for

PROJECTIONS = ("W_query.weight", "W_key.weight", "W_value.weight")
MADE: list[frozenset[str]] = []  # names of the weights of each module that was settled


class OtherWeights(Exception):
    """An answer whose weights are not named or laid out as the reference's: they cannot be set."""


def weights_of(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters by name, those that are tied under each of their names; no biases."""
    found = module.named_parameters(remove_duplicate=False)
    return {name: value for name, value in found if is_lazy(value) or value.dim() > 1}


def settled(make: Answer, *sizes: Any) -> Any:
    """A module whose weights hang on torch's seed and their names, not on how they were made.

    Biases are zero, since no judge asks for one, and nothing is dropped.
    """
    seed = int(torch.randint(2**31, ()))
    with torch.random.fork_rng(devices=[]):  # modules that draw more or less leave the same state
        module = make(*sizes)
    weights = weights_of(module)
    MADE.append(frozenset(weights))
    with torch.no_grad():
        for name, value in module.named_parameters(remove_duplicate=False):
            if name not in weights:
                value.zero_()
            elif not is_lazy(value):
                draw = torch.Generator().manual_seed(seed ^ zlib.crc32(name.encode()))
                value.copy_(torch.randn(value.shape, generator=draw) / value.shape[-1] ** 0.5)
    return module.eval()


def projections(module: nn.Module, width: int) -> list[nn.Parameter]:
    """The weights of queries, keys and values, for inputs of this width."""
    weights = weights_of(module)
    found = [weights[name] for name in PROJECTIONS if name in weights]
    if len(found) < len(PROJECTIONS) or any(w.shape[-1] != width for w in found):
        raise OtherWeights(", ".join(f"{name} {tuple(w.shape)}" for name, w in weights.items()))
    return found


def three_in_one(make: Answer, d: int, *sizes: Any) -> Any:
    """A module on [queries, keys, values] side by side, each projected from its own part alone."""
    module = settled(make, 3 * d, d, *sizes)
    with torch.no_grad():
        for part, weight in enumerate(projections(module, 3 * d)):
            columns = slice(part * d, (part + 1) * d)
            own = weight[:, columns] * 3**0.5
            weight.zero_()[:, columns] = own
    return module


def unmasked(attend: Callable[[Tensor], Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A causal module on three parts, asked by each query as the last token: it sees all keys."""
    batch, asked, d = q.shape
    tokens = torch.cat([torch.zeros_like(k), k, v], dim=-1)  # (batch, keys, 3 d)
    tokens = tokens.expand(asked, *tokens.shape)  # (queries, batch, keys, 3 d)
    lasts = torch.cat([q.transpose(0, 1), tokens[:, :, -1, d:]], dim=-1)  # (queries, batch, 3 d)
    turned = torch.cat([tokens[:, :, :-1], lasts[:, :, None]], dim=2)
    out = attend(turned.flatten(0, 1))[:, -1]
    return out.reshape(asked, batch, d).transpose(0, 1)


def three_parts(module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Under a lower triangle a causal module as it is, else without its mask."""
    if mask is None:
        return unmasked(module, q, k, v)
    return module(torch.cat([q, k, v], dim=-1))


def attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Tensor:
    """Plain attention, where an exercise of ours is only its mask."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def normal(*shape: int) -> Tensor:
    """An input as all of these tests draw it."""
    return torch.randn(shape)
