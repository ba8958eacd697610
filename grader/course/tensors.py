"""Seeded inputs with the same bits on every platform.

Torch's normally distributed numbers differ between platforms, versions and even tensor sizes;
NumPy's differ between versions. This module uses only the raw integers of Philox (Salmon et al.
2011, *Parallel random numbers: as easy as 1, 2, 3*) and exact arithmetic. A uniform number is
(raw >> 11) · 2⁻⁵³. A normal number is the sum of twelve uniform numbers minus six (Irwin-Hall: mean
0, variance 1, bounded by ±6). Every draw has its own key. Therefore a draw does not depend on the
sizes of earlier draws.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

TWELVE = 12
# Tensors are cached, since all submissions of a batch get the same tensors. Small and large tensors
# have separate caches. In each line below, the first constant is the largest number of elements of
# a tensor in the cache. The second is the largest number of tensors in the cache.
SMALL, MOST_SMALL = 2**14, 2**14
LARGE, MOST_LARGE = 2**20, 2**5


class Make:
    """Draws the tensors for a case of a test: ``make.normal(batch=2, tokens=5)``.

    For a NumPy array, add ``.numpy()``. Draw an array of float64 with ``dtype=torch.float64``: the
    numbers of ``.double()`` are those of float32, which hide a detour through float32.

    The names of the sizes, such as ``batch``, are for the reader; they do not change the numbers.
    """

    def __init__(self, seed: str, exercise: str, case: str) -> None:
        self.exercise = exercise  # the exercise of the test
        self.case = case  # the test and its case, such as ``test_x[5]``
        self._key = (seed, exercise, case)
        self._draws = 0

    def seed(self, name: str) -> int:
        """A 63-bit integer that depends on this case and on `name`."""
        return int.from_bytes(self._hash(name)[:8], "little") >> 1

    def _hash(self, name: str) -> bytes:
        text = "\x00".join((*self._key, name))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def _draw(self, draw: Draw, name: str | None, sizes: Mapping[str, int]) -> Tensor:
        if name is None:
            name = str(self._draws)
            self._draws += 1
        shape = tuple(sizes.values())
        size = math.prod(shape)
        if size > LARGE:
            return draw(self._hash(name), shape)
        kept = _small if size <= SMALL else _large
        return kept(draw, self._hash(name), shape).clone()

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: torch.dtype = torch.float32,
        name: str | None = None,
        **sizes: int,
    ) -> Tensor:
        """Uniform values in [low, high), of shape `sizes`.

        >>> make.uniform(batch=2, tokens=5).shape
        torch.Size([2, 5])
        """
        return self._draw(_Uniform(low, high, dtype), name, sizes)

    def normal(
        self,
        scale: float = 1.0,
        *,
        dtype: torch.dtype = torch.float32,
        name: str | None = None,
        **sizes: int,
    ) -> Tensor:
        """Normal values of standard deviation `scale`, of shape `sizes`.

        >>> make.normal(batch=2, tokens=5, d_in=3).shape
        torch.Size([2, 5, 3])
        """
        return self._draw(_Normal(scale, dtype), name, sizes)

    def normal_like(self, like: Tensor, scale: float = 1.0, *, name: str | None = None) -> Tensor:
        """Normal values of standard deviation `scale`, with the shape and dtype of `like`."""
        sizes = {f"axis_{axis}": size for axis, size in enumerate(like.shape)}
        return self.normal(scale, name=name, dtype=like.dtype, **sizes)

    def integers(self, low: int, high: int, *, name: str | None = None, **sizes: int) -> Tensor:
        """Integers in [low, high) as int64, of shape `sizes`.

        >>> make.integers(0, 9, tokens=5)
        tensor([7, 0, 6, 8, 1])
        """
        return self._draw(_Integers(low, high), name, sizes)

    def booleans(self, share: float = 0.5, *, name: str | None = None, **sizes: int) -> Tensor:
        """Booleans, True with probability `share`, of shape `sizes`.

        >>> make.booleans(0.25, tokens=5)
        tensor([False, False, False,  True,  True])
        """
        return self.uniform(dtype=torch.float64, name=name, **sizes) < share


# A distribution: draws a tensor from a key and a shape. Equal distributions must compare as equal,
# because they are part of the cache's keys.
Draw = Callable[[bytes, tuple[int, ...]], Tensor]


def _drawn(draw: Draw, key: bytes, shape: tuple[int, ...]) -> Tensor:
    return draw(key, shape)


_small = lru_cache(maxsize=MOST_SMALL)(_drawn)
_large = lru_cache(maxsize=MOST_LARGE)(_drawn)


@dataclass(frozen=True)
class _Uniform:
    low: float
    high: float
    dtype: torch.dtype

    def __call__(self, key: bytes, shape: tuple[int, ...]) -> Tensor:
        values = _raw(key, math.prod(shape)).astype(np.float64) * 2.0**-53
        return _tensor(values * (self.high - self.low) + self.low, shape, self.dtype)


@dataclass(frozen=True)
class _Normal:
    scale: float
    dtype: torch.dtype

    def __call__(self, key: bytes, shape: tuple[int, ...]) -> Tensor:
        count = math.prod(shape)
        raw = _raw(key, TWELVE * count).reshape(TWELVE, count)
        # The sum of twelve integers of 53 bits is exact. The conversion to float64 rounds it, in
        # the same way on every platform.
        values = raw.sum(axis=0, dtype=np.uint64).astype(np.float64) * 2.0**-53 - TWELVE / 2
        return _tensor(values * self.scale, shape, self.dtype)


@dataclass(frozen=True)
class _Integers:
    low: int
    high: int

    def __call__(self, key: bytes, shape: tuple[int, ...]) -> Tensor:
        raw = _raw(key, math.prod(shape)) % np.uint64(self.high - self.low)
        return _tensor(raw.astype(np.int64) + self.low, shape, torch.int64)


def _raw(key: bytes, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Draw `count` integers of 53 bits."""
    generator = np.random.Philox(key=int.from_bytes(key, "little"), counter=0)
    return np.asarray(generator.random_raw(count), dtype=np.uint64) >> np.uint64(11)


def _tensor(
    values: np.ndarray[tuple[int], np.dtype[np.generic]], shape: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    return torch.from_numpy(values.reshape(shape)).to(dtype)
