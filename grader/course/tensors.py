"""Seeded inputs with the same bits on every platform.

torch's normals differ between platforms, versions and even tensor sizes, and NumPy's between
versions. Here only Philox's raw integers are used (Salmon et al. 2011, *Parallel random numbers:
as easy as 1, 2, 3*), and exact arithmetic on them: uniform = (raw >> 11) · 2⁻⁵³, and normal = the
sum of twelve uniforms minus six (Irwin-Hall: mean 0, variance 1, bounded by ±6). Every draw has
a key of its own, so that no draw depends on how many came before it, nor on their sizes.
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
# All submissions of a batch get the same tensors: those of up to so many elements, and how many.
SMALL, MOST_SMALL = 2**14, 2**14
LARGE, MOST_LARGE = 2**20, 2**5


class Make:
    """Draws tensors for one case of a test, their sizes given by name: ``make.normal(batch=2)``."""

    def __init__(self, seed: str, exercise: str, case: str) -> None:
        self.exercise = exercise  # whose test draws here
        self.case = case  # ``test_x[5]``
        self._key = (seed, exercise, case)
        self._draws = 0

    def seed(self, name: str) -> int:
        """A 63-bit integer for this case and this name."""
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

        ``make.uniform(batch=2, tokens=5)`` has shape (2, 5).
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

        ``make.normal(batch=2, tokens=5, d_in=3)`` has shape (2, 5, 3).
        """
        return self._draw(_Normal(scale, dtype), name, sizes)

    def normal_like(self, like: Tensor, scale: float = 1.0, *, name: str | None = None) -> Tensor:
        """Normal values of the shape and dtype of `like`."""
        sizes = {f"axis_{axis}": size for axis, size in enumerate(like.shape)}
        return self.normal(scale, name=name, dtype=like.dtype, **sizes)

    def integers(self, low: int, high: int, *, name: str | None = None, **sizes: int) -> Tensor:
        """Integers in [low, high) as int64, of shape `sizes`."""
        return self._draw(_Integers(low, high), name, sizes)

    def booleans(self, share: float = 0.5, *, name: str | None = None, **sizes: int) -> Tensor:
        """Booleans, True with probability `share`, of shape `sizes`."""
        return self.uniform(dtype=torch.float64, name=name, **sizes) < share


Draw = Callable[[bytes, tuple[int, ...]], Tensor]  # of a key and a shape; equal draws are equal


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
        # Twelve integers of 53 bits add up exactly; one rounding, the same everywhere.
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
    """`count` integers of 53 bits."""
    generator = np.random.Philox(key=int.from_bytes(key, "little"), counter=0)
    return np.asarray(generator.random_raw(count), dtype=np.uint64) >> np.uint64(11)


def _tensor(
    values: np.ndarray[tuple[int], np.dtype[np.generic]], shape: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    return torch.from_numpy(values.reshape(shape)).to(dtype)
