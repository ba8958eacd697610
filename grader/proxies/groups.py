"""A student's parameters in groups, and what each is by its name and shape.

Parameters whose paths differ only in numbers are one matrix in parts, like those of several heads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from grader.proxies.names import NUMBER, numbers
from grader.wire import ParameterInfo
from grader.wire.payload import DTYPES

SUFFIX = re.compile(r"[._]?(weight|bias)$")
# What a bare weight or bias has in its name for being one.
MARK = re.compile(r"(^|(?<=\.))(bias|weight|[bw])_|_?(bias|weight|_[bw])$")
BIAS = re.compile(r"bias|^b(_|.?$)|_b$")


def is_vector(shape: Sequence[int]) -> bool:
    """Whether a parameter is a bias by its shape. A weight of (1, d_in) is none: one head's row."""
    return len(shape) == 1


def is_row(shape: Sequence[int]) -> bool:
    """Whether a parameter may be a norm's by its shape: a vector, or one with axes of 1 besides.

    A gain is found among norms, where nothing of (1, d) is a head's row.
    """
    return len(shape) > 0 and prod(shape) == max(shape)


def is_called_bias(path: str) -> bool:
    """Whether a parameter has the name of a bias."""
    return BIAS.search(path.rpartition(".")[2].lower()) is not None


def is_bias(info: ParameterInfo) -> bool:
    """Whether a parameter is a bias: by its shape, or by its name, as (1, d) and (heads, d) may."""
    return is_vector(info.shape) or (is_called_bias(info.path) and len(info.shape) > 0)


def is_floating(info: ParameterInfo) -> bool:
    """Whether a parameter can hold weights: whole numbers are a mask, or a size."""
    return info.dtype in DTYPES and DTYPES[info.dtype].is_floating_point


def name_in_dict(info: ParameterInfo) -> str | None:
    """The name of a parameter in an `nn.ParameterDict`; None for what stands in none."""
    return info.path.rpartition(".")[2] if info.owner == "ParameterDict" else None


@dataclass(frozen=True)
class Group:
    """Parameters whose paths differ only in numbers: one matrix in parts, or one alone."""

    key: str  # the path without numbers
    infos: tuple[ParameterInfo, ...]
    is_bias: bool  # added to something, as a vector

    @property
    def is_weight(self) -> bool:
        """Whether these are matrices, or parts of one."""
        return not self.is_bias and len(self.infos[0].shape) > 1

    @property
    def module(self) -> str:
        """The module's path without numbers, by which a bias finds its weight."""
        return SUFFIX.sub("", self.key)

    @property
    def stem(self) -> str:
        """What a bare weight and its bias share: ``alpha`` of ``W_alpha``, ``alpha_b``."""
        return MARK.sub("", self.key.lower()).rstrip("._")


def grouped(infos: Sequence[ParameterInfo], *, by_last: bool, by_shape: bool) -> list[Group]:
    """Group by path without numbers.

    In ``qkv.0`` the number may count heads, or tell queries from keys: `by_last` takes it for the
    latter, and so for part of the name. With `by_shape`, only vectors are biases: somebody's three
    matrices are called ``a``, ``b`` and ``c``, or ``bq``, ``bk`` and ``bv``.
    """
    found: dict[tuple[str, bool], list[ParameterInfo]] = {}
    for info in infos:
        suffix = SUFFIX.search(info.path)
        steps = SUFFIX.sub("", info.path).split(".")
        last = len(steps) - 1 if by_last else None
        bare = [step if n == last else NUMBER.sub("", step) for n, step in enumerate(steps)]
        key = ".".join(step for step in bare if step) + (suffix.group() if suffix else "")
        added = is_vector(info.shape) if by_shape else is_bias(info)
        found.setdefault((key, added), []).append(info)
    return [
        Group(key, tuple(sorted(group, key=lambda info: numbers(info.path))), added)
        for (key, added), group in found.items()
    ]
