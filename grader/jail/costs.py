"""What one of torch's operations costs: what it stores, what it computes, what it runs over.

Counted from shapes, so that the same answer costs the same on every machine. A view costs nothing
and stores what it looks at; an element written counts one, and so does a multiply-add.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grader.jail.forbidding import plain_name

# Products, and which argument's last axis they sum over.
PRODUCTS = {
    "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0,
    "matmul": 0,  # whole only where autograd is off, else one of the above
    "addmm": 1, "addbmm": 1, "baddbmm": 1, "addmv": 1,
}  # fmt: skip
# What makes one number of many: each element of the result runs over its share of the input.
REDUCTIONS = frozenset(
    {
        "sum", "nansum", "mean", "nanmean", "prod", "amax", "amin", "aminmax", "max", "min",
        "logsumexp", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "argmax",
        "argmin", "any", "all", "count_nonzero", "median", "nanmedian",
    }
)  # fmt: skip
# What keeps an axis and runs along all of it.
SCANS = frozenset(
    {
        "softmax", "log_softmax", "safe_softmax", "cumsum", "cumprod", "cummax", "cummin",
        "logcumsumexp", "sort", "argsort", "msort", "topk", "kthvalue", "mode",
    }
)  # fmt: skip

EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


class Cost(NamedTuple):
    """The cost of one operation, in elements."""

    stored: int = 0  # of its largest result
    work: int = 0  # multiply-adds of a product; elements read by a reduction; else elements written
    width: int = 0  # how many elements one number of the result is made of


def cost(operation: Any, args: Any, kwargs: Any, result: Any) -> Cost:
    """What a call of an operation of the dispatcher cost."""
    results = [part for part in _parts(result) if isinstance(part, Tensor)]
    if not results:
        return Cost()
    stored = max(map(_stored, results))
    name = plain_name(operation)
    if _is_view(operation) or name in EMPTY:
        return Cost(stored)
    written = results[0].numel()
    if name in PRODUCTS and isinstance(factor := args[PRODUCTS[name]], Tensor):
        width = factor.shape[-1] * (factor.shape[0] if name == "addbmm" else 1)
        return Cost(stored, written * width, width)
    source = args[0] if args else None
    if name in REDUCTIONS and isinstance(source, Tensor):
        return Cost(stored, source.numel(), source.numel() // max(written, 1))
    if name in SCANS and isinstance(source, Tensor) and source.dim():
        axis = _axis(operation, args, kwargs)
        return Cost(stored, source.numel(), source.shape[axis])
    return Cost(stored, written)


def _parts(result: Any) -> Any:
    return result if isinstance(result, (tuple, list)) else (result,)


def _stored(tensor: Tensor) -> int:
    """Elements that a tensor really holds: one that is expanded repeats the same ones."""
    if tensor.layout != torch.strided:
        return tensor.numel()
    held = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    return min(tensor.numel(), held)


@cache
def _is_view(operation: Any) -> bool:
    """Whether an operation only looks at its input in another way."""
    aliases = [returned.alias_info for returned in operation._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _axis(operation: Any, args: Any, kwargs: Any) -> int:
    names = [argument.name for argument in operation._schema.arguments]
    if "dim" in kwargs:
        return int(kwargs["dim"])
    place = names.index("dim") if "dim" in names else len(args)
    return int(args[place]) if place < len(args) else -1
