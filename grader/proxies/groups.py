"""Groups a student's parameters, and distinguishes weights from biases by names and shapes.

Parameters whose paths differ only in numbers form a group, such as the matrices of several heads.
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
# The part of a name that marks a parameter outside of an `nn.Linear` as a weight or a bias.
MARK = re.compile(r"(^|(?<=\.))(bias|weight|[bw])_|_?(bias|weight|_[bw])$")
BIAS = re.compile(r"bias|^b(_|.?$)|_b$")


def is_vector(shape: Sequence[int]) -> bool:
    """Whether a shape is that of a vector, such as a bias; a head's matrix may be (1, d_in)."""
    return len(shape) == 1


def is_row(shape: Sequence[int]) -> bool:
    """Whether a norm may have this shape: at most one axis is longer than 1."""
    return len(shape) > 0 and prod(shape) == max(shape)


def is_called_bias(path: str) -> bool:
    """Whether a parameter has the name of a bias."""
    return BIAS.search(path.rpartition(".")[2].lower()) is not None


def is_bias(info: ParameterInfo) -> bool:
    """Whether a parameter is a vector, or has the name of a bias and a shape like (heads, d)."""
    return is_vector(info.shape) or (is_called_bias(info.path) and len(info.shape) > 0)


def is_floating(info: ParameterInfo) -> bool:
    """Whether a parameter has a floating-point dtype; integers are masks or sizes, not weights."""
    return info.dtype in DTYPES and DTYPES[info.dtype].is_floating_point


def name_in_dict(info: ParameterInfo) -> str | None:
    """The key of a parameter in an `nn.ParameterDict`; None for other parameters."""
    return info.path.rpartition(".")[2] if info.owner == "ParameterDict" else None


@dataclass(frozen=True)
class Group:
    """Parameters whose paths differ only in numbers: a whole matrix or bias, or its parts."""

    key: str  # the path without numbers
    infos: tuple[ParameterInfo, ...]
    is_bias: bool

    @property
    def is_weight(self) -> bool:
        """Whether the group is a matrix, whole or in parts."""
        return not self.is_bias and len(self.infos[0].shape) > 1

    @property
    def module(self) -> str:
        """The path of the owning module, without numbers; the same for a weight and its bias."""
        return SUFFIX.sub("", self.key)

    @property
    def stem(self) -> str:
        """The part of the name that a weight and its bias share: ``alpha`` in ``W_alpha``."""
        return MARK.sub("", self.key.lower()).rstrip("._")


def grouped(infos: Sequence[ParameterInfo], *, by_last: bool, by_shape: bool) -> list[Group]:
    """Group parameters whose paths differ only in numbers.

    In ``qkv.0`` the number may be that of a head, or distinguish queries from keys. With `by_last`,
    a number in the last step distinguishes roles, so paths that differ in it are not grouped. With
    `by_shape`, only vectors are biases, since people also call matrices ``b`` or ``bq``.
    """
    found: dict[tuple[str, bool], list[ParameterInfo]] = {}
    hand_written = _in_hand_written_layers(infos)
    for info in infos:
        path = hand_written.get(info.path, info.path)
        suffix = SUFFIX.search(path)
        steps = SUFFIX.sub("", path).split(".")
        last = len(steps) - 1 if by_last else None
        bare = [step if n == last else NUMBER.sub("", step) for n, step in enumerate(steps)]
        key = ".".join(step for step in bare if step) + (suffix.group() if suffix else "")
        added = is_vector(info.shape) if by_shape else is_bias(info)
        found.setdefault((key, added), []).append(info)
    return [
        Group(key, tuple(sorted(group, key=lambda info: numbers(info.path))), added)
        for (key, added), group in found.items()
    ]


def _in_hand_written_layers(infos: Sequence[ParameterInfo]) -> dict[str, str]:
    """The paths in layers that a student wrote, each with the path that it would have in nn.Linear.

    Such a layer has a matrix and at most one vector, and there are several layers of its kind. So
    the name of the matrix, such as ``w`` in ``w1.w`` and ``w2.w``, cannot say what it is for.
    """
    layers: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        layers.setdefault(info.path.rpartition(".")[0], []).append(info)
    kinds: dict[str, list[list[ParameterInfo]]] = {}
    for held in layers.values():
        matrices = [info for info in held if not is_vector(info.shape)]
        if len(matrices) == 1 and len(held) <= 2 and not held[0].owner:
            kinds.setdefault(matrices[0].path.rpartition(".")[2], []).append(held)
    return {
        info.path: f"{path}.{'bias' if is_vector(info.shape) else 'weight'}"
        for same in kinds.values()
        if len(same) > 1
        for held in same
        for info in held
        if (path := info.path.rpartition(".")[0])
    }
