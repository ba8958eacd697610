"""What each dtype's rounding may do, and which elements differ beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Precision:
    """How far rounding may carry two values apart, and what counts as evidence."""

    rtol: float
    atol: float  # times the largest value
    levels: int  # so many distinct values a formula must explain
    chance: int  # fewer elements than this may well agree by chance


PRECISION = {
    torch.float64: Precision(1e-6, 1e-7, 3, 1),
    torch.float32: Precision(2e-5, 5e-6, 3, 1),
    torch.float16: Precision(1e-2, 2e-3, 6, 6),
    torch.bfloat16: Precision(4e-2, 1e-2, 8, 8),
    torch.bool: Precision(0.0, 0.0, 3, 12),
    **dict.fromkeys(INTEGERS, Precision(1e-12, 0.0, 3, 6)),
}
# Those of `torch.testing.assert_close`; 16 bits get more.
AGREEMENT = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-2, 1e-3), torch.bfloat16: (1e-2, 1e-3),
}  # fmt: skip

# What adds up in another order than the reference does rounds otherwise.
SLACK = {"cpu": 1, "cuda": 10}
_slack: ContextVar[int] = ContextVar("slack", default=1)


@contextmanager
def computed_on(device: str) -> Iterator[None]:
    """Meanwhile, one of two tensors that are compared comes from this kind of device."""
    token = _slack.set(SLACK[device])
    try:
        yield
    finally:
        _slack.reset(token)


def differing(
    theirs: Tensor, ours: Tensor, rtol: float | None = None, atol: float | None = None
) -> Tensor:
    """Which elements differ, as a bool tensor of the same shape; NaN differs from everything."""
    if ours.dtype not in AGREEMENT:
        return theirs != ours
    relative, absolute = (_slack.get() * room for room in AGREEMENT[ours.dtype])
    return ~torch.isclose(
        theirs, ours,
        rtol=relative if rtol is None else rtol, atol=absolute if atol is None else atol,
    )  # fmt: skip
