"""Removes a part of a student's model, such as the mask, to show why the model needs the part.

The student's code stays unchanged. While the model runs, its calls to torch are intercepted: a call
that would hide keys, for example, returns its input instead. If the part is not found, a
`CallError` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from grader.playing.game import Game
from grader.records.faults import CallError

MASK, POSITIONS, SCALE = PARTS = ("mask", "positions", "scale")

LOW = -1e3  # a score below this counts as hidden: -inf, -1e9, the smallest float
EXPONENTIALS = ("softmax", "exp", "exp_")
INTO = (
    "__setitem__",
    "__iadd__",
    "__isub__",
    "__imul__",
)  # operations in place whose names do not end in _

NO_MASK = (
    "no mask was found that could be left out: the search is for an operation that hides the keys "
    "above the diagonal. With all such operations left out, your model's first tokens still do not "
    "see the last token"
)
NO_SCALE = (
    "no scale was found that could be undone: the search is for a softmax, or exp, of scores with "
    "a row and a column for each token"
)
NO_POSITIONS = (
    "no positions were found that could be left out: the search is for a parameter of the shape "
    "({context}, {width}), with a row for each place"
)


def without(game: Game, model: nn.Module, parts: Collection[str], heads: int) -> nn.Module:
    """The model without its mask, its scale or both; raises `CallError` if a part is not found."""
    factor = (game.width / heads) ** 0.5 if SCALE in parts else None
    if MASK not in parts and factor is None:
        return model
    altered = _Altered(model, MASK in parts, factor)
    ids = game.ids(game.batch_of(1))
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % len(game.alphabet)
    with torch.no_grad():
        before = altered(ids)[:, 0]
        seen = not torch.equal(before, altered(changed)[:, 0])
    if MASK in parts and not (altered.mode.unmasked and seen):
        raise CallError(NO_MASK)
    if SCALE in parts and not altered.mode.unscaled:
        raise CallError(NO_SCALE)
    return altered


def positions_of(game: Game, model: nn.Module) -> list[nn.Parameter]:
    """The parameters with a row for each position; raises `CallError` if there are none."""
    table = (game.context, game.width)
    found = [p for p in model.parameters() if tuple(p.shape) in (table, table[::-1])]
    if not found:
        raise CallError(NO_POSITIONS.format(context=game.context, width=game.width))
    return found


def tables_of(game: Game, model: nn.Module) -> list[nn.Parameter]:
    """The embedding tables: parameters with a row or a column for each character or position."""
    sizes = {len(game.alphabet), game.context}
    return [p for p in model.parameters() if p.ndim == 2 and sizes & {*p.shape}]


class _Altered(nn.Module):
    """A model that runs without its mask or its scale."""

    def __init__(self, model: nn.Module, mask: bool, factor: float | None) -> None:
        super().__init__()
        self.model = model
        self.mode = _Undoing(mask, factor)

    def forward(self, ids: Tensor) -> Tensor:
        with self.mode:
            result: Tensor = self.model(ids)
        return result


class _Undoing(TorchFunctionMode):
    """Undoes masks, and multiplies scores by `factor`; any square matrix counts as scores."""

    def __init__(self, mask: bool, factor: float | None) -> None:
        super().__init__()
        self.mask = mask
        self.factor = factor
        self.unmasked = self.unscaled = 0  # the number of calls that were changed

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is nn.functional.scaled_dot_product_attention:
            return self._whole(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if self.factor is not None and name in EXPONENTIALS and args and _square(args[0]):
            self.unscaled += 1
            scores = args[0] * self.factor
            args = (args[0].copy_(scores) if name.endswith("_") else scores, *args[1:])
        if not self.mask:
            return func(*args, **kwargs)
        if name in INTO or (name.endswith("_") and not name.startswith("__")):
            return self._in_place(func, args, kwargs)
        out = func(*args, **kwargs)
        if _hides(out):
            for given in tree_leaves((args, kwargs)):
                if _square(given) and given.shape == out.shape and not _hides(given):
                    self.unmasked += 1
                    return given
        return out

    def _in_place(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Try the call on a copy first; skip the call if it would hide keys."""
        if args and _square(args[0]) and not _hides(args[0]):
            with torch.no_grad():
                copy = args[0].detach().clone()
                func(copy, *args[1:], **kwargs)
            if _hides(copy):
                self.unmasked += 1
                return args[0]
        return func(*args, **kwargs)

    def _whole(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Call torch's own attention without its mask or without its scale."""
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | kwargs
        if self.mask:
            self.unmasked += 1
            given |= {"attn_mask": None, "is_causal": False}
        if self.factor is not None:
            self.unscaled += 1
            given |= {"scale": 1.0}
        return func(**given)


def _square(value: Any) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.ndim < 2:
        return False
    return value.shape[-1] == value.shape[-2] > 1


def _hides(value: Any) -> bool:
    """Whether all entries above the diagonal are hidden: very low scores, or weights of zero."""
    if not _square(value):
        return False
    corner = value[..., 0, -1]  # checked first: this settles most tensors cheaply
    if not bool(((corner < LOW) | (corner == 0)).all()):
        return False
    rows, columns = torch.triu_indices(value.shape[-2], value.shape[-1], offset=1)
    above = value[..., rows, columns]
    return bool(((above < LOW) | (above == 0)).all())
